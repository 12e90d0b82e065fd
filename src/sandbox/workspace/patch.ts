import type { Difference } from './compare.ts'
import { linePatch } from './line-patch.ts'
import type { ObjectStore } from './objects.ts'
import type { TreeEntry } from './tree.ts'

export interface PatchLimits {
  readonly characters: number
  /** Bytes of a file. */
  readonly file: number
}

/** A unified patch, with modes where they differ; undefined where there is nothing to say, or no room to say it. */
export function patchOf(
  objects: ObjectStore,
  from: string,
  to: string,
  { before, after }: Omit<Difference, 'path'>,
  limits: PatchLimits,
): string | undefined {
  if (limits.characters <= 0) return undefined
  const text = modeLines(before, after) + (textPatch(objects, from, to, before, after, limits.file) ?? '')
  return text === '' ? undefined : cut(text, limits.characters).toWellFormed()
}

function modeLines(before: TreeEntry | undefined, after: TreeEntry | undefined): string {
  if (before === undefined || after === undefined) return ''
  const [old, now] = [gitMode(before), gitMode(after)]
  return old === now ? '' : `old mode ${old}\nnew mode ${now}\n`
}

function gitMode({ kind, mode }: TreeEntry): string {
  if (kind === 'link') return '120000'
  return (kind === 'folder' ? '40' : '100') + mode.toString(8).padStart(kind === 'folder' ? 4 : 3, '0')
}

function textPatch(
  objects: ObjectStore,
  from: string,
  to: string,
  before: TreeEntry | undefined,
  after: TreeEntry | undefined,
  most: number,
): string | undefined {
  if (before?.id === after?.id) return undefined
  const old = textOf(objects, before, most)
  const now = textOf(objects, after, most)
  if (old === undefined || now === undefined) return undefined
  return linePatch([before ? `a/${from}` : '/dev/null', after ? `b/${to}` : '/dev/null'], old, now)
}

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Empty for what is not there; undefined when it is no text, or too much of it. */
export function textOf(objects: ObjectStore, entry: TreeEntry | undefined, most: number): string | undefined {
  if (entry === undefined) return ''
  if (entry.kind !== 'file' && entry.kind !== 'link') return undefined
  const bytes = objects.read(entry.id)
  if (bytes.length > most || isBinary(bytes)) return undefined
  try {
    return strict.decode(bytes)
  } catch {
    return undefined
  }
}

/** As git decides it: a zero byte near the beginning. */
export function isBinary(bytes: Uint8Array): boolean {
  return bytes.subarray(0, 8_000).includes(0)
}

function cut(text: string, most: number): string {
  if (text.length <= most) return text
  const end = text.lastIndexOf('\n', most)
  const kept = text.slice(0, Math.max(0, end) + 1)
  return `${kept}… ${text.length - kept.length} more characters\n`
}
