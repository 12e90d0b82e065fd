import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { allPages, groupedPages, type Page } from '../../docs/.vitepress/pages.ts'
import { isFullLength } from '../support/torture.ts'
import { exportsOf } from './imports.ts'
import { run } from './run.ts'
import { filesUnder, read, root } from './tree.ts'

const site = join(root, 'docs/.vitepress/dist')
let pages: Page[]

if (!isFullLength) console.log('not tested: the site of the docs, which npm run test:torture builds')

describe.runIf(isFullLength)('the site of the docs', () => {
  // Fails on a link that leads nowhere, on Markdown that is no page, on code that cannot be coloured.
  beforeAll(() => {
    const { status, stdout, stderr } = run(process.execPath, 'scripts/docs.ts')
    expect(status, stdout + stderr).toBe(0)
    pages = allPages()
  })

  test('every page is built, is in the side bar once, and has a title', () => {
    const shown = groupedPages().flatMap(group => group.pages.map(page => page.path))
    expect(shown.toSorted()).toEqual(pages.map(page => page.path).filter(path => path !== 'index.md'))
    for (const { path, title } of pages) {
      expect(existsSync(join(site, path.replace(/md$/, 'html'))), path).toBe(true)
      expect(title, path).not.toContain('.md')
    }
  })

  test('every link to a heading leads to one', () => {
    const files = filesUnder('docs/.vitepress/dist', '.html')
    const html = new Map(files.map(path => [`/${path}`, read(`docs/.vitepress/dist/${path}`)]))
    const broken = [...html].flatMap(([page, text]) =>
      [...text.matchAll(/ href="([^"#]*)#([^"]+)"/g)].flatMap(([, to = '', id = '']) => {
        if (/^https?:/.test(to)) return []
        const { pathname } = new URL(to, `file://${page}`)
        const target = html.get(pathname.replace(/\/$/, '/index.html'))
        return target?.includes(` id="${decodeURIComponent(id)}"`) ? [] : [`${page}: ${to}#${id}`]
      }),
    )
    expect(broken).toEqual([])
  })

  test('llms.txt links every page to a text that is there, and llms-full.txt has their words', () => {
    const list = readFileSync(join(site, 'llms.txt'), 'utf8')
    const full = readFileSync(join(site, 'llms-full.txt'), 'utf8')
    const links = [...list.matchAll(/^- \[[^\]]+\]\(([^)]+)\)/gm)].map(([, path = '']) => path)
    expect(links.toSorted()).toEqual(pages.map(page => page.path).filter(path => path !== 'index.md'))
    for (const path of links) expect(readFileSync(join(site, path), 'utf8'), path).toBe(read(`docs/${path}`))
    for (const { path, markdown } of pages.filter(({ path }) => !/^(api\/|index)/.test(path)))
      expect(full.includes(markdown.trim()), path).toBe(true)
  })

  test('the reference has every name of every door', () => {
    const reference = pages
      .filter(({ path }) => path.startsWith('api/'))
      .map(({ markdown }) => markdown)
      .join('\n')
    const doors = Object.values<{ types?: string }>(JSON.parse(read('package.json')).exports)
    const names = doors.flatMap(({ types }) => {
      if (!types) return []
      const { values, types: more } = exportsOf(types, read(types))
      return [...values, ...more]
    })
    expect(names.length).toBeGreaterThan(200)
    expect(names.filter(name => !reference.includes(`\n## ${name} {#`))).toEqual([])
  })

  test('search looks in all pages, and nothing on the site comes from another host', () => {
    const assets = filesUnder('docs/.vitepress/dist/assets', '.js')
    const index = assets.find(path => path.includes('localSearchIndex'))
    expect(index).toBeDefined()
    const words = read(`docs/.vitepress/dist/assets/${index}`)
    for (const { path } of pages.filter(({ path }) => path !== 'index.md'))
      expect(words.includes(`/${path.replace(/(index)?\.md$/, '')}`), path).toBe(true)
    for (const path of filesUnder('docs/.vitepress/dist', '.html'))
      expect(read(`docs/.vitepress/dist/${path}`)).not.toMatch(
        /(src|href)="https?:[^"]*\.(js|css|woff2?|png|svg)"/,
      )
  })
})
