import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { writtenPages } from '../../docs/.vitepress/pages.ts'
import { withMeasured } from '../../scripts/docs-measured.ts'
import { providerKinds } from '../../src/model/kind.ts'
import { fragments } from './fragments.ts'
import { blocksOf, runPage } from './pages.ts'
import { run } from './run.ts'
import { read, root } from './tree.ts'

const pages = writtenPages().map(({ path }) => `docs/${path}`)
const withCode = pages.filter(path => blocksOf(read(path)).some(block => block.language === 'ts'))

for (const page of withCode) {
  test(`the code in ${page} prints what the page shows`, () => {
    const results = runPage(read(page))
    expect(results.length).toBeGreaterThan(0)
    for (const { shown, printed } of results) expect(printed).toBe(shown)
  })
}

test('programs in the docs and the README, and pieces of programs, have no type error', () => {
  const programs = [...withCode, 'README.md'].map(page => {
    const blocks = blocksOf(read(page)).filter(block => block.language === 'ts')
    const code = `${blocks.map(block => block.text).join('\n')}\nexport {}\n`
    return [page.replaceAll('/', '.').replace(/md$/, 'ts'), code]
  })
  const pieces = fragments()
  expect(Object.keys(pieces).length).toBeGreaterThan(25)
  // One that is wrong shows that the compiler has looked.
  const wrong = { 'wrong.1.ts': "session.too('local')\nexport {}\n" }
  const errors = errorsIn({ ...Object.fromEntries(programs), ...pieces, ...wrong })
  expect(errors.trim().split('\n')).toEqual([
    expect.stringMatching(/wrong\.1\.ts\(1,\d+\).*'too' does not exist/),
  ])
})

/** What the compiler says about files that lie beside the dependencies, so that they import what a user would. */
function errorsIn(files: Readonly<Record<string, string>>): string {
  const cache = join(root, 'node_modules/.cache')
  mkdirSync(cache, { recursive: true })
  const folder = mkdtempSync(join(cache, 'openrath-pages-'))
  try {
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
    const compilerOptions = { noUnusedLocals: false, noUnusedParameters: false, paths: {} }
    const settings = { extends: join(root, 'tsconfig.json'), compilerOptions, include: ['*.ts'] }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(settings))
    return run('npx', 'tsc', '-p', folder).stdout
  } finally {
    rmSync(folder, { recursive: true })
  }
}

test('the numbers of the page on reliability are those that the benchmarks printed', () => {
  const page = read('docs/reliability.md')
  // Mend it with: node scripts/docs-measured.ts
  expect(page).toBe(withMeasured(page, read('bench/README.md')))
  expect(page).toMatch(/^\| an effect .+ \| [\d.]+\sµs \|/m)
})

test('each sandbox, memory, store and model has a page', () => {
  const drivers = (layer: string) =>
    readdirSync(join(root, 'src', layer, 'drivers'), { withFileTypes: true })
      .filter(entry => entry.isDirectory() || entry.name === 'memory.ts')
      .map(({ name }) => `docs/${layer}-${name.replace('.ts', '')}.md`)
  const wanted = [
    ...['sandbox', 'memory', 'store', 'model'].flatMap(drivers),
    ...providerKinds.map(kind => `docs/model-${kind}.md`),
  ]
  expect(wanted.length).toBeGreaterThan(12)
  expect(wanted.filter(page => !pages.includes(page))).toEqual([])
})

test('every link in the docs leads somewhere', () => {
  const broken: string[] = []
  for (const page of [...pages, 'README.md', 'CONTRIBUTING.md', 'CHANGELOG.md']) {
    for (const [, target = ''] of read(page).matchAll(/\]\(([^)]+)\)/g)) {
      const path = target.replace(/#.*$/, '')
      if (/^https:/.test(target) || path === '') continue
      if (!existsSync(join(root, dirname(page), path))) broken.push(`${page}: ${target}`)
    }
  }
  expect(broken).toEqual([])
})
