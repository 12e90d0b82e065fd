import { RathError, show } from '../../../base/errors.ts'
import type { Scope } from '../../spec.ts'

/** `~` is the caller's own place on the server: `viking://user/NAME`. */
const home = 'viking://~'
/** What we write ourselves. What the server's own extraction writes lies beside it. */
export const ours = `${home}/memories/openrath`
export const memories = `${home}/memories`
export const resources = `${home}/resources`
/** Resources that everybody of the account has. */
export const sharedResources = 'viking://resources'
/** Folders on the server hold names of up to 255 bytes. */
const longestName = 200

export interface EntryAddress {
  readonly scope: Scope
  readonly category: string
  readonly id: string
  /** False for files that others wrote: the server's extraction, a resource, a person. */
  readonly own: boolean
}

/** The file of an entry of ours: `viking://~/memories/openrath/user/ada/preference/ID.md`. */
export function fileOf(scope: Scope, category: string, id: string): string {
  return `${folderOf(scope)}/${segment(category)}/${fileName(id)}`
}

/** What the file of an entry of ours is called, wherever it lies. */
export function fileName(id: string): string {
  return `${encode(id)}.md`
}

/** The folder of a scope, and of every scope that it covers. */
export function folderOf(scope: Scope): string {
  return `${ours}/${scope.split('/').map(segment).join('/')}`
}

export function resourceFolder(name: string): string {
  return `${resources}/openrath/${segment(name)}`
}

/** An address as the server gives it, with the caller's own place written as `~`. */
export function homeward(uri: string): string {
  return uri.replace(/^viking:\/\/user\/[^/]+(?=\/|$)/, home).replace(/\/$/, '')
}

/** What a file is to us; undefined for files that are no memories, such as summaries of a folder. */
export function placeOf(given: string): EntryAddress | undefined {
  const uri = homeward(given)
  const name = uri.slice(uri.lastIndexOf('/') + 1)
  if (name.startsWith('.') || name === '' || uri.split('/').includes('..')) return undefined
  if (uri.startsWith(`${ours}/`)) {
    const parts = uri.slice(ours.length + 1).split('/')
    if (!name.endsWith('.md') || parts.length < 3) return undefined
    const scope = parts.slice(0, -2).map(decode).join('/')
    return { scope, category: decode(parts.at(-2) as string), id: decode(name.slice(0, -3)), own: true }
  }
  const id = `viking.${encode(uri.slice('viking://'.length))}`
  if (uri.startsWith(`${memories}/`)) {
    const [folder = '', ...below] = uri.slice(memories.length + 1).split('/')
    const category = below.length > 0 ? folder : folder.replace(/\.\w+$/, '')
    return { scope: 'user', category, id, own: false }
  }
  for (const top of [`${resources}/openrath`, resources, sharedResources]) {
    if (!uri.startsWith(`${top}/`)) continue
    const [folder = ''] = uri.slice(top.length + 1).split('/')
    return { scope: `resource/${decode(folder)}`, category: 'resource', id, own: false }
  }
  return undefined
}

/** The address in the id of a file that others wrote. */
export function foreignFile(id: string): string | undefined {
  if (!id.startsWith('viking.')) return undefined
  const uri = `viking://${decode(id.slice('viking.'.length))}`
  return placeOf(uri)?.id === id ? uri : undefined
}

/** The name of a folder or file. */
function segment(text: string): string {
  const encoded = encode(text) || '='
  if (encoded.length <= longestName) return encoded
  throw new RathError(
    'invalid-argument',
    `${show(text)} is too long a name for OpenViking, where it is the name of a folder: use at most ${longestName} letters.`,
  )
}

/** Letters, digits, `_` and `-` as they are, dots within; every other byte as `=2F`. */
function encode(text: string): string {
  return encodeURIComponent(text)
    .replace(/[!'()*~]/g, character => `%${character.charCodeAt(0).toString(16)}`)
    .replace(/^\.|\.$/g, '%2E')
    .replaceAll('%', '=')
}

function decode(text: string): string {
  if (text === '=') return ''
  try {
    return decodeURIComponent(text.replaceAll('=', '%'))
  } catch {
    return text
  }
}
