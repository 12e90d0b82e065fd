import { digestOf } from '../../../base/digest.ts'
import { newId } from '../../../base/ids.ts'
import { newEntry } from '../../entry.ts'
import type { Memory, NewMemory } from '../../spec.ts'
import type { VikingClient } from './client.ts'
import { filesNamed, readAt } from './files.ts'
import { fileName, folderOf } from './places.ts'

/** The entry that holds a key already, and the others as they are to be written, each key once. */
export interface Sorted {
  /** For each of the given entries, its own. */
  readonly all: readonly Memory[]
  readonly fresh: readonly Memory[]
}

/** The id of an entry with a key is made of its scope and key, so that whoever writes it second finds it there. */
export async function sortByKey(
  client: VikingClient,
  given: readonly NewMemory[],
  now: number,
  signal?: AbortSignal,
): Promise<Sorted> {
  const known = new Map<string, Memory>()
  const fresh: Memory[] = []
  const all: Memory[] = []
  for (const entry of given) {
    const id = idOf(entry)
    const held =
      known.get(id) ?? (entry.key === undefined ? undefined : await heldBy(client, entry, id, signal))
    const kept = held ?? newEntry(entry, id, now)
    if (held === undefined) fresh.push(kept)
    known.set(id, kept)
    all.push(kept)
  }
  return { all, fresh }
}

export function idOf({ key, scope = 'agent' }: NewMemory): string {
  return key === undefined ? newId() : digestOf([scope, key]).slice(0, 32)
}

/** Its category may have changed, and with it the folder. */
async function heldBy(
  client: VikingClient,
  { scope = 'agent' }: NewMemory,
  id: string,
  signal?: AbortSignal,
): Promise<Memory | undefined> {
  const [uri] = await filesNamed(client, fileName(id), folderOf(scope), signal)
  return uri === undefined ? undefined : readAt(client, uri, signal)
}
