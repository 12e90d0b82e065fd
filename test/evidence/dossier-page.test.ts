import { createHash } from 'node:crypto'
import { expect, it } from 'vitest'
import { dossierOfSessions } from '../../src/evidence/dossier/dossier-of.ts'
import { dossierHtml } from '../../src/evidence/dossier/html/page.ts'
import { dossierMarkdown } from '../../src/evidence/dossier/markdown.ts'
import { visible, visibleLine } from '../../src/evidence/dossier/visible.ts'
import type { Session } from '../../src/session/session.ts'
import { hostile, hostileSession, longSession } from './dossier-make.ts'

const pageOf = async (session: Session) => dossierHtml(await dossierOfSessions([session]))

it('a page asks for nothing: no address, no link out of it, no attribute that acts', async () => {
  const page = await pageOf(longSession(60))
  expect(page).not.toMatch(/\b(src|srcset|action|ping|background|style|on\w+)\s*=\s*["']/i)
  expect([...page.matchAll(/href="([^"]*)"/g)].every(([, target = '']) => target.startsWith('#'))).toBe(true)
  expect(page).not.toMatch(/@import|url\(|https?:/)
})

it('the policy of a page allows its one style and its one script by digest, and nothing else', async () => {
  const page = await pageOf(longSession(20))
  const digestOf = (tag: string) => {
    const found = [...page.matchAll(new RegExp(`<${tag}>([\\s\\S]*?)</${tag}>`, 'g'))]
    expect(found).toHaveLength(1)
    return createHash('sha256')
      .update(found[0]?.[1] as string)
      .digest('base64')
  }
  const [, policy = ''] = page.match(/Content-Security-Policy" content="([^"]*)"/) ?? []
  expect(policy.replaceAll('&#39;', "'")).toBe(
    `default-src 'none'; style-src 'sha256-${digestOf('style')}'; script-src 'sha256-${digestOf('script')}'; base-uri 'none'; form-action 'none'`,
  )
})

it('whatever was recorded is text on the page, wherever it stands', async () => {
  const page = await pageOf(hostileSession())
  expect(page.match(/<script/g)).toHaveLength(1)
  expect(page).not.toMatch(/<img|<iframe|<svg onload|<a href="javascript/i)
  expect(page).not.toContain('\u001b')
  expect(page).not.toMatch(/[\u202a-\u202e\u2066-\u2069]/)
  for (const part of ['&lt;/script&gt;', '&lt;img src=x onerror=', '⟨U+202E⟩', '⟨ESC⟩[31m'])
    expect(page).toContain(part)
})

it('recorded text cannot leave its fence in Markdown', async () => {
  const text = dossierMarkdown(await dossierOfSessions([hostileSession()]))
  const outside = text.replace(/^(`{3,})\w*\n[\s\S]*?\n\1$/gm, '').replace(/(?<!\\)`[^`\n]*`/g, '')
  expect(outside).not.toMatch(/(?<!\\)<img/)
  expect(outside).not.toContain('](')
  expect(text).not.toContain('\u001b')
  expect(text).not.toContain('\u202e')
})

it('nothing hides in text: controls, codes, marks and lone surrogates become signs, line ends stay', () => {
  expect(visible('a\r\nb\tc\u0007\u001b[0m\u0085\u202e\u200b\ufeff\ud800\u{e0041}')).toBe(
    'a\nb\tc⟨BEL⟩⟨ESC⟩[0m⟨U+0085⟩⟨U+202E⟩⟨U+200B⟩⟨U+FEFF⟩\ufffd⟨U+E0041⟩',
  )
  expect(visible('नमस्ते 👩‍💻 שלום')).toBe('नमस्ते 👩‍💻 שלום')
  expect(visibleLine('a\nb\tc')).toBe('a ↵ b c')
  expect(hostile).toContain('</script>')
})

it('a page says how much of a text it shows, and the digest of all of it', async () => {
  const page = await pageOf(longSession(10).append({ kind: 'assistant', text: 'y'.repeat(20_000) }))
  expect(page).toMatch(/The first 8,000 of 20,000 characters\. Of all of it, sha256 <code>[0-9a-f]{64}/)
})

it('has headings in order, landmarks and a language', async () => {
  const page = await pageOf(longSession(60))
  const levels = [...page.matchAll(/<h([1-6])/g)].map(([, level]) => Number(level))
  expect(levels.filter(level => level === 1)).toHaveLength(1)
  for (const [i, level] of levels.entries()) expect(level - (levels[i - 1] ?? 0)).toBeLessThanOrEqual(1)
  for (const part of ['<html lang="en">', '<header>', '<nav aria-label', '<main>', '<footer>'])
    expect(page).toContain(part)
})
