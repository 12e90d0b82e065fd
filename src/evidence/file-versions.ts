import type { Digest } from '../base/digest.ts'
import { entryAt } from '../sandbox/workspace/compare.ts'
import type { ObjectStore } from '../sandbox/workspace/objects.ts'
import { textOf } from '../sandbox/workspace/patch.ts'
import type { TreeEntry } from '../sandbox/workspace/tree.ts'

/** Bytes of a file that is still compared line by line. */
const largest = 8 * 1024 * 1024

/** Files of trees, each looked up once: neighbouring states ask for the same. */
export class FileVersions {
  readonly objects: ObjectStore
  readonly #entries = new Map<string, TreeEntry | undefined>()
  /** The lines of the last two files, which are those that are compared. */
  readonly #lines = new Map<Digest, string[] | undefined>()

  constructor(objects: ObjectStore) {
    this.objects = objects
  }

  /** A file or a link; undefined when there is none. */
  at(tree: Digest, path: string): TreeEntry | undefined {
    const key = `${tree} ${path}`
    if (!this.#entries.has(key)) this.#entries.set(key, entryAt(this.objects, tree, path))
    const entry = this.#entries.get(key)
    return entry?.kind === 'file' || entry?.kind === 'link' ? entry : undefined
  }

  /** Undefined when it has none: it is binary, or very large. */
  lines(entry: TreeEntry): string[] | undefined {
    const known = this.#lines.get(entry.id)
    const lines = known ?? linesOf(textOf(this.objects, entry, largest))
    this.#lines.delete(entry.id)
    this.#lines.set(entry.id, lines)
    for (const oldest of this.#lines.keys()) if (this.#lines.size > 2) this.#lines.delete(oldest)
    return lines
  }
}

function linesOf(text: string | undefined): string[] | undefined {
  const lines = text?.split('\n')
  if (lines?.at(-1) === '') lines.pop()
  return lines
}
