import { constants } from 'node:fs'
import { open, realpath } from 'node:fs/promises'
import { basename, relative, resolve, sep } from 'node:path'
import { RathError, show } from '../base/errors.ts'
import { isPlainObject } from '../base/json.ts'
import { cleanText } from './check.ts'
import { fetchText, type Network, openInternet } from './fetch-text.ts'
import { piecesOf } from './pieces.ts'
import type { NewMemory, Resource, Scope } from './spec.ts'

export interface ResourceLimits {
  /** Bytes of a file or an answer, or characters of a text, at most. Default 5,000,000. */
  readonly maximumBytes?: number
  /** Milliseconds for all of a fetch, redirects included. Default 30,000. */
  readonly timeoutMs?: number
  readonly network?: Network
}

export interface ReadResource {
  readonly name: string
  readonly scope: Scope
  /** All of it, for a backend that divides texts itself. */
  readonly text: string
  readonly entries: readonly NewMemory[]
}

/** The key of a resource's first piece; the others follow in numbers. */
const resourceKey = (name: string, piece: number) => `${name}#${piece}`

/**
 * Reads a resource and divides it into entries with keys by their place. Reads a text it is given, a file that really lies inside `root`, and
 * an address whose host the caller has allowed; nothing else, whatever the names say.
 */
export async function readResource(
  resource: Resource,
  limits: ResourceLimits = {},
  signal?: AbortSignal,
): Promise<ReadResource> {
  const { maximumBytes = 5_000_000, timeoutMs = 30_000, network = openInternet } = limits
  const { text, from } = await textOf(resource, { maximumBytes, timeoutMs, network }, signal)
  if (text.length > maximumBytes) throw tooLarge(from, text.length, maximumBytes)
  if (text.includes('\0')) throw refused(from, 'it holds bytes that are no text')
  const name = cleanText(resource.name ?? from)
  const scope = resource.scope ?? `resource/${name}`
  const whole = cleanText(text)
  const pieces = piecesOf(whole)
  if (pieces.length === 0) throw refused(from, 'there is nothing in it')
  return {
    name,
    scope,
    text: whole,
    entries: pieces.map((piece, index) => ({
      text: piece,
      scope,
      category: 'resource',
      key: resourceKey(name, index),
      source: { resource: from, series: `resource/${name}`, index },
    })),
  }
}

type Limits = Required<ResourceLimits>

async function textOf(
  resource: Resource,
  limits: Limits,
  signal: AbortSignal | undefined,
): Promise<{ readonly text: string; readonly from: string }> {
  if (!isPlainObject(resource)) throw noResource(resource)
  if ('text' in resource) {
    if (typeof resource.text === 'string' && typeof resource.name === 'string' && resource.name !== '')
      return { text: resource.text, from: resource.name }
    throw new RathError(
      'invalid-argument',
      `A text is taken in under a name: { name, text }, not ${show(resource)}.`,
    )
  }
  if ('file' in resource) return readFileInside(resource.file, resource.root, limits.maximumBytes)
  if ('url' in resource && Array.isArray(resource.allow)) {
    const { text, type } = await fetchText(resource.url, resource.allow, limits, limits.network, signal)
    return { text: /html/i.test(type) ? pageText(text) : text, from: resource.url }
  }
  throw noResource(resource)
}

function noResource(resource: unknown): RathError {
  return new RathError(
    'invalid-argument',
    `A resource is { name, text }, { file, root } or { url, allow }, not ${show(resource)}.`,
  )
}

async function readFileInside(
  file: string,
  root: string,
  maximumBytes: number,
): Promise<{ readonly text: string; readonly from: string }> {
  if (
    typeof file !== 'string' ||
    typeof root !== 'string' ||
    file === '' ||
    root === '' ||
    /\0/.test(file + root)
  ) {
    throw new RathError(
      'invalid-argument',
      `A file is taken in from a folder: { file, root }, not ${show(file)} in ${show(root)}.`,
    )
  }
  const inside = await real(root, root)
  const path = await real(resolve(inside, file), file)
  if (!path.startsWith(inside.endsWith(sep) ? inside : inside + sep))
    throw refused(file, `it leads outside ${root}. Name a file inside it`)
  // Links were followed above: one that was put there since is not.
  const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    error => {
      throw refused(file, (error as Error).message, error)
    },
  )
  try {
    const stat = await handle.stat()
    if (!stat.isFile()) throw refused(file, 'it is no file')
    if (stat.size > maximumBytes) throw tooLarge(file, stat.size, maximumBytes)
    const text = (await handle.readFile()).toString('utf8')
    return { text, from: relative(inside, path).split(sep).join('/') || basename(path) }
  } finally {
    await handle.close()
  }
}

async function real(path: string, given: string): Promise<string> {
  try {
    return await realpath(path)
  } catch (error) {
    throw refused(
      given,
      (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'it is not there' : String(error),
      error,
    )
  }
}

function tooLarge(what: string, size: number, limit: number): RathError {
  return refused(
    what,
    `it has ${size.toLocaleString('en')} bytes, and ${limit.toLocaleString('en')} are taken in at most`,
  )
}

function refused(what: string, why: string, cause?: unknown): RathError {
  return new RathError('resource-refused', `${show(what)} was not taken in: ${why}.`, {
    ...(cause !== undefined && { cause }),
    data: { resource: what },
  })
}

/**
 * The words of a page of HTML. What scripts, styles and comments hold is none of them. A stranger wrote it, so it is gone through once from front
 * to back: what is never closed reaches to the end, and nothing is looked for twice.
 */
export function pageText(html: string): string {
  const parts: string[] = []
  let at = 0
  for (;;) {
    const start = html.indexOf('<', at)
    if (start < 0) break
    parts.push(html.slice(at, start))
    const { end, leaves } = markupAt(html, start)
    parts.push(leaves)
    at = end
  }
  parts.push(html.slice(at))
  return inLines(parts.join('').replace(entity, (_, name: string) => entities[name] ?? ' '))
}

/** Where the markup ends that begins here, and what stays of it in the text. */
function markupAt(html: string, start: number): { readonly end: number; readonly leaves: string } {
  markup.lastIndex = start
  const tag = markup.exec(html)?.[1]?.toLowerCase()
  if (tag === undefined) return { end: start + 1, leaves: '<' }
  if (tag === '!--') return { end: behind('-->', html, start), leaves: ' ' }
  if (unread.has(tag)) return { end: behind('>', html, behind(`</${tag}`, html, start)), leaves: ' ' }
  return { end: behind('>', html, start), leaves: blocks.test(tag) ? '\n' : '' }
}

/** A comparison such as `a < b` is none. */
const markup = /<(!--|[!?]|\/?[a-z][a-z\d-]*)/iy
const unread = new Set(['script', 'style', 'noscript', 'template'])
const blocks = /^\/?(?:p|div|br|li|h\d|tr|section|article|ul|ol|table|pre|blockquote)$/

/** The place behind what closes something, or the end. */
function behind(mark: string, html: string, start: number): number {
  const closing = new RegExp(mark, 'gi')
  closing.lastIndex = start
  return closing.test(html) ? closing.lastIndex : html.length
}

/** One space between words, and one empty line at most. */
function inLines(text: string): string {
  const lines = text.split('\n').map(line => line.replace(/\s+/g, ' ').trim())
  return lines.join('\n').replace(/\n{3,}/g, '\n\n')
}

const entity = /&(amp|lt|gt|quot|nbsp|#39|apos);/g
const entities: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  nbsp: ' ',
  '#39': "'",
  apos: "'",
}
