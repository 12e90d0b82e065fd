import { RathError } from '../base/errors.ts'

/** A copy of files that several sandboxes are made of. It is removed when all of them, and who made it, have let go of it. */
export class SharedCopy {
  readonly id: string
  readonly #remove: () => Promise<void>
  #holders = 1

  /** Held by whoever made it. */
  constructor(id: string, remove: () => Promise<void>) {
    this.id = id
    this.#remove = remove
  }

  hold(): void {
    this.#holders++
  }

  async release(): Promise<void> {
    if (--this.#holders === 0) await this.#remove()
  }
}

/** Opens so many sandboxes from a copy that is made for them, all or none, and lets go of the copy. */
export async function openAll<T extends AsyncDisposable>(
  count: number,
  makeCopy: () => Promise<SharedCopy>,
  open: (copy: SharedCopy) => Promise<T>,
): Promise<readonly T[]> {
  if (!Number.isInteger(count) || count < 1) {
    throw new RathError('invalid-argument', `A sandbox is forked once or more, not ${count} times.`)
  }
  const copy = await makeCopy()
  const opened = await Promise.allSettled(Array.from({ length: count }, () => open(copy)))
  const sandboxes = opened.flatMap(end => (end.status === 'fulfilled' ? [end.value] : []))
  const failed = opened.find(end => end.status === 'rejected')
  if (failed !== undefined) {
    await Promise.allSettled(sandboxes.map(sandbox => sandbox[Symbol.asyncDispose]()))
  }
  await copy.release()
  if (failed !== undefined) throw failed.reason
  return sandboxes
}
