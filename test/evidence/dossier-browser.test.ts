import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Browser, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, type TestContext } from 'vitest'
import { dossierOfSessions } from '../../src/evidence/dossier/dossier-of.ts'
import { dossierHtml } from '../../src/evidence/dossier/html/page.ts'
import type { Session } from '../../src/session/session.ts'
import { torture } from '../support/torture.ts'
import { dossierOfStory, environment, hostileSession, longSession, story } from './dossier-make.ts'

const program = (process.env.PATH ?? '')
  .split(delimiter)
  .map(folder => join(folder, 'chromium'))
  .find(path => existsSync(path))

/** What a page said and asked for while it was open. */
interface Opened {
  readonly page: Page
  readonly noise: readonly string[]
}

describe('in a browser', () => {
  let browser: Browser | undefined
  let folder: string
  let problem =
    program === undefined ? 'there is no chromium on the PATH; apt-get install chromium' : undefined
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'dossier-page-'))
    if (program === undefined) return
    try {
      browser = await chromium.launch({ executablePath: program, args: ['--no-sandbox'], timeout: 0 })
    } catch (error) {
      problem = `chromium does not start here: ${String(error).split('\n')[0]}`
    }
  })
  afterAll(async () => {
    await browser?.close()
    await rm(folder, { recursive: true, force: true })
  })

  async function open(
    context: TestContext,
    text: string,
    width: number,
    javaScriptEnabled = true,
  ): Promise<Opened> {
    if (browser === undefined) return context.skip(problem)
    const path = join(folder, 'dossier.html')
    await writeFile(path, text)
    const page = await browser.newPage({ viewport: { width, height: 800 }, javaScriptEnabled })
    page.setDefaultTimeout(0)
    context.onTestFinished(() => page.close())
    const noise: string[] = []
    const { href } = pathToFileURL(path)
    page.on('console', message => noise.push(message.text()))
    page.on('pageerror', error => noise.push(error.message))
    page.on('request', request => request.url() !== href && noise.push(request.url()))
    await page.goto(href)
    return { page, noise }
  }

  const pageOf = async (session: Session) => dossierHtml(await dossierOfSessions([session], { environment }))

  const chunks = torture({ short: 3_000, full: 10_000 })
  it(`a run of ${chunks} chunks opens, filters and leads to a step, without an error or a request`, async context => {
    const text = await pageOf(longSession(chunks))
    expect(text.length).toBeLessThan(12_000_000)
    const { page, noise } = await open(context, text, 1280)
    expect(await page.locator('.step').count()).toBeGreaterThan(chunks)
    expect(await page.locator('#s2000').isVisible()).toBe(false)
    await page.evaluate(`location.hash = '#s2000'`)
    await page.locator('#s2000').waitFor({ state: 'visible' })
    await page.selectOption('.filter [name=kind]', 'error')
    await page.locator('.filter output', { hasText: 'steps' }).waitFor()
    expect(await page.locator('.step:not([hidden])').count()).toBe(
      await page.locator('.step[data-kind=error]').count(),
    )
    expect(noise).toEqual([])
  })

  it('at 320 pixels nothing is wider than the page', async context => {
    await using made = await story()
    const pages = [
      dossierHtml(await dossierOfStory(made.store, made.run)),
      await pageOf(hostileSession()),
      await pageOf(longSession(300)),
    ]
    for (const text of pages) {
      const { page, noise } = await open(context, text, 320)
      await page.evaluate(`for (const fold of document.querySelectorAll('details')) fold.open = true`)
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320)
      expect(await page.evaluate(tooWide)).toEqual([])
      expect(noise).toEqual([])
    }
  })

  it('hostile text does nothing, and is there to be read', async context => {
    const { page, noise } = await open(context, await pageOf(hostileSession()), 1000)
    expect(await page.title()).toContain('– dossier')
    expect(await page.title()).not.toBe('taken')
    expect(
      await page
        .locator('main img, main iframe, main script, main style, main a[href^="javascript"]')
        .count(),
    ).toBe(0)
    expect(await page.locator('#answer').textContent()).toContain(
      '<img src=x onerror="document.title = \'taken\'">',
    )
    expect(noise).toEqual([])
  })

  it('on paper folded parts are open, also without its script', async context => {
    for (const scripted of [true, false]) {
      const { page } = await open(context, await pageOf(longSession(200)), 800, scripted)
      const folded = page.locator('#s150 .line')
      expect(await folded.isVisible()).toBe(false)
      await page.emulateMedia({ media: 'print' })
      expect(await folded.isVisible()).toBe(true)
      expect(await page.locator('nav').isVisible()).toBe(false)
    }
  })

  it('text stands out from the paper, light and dark', async context => {
    const { page } = await open(context, await pageOf(longSession(80)), 1000)
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      expect(await page.evaluate(faint), colorScheme).toEqual([])
    }
  })
})

/** What runs in the page is text: the types of a browser are not those of this program. Elements that reach over the right edge, by name; what a row of the graph cuts off with dots does not. */
const tooWide = `[...document.querySelectorAll('main *, header *, nav *')]
  .filter(element => !element.closest('svg, .graph p'))
  .filter(element => element.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5)
  .map(element => element.localName + '.' + element.className)`

/** Colours of text with less than 4.5 to 1 on the page's own, which WCAG asks for. */
const faint = `(() => {
  const brightness = colour => {
    const [r, g, b] = colour.match(/[\\d.]+/g).map(part => {
      const value = Number(part) / 255
      return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
    })
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  const paper = brightness(getComputedStyle(document.body).backgroundColor)
  const colours = new Set([...document.querySelectorAll('body *:not(svg *)')].map(element => getComputedStyle(element).color))
  return [...colours].filter(colour => {
    const ink = brightness(colour)
    return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05) < 4.5
  })
})()`
