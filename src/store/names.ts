import { RathError, show } from '../base/errors.ts'
import type { StoreDriver } from './driver.ts'
import type { SessionRow } from './spec.ts'

const shortestPrefix = 4

/** The session that a name means: an id, a tag, or the beginning of exactly one id. */
export async function resolveName(driver: StoreDriver, name: unknown): Promise<SessionRow> {
  if (typeof name !== 'string' || name === '') {
    throw new RathError(
      'invalid-argument',
      `A session is named by its id, a prefix of it or a tag, not ${show(name)}.`,
    )
  }
  const id = await resolveId(driver, name)
  const row = await driver.sessionRow(id)
  if (row === undefined) throw await unknownSession(driver, name)
  return row
}

async function resolveId(driver: StoreDriver, name: string): Promise<string> {
  if (await driver.sessionRow(name)) return name
  const tagged = await driver.tagged(name)
  if (tagged !== undefined) return tagged
  const [only, ...more] = name.length < shortestPrefix ? [] : await driver.sessionIds(name, 6)
  if (only === undefined) throw await unknownSession(driver, name)
  if (more.length === 0) return only
  throw new RathError(
    'ambiguous-session',
    `${show(name)} begins more than one session id: ${[only, ...more].slice(0, 5).join(', ')}${more.length > 4 ? ', …' : ''}. Give more of it.`,
    { data: { candidates: [only, ...more] } },
  )
}

async function unknownSession(driver: StoreDriver, name: string): Promise<RathError> {
  const near = await nearestIds(driver, name)
  const hint = near.length > 0 ? ` Nearest: ${near.join(', ')}.` : ' The store has no session like it.'
  return new RathError('unknown-session', `There is no session ${show(name)}.${hint}`, {
    data: { nearest: near },
  })
}

/** Ids that share the longest beginning with a name. */
async function nearestIds(driver: StoreDriver, name: string): Promise<string[]> {
  for (let length = Math.min(name.length - 1, 36); length >= shortestPrefix; length--) {
    const ids = await driver.sessionIds(name.slice(0, length), 3)
    if (ids.length > 0) return ids
  }
  return []
}

/** Ids are made by us or come from a file; every database can hold one of these. */
export function checkId(id: unknown): asserts id is string {
  if (typeof id === 'string' && id !== '' && id.length <= 200 && !id.includes('\u0000') && id.isWellFormed())
    return
  throw new RathError('invalid-argument', `A session id is 1 to 200 characters of text, not ${show(id)}.`)
}

export function checkTag(tag: unknown): asserts tag is string {
  if (typeof tag === 'string' && tag.length <= 200 && /^[^\s\p{Cc}\p{Cs}]+$/u.test(tag)) return
  throw new RathError(
    'invalid-argument',
    `A tag is 1 to 200 characters without spaces or control characters, not ${show(tag)}.`,
  )
}
