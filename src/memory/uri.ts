import { RathError, show } from '../base/errors.ts'
import type { MemoryRef, MemoryTree, Scope } from './spec.ts'

const root = 'memory://'

/** `memory://user/ada/preference/ID`. Names are written so that a slash in one divides nothing. */
export function uriOf(scope: Scope, category: string, id: string): string {
  return `${root}${[...placesOf(scope), category, id].map(encode).join('/')}`
}

/** The id in a reference, and the scope that a URI says it is in. */
export function parseRef(ref: MemoryRef): { readonly id: string; readonly within?: string } | undefined {
  if (typeof ref !== 'string') {
    throw new RathError('invalid-argument', `A memory is named by its id or URI, not by ${show(ref)}.`)
  }
  if (!ref.startsWith(root)) return ref === '' ? undefined : { id: ref }
  const end = ref.lastIndexOf('/')
  const id = decode(ref.slice(end + 1))
  return id === '' || end < root.length ? undefined : { id, within: ref.slice(0, end) }
}

/** Whether an entry of this scope may be called by a URI that begins like this; the category may have changed since. */
export function isWithin(scope: Scope, within: string | undefined): boolean {
  if (within === undefined) return true
  const place = root + placesOf(scope).map(encode).join('/')
  return within === place || within.startsWith(`${place}/`)
}

/** A count of entries for each scope and category, as the tree below a URI. */
export function treeOf(
  counts: Iterable<readonly [scope: Scope, category: string, entries: number]>,
  uri: string = root,
  depth: number = Number.POSITIVE_INFINITY,
): MemoryTree {
  if (typeof uri !== 'string' || !uri.startsWith(root)) {
    throw new RathError(
      'invalid-argument',
      `A tree begins at a URI such as memory://user/ada, not at ${show(uri)}.`,
    )
  }
  const top: Node = { uri: uri === root ? root : uri.replace(/\/+$/, ''), entries: 0, children: new Map() }
  const start = uri.slice(root.length).split('/').filter(Boolean)
  for (const [scope, category, entries] of counts) {
    const places = [...placesOf(scope), category].map(encode)
    if (start.some((place, i) => places[i] !== place)) continue
    let node = top
    node.entries += entries
    for (const place of places.slice(start.length, start.length + depth)) {
      let child = node.children.get(place)
      if (child === undefined) {
        child = {
          uri: node.uri === root ? root + place : `${node.uri}/${place}`,
          entries: 0,
          children: new Map(),
        }
        node.children.set(place, child)
      }
      child.entries += entries
      node = child
    }
  }
  return finished(top)
}

interface Node {
  readonly uri: string
  entries: number
  readonly children: Map<string, Node>
}

function finished({ uri, entries, children }: Node): MemoryTree {
  const sorted = [...children.values()].sort((a, b) => (a.uri < b.uri ? -1 : 1))
  return { uri, entries, children: sorted.map(finished) }
}

/** The kind and, behind the first slash, the name, whatever that holds. */
function placesOf(scope: Scope): string[] {
  const slash = scope.indexOf('/')
  return slash < 0 ? [scope] : [scope.slice(0, slash), scope.slice(slash + 1)]
}

function encode(text: string): string {
  return encodeURIComponent(text).replaceAll('.', dotted(text))
}

/** A name of dots alone would be taken for a folder. */
function dotted(text: string): string {
  return text === '.' || text === '..' ? '%2E' : '.'
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return ''
  }
}
