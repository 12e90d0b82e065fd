import { posix } from 'node:path'
import { expect, test } from 'vitest'
import { importsOf } from './imports.ts'
import { filesUnder, read } from './tree.ts'

/**
 * What each part of src may import besides itself: whole folders, or single files. The siblings in the middle meet only
 * through each other's specs. Nothing but `testing` may import the front door, nobody the others, and nothing but it and the demo `testing`.
 */
const mayImport: Record<string, string> = {
  base: '',
  session: 'base',
  tool: 'base session model/spec.ts sandbox/spec.ts memory/spec.ts store/spec.ts',
  model: 'base session tool/spec.ts sandbox/spec.ts memory/spec.ts store/spec.ts',
  sandbox: 'base session tool/spec.ts model/spec.ts memory/spec.ts store/spec.ts',
  memory: 'base session tool/spec.ts model/spec.ts sandbox/spec.ts store/spec.ts',
  store: 'base session tool/spec.ts model/spec.ts sandbox/spec.ts memory/spec.ts',
  run: 'base session tool model sandbox memory store',
  evidence: 'base session tool model sandbox memory store run',
  flow: 'base session tool model sandbox memory store run',
  server: 'base session tool model sandbox memory store run flow evidence',
  // The demo is a program of ours that comes with the command. It runs without a key, and so it alone may use a model of `testing`.
  demo: 'base session tool model sandbox memory store run flow evidence server testing/scripted.ts',
  cli: 'base session tool model sandbox memory store run flow evidence server demo',
  'index.ts': 'base session tool model sandbox memory store run flow evidence server cli',
  doors: 'base session tool model sandbox memory store run flow evidence server',
  testing: 'base session tool model sandbox memory store run flow evidence server cli index.ts',
}

type Files = Readonly<Record<string, string>>

/** Imports that run the wrong way, one sentence each. */
function wrongArrows(files: Files): string[] {
  const wrong: string[] = []
  for (const [path, code] of Object.entries(files)) {
    const part = partOf(path)
    const allowed = mayImport[part]?.split(' ')
    if (!allowed) wrong.push(`${path}: ${part} has no row in the table of layers`)
    for (const { specifier } of importsOf(path, code)) {
      if (/^openrath(\/|$)/.test(specifier)) wrong.push(`${path} imports its own package, ${specifier}`)
      if (!specifier.startsWith('.')) continue
      const target = posix.join(posix.dirname(path), specifier)
      const fits = partOf(target) === part || allowed?.includes(partOf(target)) || allowed?.includes(target)
      if (!fits) wrong.push(`${path} imports ${target}`)
    }
  }
  return wrong
}

function partOf(path: string): string {
  return path.split('/')[0] as string
}

/** Files that import each other in a circle; `at run time` leaves out what only types need. */
function circles(files: Files, which: 'at run time' | 'types too'): string[][] {
  const next = new Map<string, string[]>()
  for (const [path, code] of Object.entries(files)) {
    const targets = importsOf(path, code)
      .filter(
        ({ specifier, typeOnly }) => specifier.startsWith('.') && !(typeOnly && which === 'at run time'),
      )
      .map(({ specifier }) => posix.join(posix.dirname(path), specifier))
    next.set(path, targets)
  }
  const found = new Map<string, string[]>()
  const done = new Set<string>()
  const visit = (path: string, trail: readonly string[]) => {
    const start = trail.indexOf(path)
    if (start >= 0) found.set(trail.slice(start).toSorted().join(), [...trail.slice(start), path])
    if (start >= 0 || done.has(path)) return
    for (const target of next.get(path) ?? []) visit(target, [...trail, path])
    done.add(path)
  }
  for (const path of next.keys()) visit(path, [])
  return [...found.values()]
}

const sources: Files = Object.fromEntries(filesUnder('src', '.ts').map(path => [path, read(`src/${path}`)]))

test('every import in src runs from an outer layer to an inner one', () => {
  expect(Object.keys(sources).length).toBeGreaterThan(20)
  expect(wrongArrows(sources)).toEqual([])
})

test('no files of src import each other in a circle', () => {
  expect(circles(sources, 'at run time')).toEqual([])
})

test('no types go in a circle either', () => {
  expect(circles(sources, 'types too')).toEqual([])
})

test('an arrow the wrong way is found whatever form the import has', () => {
  const forms = [
    "import { run } from '../run/door.ts'",
    "import '../run/door.ts'",
    "import type { Run } from '../run/door.ts'",
    "export { run } from '../run/door.ts'",
    "export * from '../run/door.ts'",
    "const door = await import('../run/door.ts')",
    "type Run = import('../run/door.ts').Run",
  ]
  for (const form of forms) {
    expect(wrongArrows({ 'session/chunk.ts': form }), form).toEqual(['session/chunk.ts imports run/door.ts'])
  }
})

test('siblings meet through specs and nowhere else', () => {
  expect(wrongArrows({ 'store/row.ts': "import '../memory/spec.ts'" })).toEqual([])
  expect(wrongArrows({ 'store/drivers/sqlite.ts': "import '../../memory/hit.ts'" })).toEqual([
    'store/drivers/sqlite.ts imports memory/hit.ts',
  ])
})

test('evidence reads runs and never flows; the front door does not show testing; nobody goes through the front door', () => {
  const arrow = (from: string, to: string) => wrongArrows({ [from]: `import '${to}'` }).length
  expect(arrow('evidence/blame.ts', '../run/journal.ts')).toBe(0)
  expect(arrow('evidence/blame.ts', '../flow/agent.ts')).toBe(1)
  expect(arrow('flow/agent.ts', '../evidence/blame.ts')).toBe(1)
  expect(arrow('cli/show.ts', '../evidence/blame.ts')).toBe(0)
  expect(arrow('index.ts', './testing/index.ts')).toBe(1)
  expect(arrow('flow/agent.ts', '../index.ts')).toBe(1)
  expect(arrow('flow/agent.ts', 'openrath/session')).toBe(1)
  expect(arrow('helpers/text.ts', './other.ts')).toBe(1)
})

test('a circle is found through any number of files', () => {
  const files = {
    'base/a.ts': "import './b.ts'",
    'base/b.ts': "import type { C } from './c.ts'",
    'base/c.ts': "export * from './a.ts'",
    'base/d.ts': "import './a.ts'",
  }
  expect(circles(files, 'types too')).toEqual([['base/a.ts', 'base/b.ts', 'base/c.ts', 'base/a.ts']])
  expect(circles(files, 'at run time')).toEqual([])
  expect(circles({ ...files, 'base/b.ts': "import { c } from './c.ts'" }, 'at run time')).toHaveLength(1)
})
