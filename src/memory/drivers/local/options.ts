/** How a file of memories is opened. Apart from the connection: whoever reads these types need not know those of `node:sqlite`. */
export interface DatabaseOptions {
  /** `full` (default) survives a power cut; `normal` every crash of the process. */
  readonly durability?: 'normal' | 'full'
  /** Milliseconds to wait for another process. Default 30,000. */
  readonly busyTimeout?: number
}
