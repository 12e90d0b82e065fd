import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { blocksOf, runPage } from './pages.ts'
import { filesUnder, read, root } from './tree.ts'

const pages = filesUnder('docs', '.md').map(path => `docs/${path}`)

for (const page of pages.filter(path => blocksOf(read(path)).some(block => block.language === 'ts'))) {
  test(`the code in ${page} prints what the page shows`, () => {
    const results = runPage(read(page))
    expect(results.length).toBeGreaterThan(0)
    for (const { shown, printed } of results) expect(printed).toBe(shown)
  })
}

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
