import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { writtenPages } from '../../docs/.vitepress/pages.ts'
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

test('the code in the docs and the README has no type error, read with the types of the package', () => {
  // Beside the dependencies, so that the programs import what a user would.
  const cache = join(root, 'node_modules/.cache')
  mkdirSync(cache, { recursive: true })
  const folder = mkdtempSync(join(cache, 'openrath-pages-'))
  try {
    for (const page of [...withCode, 'README.md']) {
      const programs = blocksOf(read(page)).filter(block => block.language === 'ts')
      const code = `${programs.map(block => block.text).join('\n')}\nexport {}\n`
      writeFileSync(join(folder, page.replaceAll('/', '.').replace(/md$/, 'ts')), code)
    }
    const compilerOptions = { noUnusedLocals: false, noUnusedParameters: false, paths: {} }
    const settings = { extends: join(root, 'tsconfig.json'), compilerOptions, include: ['*.ts'] }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(settings))
    expect(run('npx', 'tsc', '-p', folder).stdout).toBe('')
  } finally {
    rmSync(folder, { recursive: true })
  }
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
