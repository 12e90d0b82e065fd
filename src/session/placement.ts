import { RathError } from '../base/errors.ts'
import { canonicalJson, isPlainObject, type JsonObject } from '../base/json.ts'
import { foldAt } from './chain.ts'
import type { Chunk, Workspace } from './chunk.ts'

/** Where a session's tools run. */
export interface Placement {
  readonly backend: string
  readonly spec?: string | JsonObject
  readonly workspace?: Workspace
}

/**
 * What `to()` records of what it was told: a folder that is named from the current one (`.`, `./…`, `../…`, as the whole spec or as its
 * `path`) under its absolute name, so that it means the same folder to whoever goes on. Where there is no current folder, as in a browser,
 * and for any other text, as it was given.
 */
export function recordedSpec(spec: unknown, current = currentFolder()): unknown {
  if (current === undefined) return spec
  if (typeof spec === 'string') return absolute(spec, current)
  if (!isPlainObject(spec) || typeof spec.path !== 'string') return spec
  return { ...spec, path: absolute(spec.path, current) }
}

function absolute(path: string, current: string): string {
  if (!/^\.\.?(?:[/\\]|$)/.test(path)) return path
  const separator = current.startsWith('/') ? '/' : '\\'
  const parts = current.split(separator).filter(part => part !== '')
  for (const part of path.split(separator === '/' ? '/' : /[/\\]/)) {
    if (part === '..') parts.splice(Math.max(separator === '/' ? 0 : 1, parts.length - 1))
    else if (part !== '.' && part !== '') parts.push(part)
  }
  return separator === '/'
    ? `/${parts.join('/')}`
    : parts.join(separator) + (parts.length === 1 ? separator : '')
}

/** The one thing that this layer asks its surroundings, and the only place: what a folder is called is lost when it is not written down now. */
function currentFolder(): string | undefined {
  try {
    return (globalThis as { process?: { cwd?(): string } }).process?.cwd?.()
  } catch {
    return undefined
  }
}

export function placementAt(tip: Chunk | undefined): Placement | undefined {
  const chunk = foldAt(tip).placement
  if (chunk === undefined) return undefined
  return Object.freeze({
    backend: chunk.backend,
    ...(chunk.spec !== undefined && { spec: chunk.spec }),
    ...(chunk.workspace !== undefined && { workspace: chunk.workspace }),
  })
}

/**
 * Whether sessions run in different places, which is refused where one of them has files that nobody kept: those cannot be joined. One without a
 * place has no files and goes along with any.
 */
export function areApart(tips: readonly (Chunk | undefined)[]): boolean {
  const places = new Set<string>()
  let isKept = true
  for (const tip of tips) {
    const placement = placementAt(tip)
    if (placement === undefined) continue
    places.add(canonicalJson([placement.backend, placement.spec ?? null]))
    isKept &&= foldAt(tip).tree !== undefined
  }
  if (places.size < 2) return false
  if (isKept) return true
  const names = [...places].map(place => {
    const [backend, spec] = JSON.parse(place)
    return spec === null ? backend : `${backend} ${typeof spec === 'string' ? spec : JSON.stringify(spec)}`
  })
  throw new RathError(
    'placement-conflict',
    `These sessions are placed differently (${names.join(' and ')}), and not all of them have files that were kept, so their files cannot be joined. ` +
      `Move them to one place with to(), or merge with policy 'ours', 'theirs' or a function.`,
    { data: { places: names } },
  )
}
