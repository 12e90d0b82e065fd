import { type Digest, sha256 } from '../../../base/digest.ts'
import { RathError } from '../../../base/errors.ts'
import type { Store } from '../../../store/spec.ts'
import type { Dossier } from '../dossier.ts'
import { html, type Markup } from './markup.ts'

/** What `rath verify` found about a page that `rath dossier` wrote. */
export interface PageVerification {
  /** The page is as it was written, and every head that it names was found and recomputed. */
  readonly ok: boolean
  readonly problem?: string
  readonly heads: readonly HeadVerification[]
}

export interface HeadVerification {
  readonly session: string
  readonly head: Digest
  /** `missing`: the store does not have it, so nothing can be said. `other`: the session has no such chunk. */
  readonly found: 'verified' | 'missing' | 'altered' | 'other'
  readonly reason?: string
}

const open = '0'.repeat(64)
const sealPattern = /<meta name="openrath:sha256" content="([0-9a-f]{64})">/
const headsPattern = /<meta name="openrath:heads" content="([^"]*)">/

/** What a page says about itself to a program: the heads that cover what it shows, and room for its own digest. */
export function sealMarks({ integrity }: Dossier): Markup {
  const heads = integrity.heads.map(({ session, head }) => [session, head])
  return html`<meta name="openrath:heads" content="${JSON.stringify(heads)}">
<meta name="openrath:sha256" content="${open}">`
}

/** Puts the digest of a page in its place: that of the page with zeros there. */
export function sealed(page: string): string {
  return page.replace(sealPattern, `<meta name="openrath:sha256" content="${sha256(page)}">`)
}

/**
 * Whether a page is as it was written, and what a store says of the heads that it names. The words on it were made of the record: without a
 * store that has the heads, only the page itself is verified. Whoever can rewrite the page can compute a new digest, too.
 */
export async function verifyPage(page: string, store?: Store): Promise<PageVerification> {
  const seal = sealPattern.exec(page)?.[1]
  const written = headsPattern.exec(page)?.[1]
  if (seal === undefined || written === undefined) {
    const problem =
      'This page of HTML has no seal: it is not a dossier of rath, or one of an earlier version. Verify the bundle it was made of, or write it again with rath dossier.'
    return { ok: false, problem, heads: [] }
  }
  if (sha256(page.replace(sealPattern, `<meta name="openrath:sha256" content="${open}">`)) !== seal) {
    const problem = `The page is not as it was written: its digest is not ${seal}. Write it again with rath dossier, or verify the bundle.`
    return { ok: false, problem, heads: [] }
  }
  const heads: HeadVerification[] = []
  for (const [session, head] of JSON.parse(unescaped(written)) as [string, Digest][])
    heads.push({ session, head, ...(await lookUp(session, head, store)) })
  return { ok: heads.every(({ found }) => found === 'verified'), heads }
}

async function lookUp(
  id: string,
  head: Digest,
  store: Store | undefined,
): Promise<Pick<HeadVerification, 'found' | 'reason'>> {
  if (store === undefined) return { found: 'missing', reason: 'there is no store here' }
  try {
    const session = await store.sessions.get(id)
    const { ok, problem } = session.verify()
    if (!ok) return { found: 'altered', ...(problem && { reason: problem.reason }) }
    // It may have been continued since.
    return session.chunks.find(chunk => chunk.id === head)
      ? { found: 'verified' }
      : { found: 'other', reason: `the session has no chunk ${head}` }
  } catch (error) {
    if (!(error instanceof RathError)) throw error
    if (error.code === 'unknown-session') return { found: 'missing', reason: 'the store does not have it' }
    return { found: 'altered', reason: error.message }
  }
}

const characters: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }

function unescaped(text: string): string {
  return text.replace(/&(amp|lt|gt|quot|#39);/g, (_, name: string) => characters[name] as string)
}
