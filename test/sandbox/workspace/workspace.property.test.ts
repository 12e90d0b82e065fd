import { chmodSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Workspace } from '../../../src/sandbox/workspace/workspace.ts'
import { torture } from '../../support/torture.ts'
import { lab, listing } from './make.ts'

/** The files as they should be, by path: what `listing` gives. A folder ends in `/`. */
type Model = Map<string, string>

type Step =
  | { readonly do: 'write'; readonly path: string; readonly content: string; readonly mode: number }
  | { readonly do: 'link'; readonly path: string; readonly target: string }
  | { readonly do: 'folder'; readonly path: string; readonly mode: number }
  | { readonly do: 'remove'; readonly path: string }
  | { readonly do: 'snapshot'; readonly everywhere: boolean }
  | { readonly do: 'restore'; readonly which: number }

const path = fc
  .array(fc.constantFrom('a', 'b', '.git', '%', 'ü', 'new\nline', '.gitmodules', 'a.b'), {
    minLength: 1,
    maxLength: 3,
  })
  .map(names => names.join('/'))

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('write' as const),
      path,
      content: fc.string(),
      mode: fc.constantFrom(0o644, 0o755, 0o600, 0o444),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('link' as const),
      path,
      target: fc.constantFrom('a', '../..', '/etc', 'b/a'),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('folder' as const),
      path,
      mode: fc.constantFrom(0o755, 0o700, 0o555),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('remove' as const), path }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('snapshot' as const), everywhere: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('restore' as const), which: fc.nat() }) },
)

test('random edits, snapshots and restores: the files always equal a model in memory', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async steps => {
      using place = await lab()
      const workspace = await place.workspace()
      let model: Model = new Map()
      const kept: { readonly tree: string; readonly model: Model }[] = []
      let touched: string[] = []
      for (const step of steps) {
        if (step.do === 'snapshot') {
          const { tree } = await workspace.snapshot(step.everywhere ? undefined : touched)
          for (const other of kept) expect(other.tree === tree).toBe(isSame(other.model, model))
          kept.push({ tree, model: new Map(model) })
          touched = []
        } else if (step.do === 'restore') {
          const chosen = kept[step.which % Math.max(1, kept.length)]
          if (chosen === undefined) continue
          expect(await workspace.restore(chosen.tree)).toMatchObject({ tree: chosen.tree, notRestored: [] })
          model = new Map(chosen.model)
          touched = []
        } else {
          edit(workspace, model, step)
          touched.push(step.path)
        }
        expect(listing(workspace.folder)).toEqual(Object.fromEntries(model))
      }
      const { tree } = await workspace.snapshot()
      const elsewhere = await place.workspace()
      await elsewhere.restore(tree)
      expect(listing(elsewhere.folder)).toEqual(Object.fromEntries(model))
      expect(place.fsck()).toEqual([])
    }),
    { numRuns: torture({ short: 25, full: 300 }) },
  )
})

type Edit = Exclude<Step, { do: 'snapshot' | 'restore' }>

/** Does it to the folder and to the model. What is in the way goes, also in folders that an ordinary user has to make writable first. */
function edit({ folder }: Workspace, model: Model, step: Edit): void {
  const onDisk = (path: string) => join(folder, Buffer.from(path, 'latin1').toString())
  const isRoot = process.getuid?.() === 0
  const locked = [...model].filter(([path, mode]) => !isRoot && path.endsWith('/') && mode === '555')
  for (const [path] of locked) chmodSync(onDisk(path), 0o755)
  change(onDisk, model, step)
  for (const [path] of locked) if (model.get(path) === '555') chmodSync(onDisk(path), 0o555)
}

function change(onDisk: (path: string) => string, model: Model, step: Edit): void {
  const names = step.path.split('/').map(name => Buffer.from(name).toString('latin1'))
  const key = names.join('/')
  const parents = names.slice(0, -1).map((_, i) => names.slice(0, i + 1).join('/'))
  const remove = (path: string) => {
    rmSync(onDisk(path), { recursive: true, force: true })
    for (const other of [...model.keys()]) {
      if (other === path || other === `${path}/` || other.startsWith(`${path}/`)) model.delete(other)
    }
  }
  const blocked = parents.find(parent => model.has(parent))
  if (step.do === 'remove') {
    if (blocked === undefined) remove(key)
    return
  }
  if (blocked !== undefined) remove(blocked)
  if (step.do === 'folder' && model.has(`${key}/`)) {
    model.set(`${key}/`, step.mode.toString(8))
    chmodSync(onDisk(key), step.mode)
    return
  }
  remove(key)
  for (const parent of parents) {
    if (model.has(`${parent}/`)) continue
    model.set(`${parent}/`, '755')
    mkdirSync(onDisk(parent))
  }
  if (step.do === 'write') {
    writeFileSync(onDisk(key), step.content)
    chmodSync(onDisk(key), step.mode)
    model.set(key, `${step.mode.toString(8)} ${Buffer.from(step.content).toString('latin1')}`)
  } else if (step.do === 'link') {
    symlinkSync(step.target, onDisk(key))
    model.set(key, `-> ${step.target}`)
  } else {
    mkdirSync(onDisk(key))
    chmodSync(onDisk(key), step.mode)
    model.set(`${key}/`, step.mode.toString(8))
  }
}

function isSame(one: Model, other: Model): boolean {
  return one.size === other.size && [...one].every(([path, value]) => other.get(path) === value)
}
