export const blockSize = 1000

/** What is needed of a connection, which has numbers of its own. */
interface Asked {
  query<R>(text: string, values: readonly number[]): Promise<R[]>
}

/**
 * The small numbers that rows refer to each other by. A connection reserves them by the thousand, so that a writer knows them without asking.
 * They end with the connection: a crash of the server may forget that a block was given out.
 */
export class Numbers {
  #free: { next: number; end: number }[] = []

  /** Makes sure that `count` numbers can be taken. */
  async reserve(connection: Asked, count: number): Promise<void> {
    const left = this.#free.reduce((sum, { next, end }) => sum + end - next, 0)
    if (left >= count) return
    const blocks = await connection.query<{ block: number }>(
      "SELECT nextval('openrath.number_block') AS block FROM generate_series(1, $1::bigint)",
      [Math.ceil((count - left) / blockSize)],
    )
    for (const { block } of blocks) this.#free.push({ next: block * blockSize, end: (block + 1) * blockSize })
  }

  take(): number {
    const block = this.#free[0]
    if (block === undefined) throw new Error('Numbers are taken after they were reserved.')
    const number = block.next++
    if (block.next === block.end) this.#free.shift()
    return number
  }
}
