/**
 * All that a remote place needs for files, search and changes: a way to run a script of `sh` in it. The scripts use what coreutils,
 * findutils and grep have in common with busybox.
 */
export interface Shell {
  /** The workspace as commands see it: a real path, and not `/`. */
  readonly root: string
  /** Runs a script with these arguments. Rejects when it could not be run, or the place is closed; any exit code is a result. */
  run(script: string, args: readonly string[], options?: ShellOptions): Promise<ShellResult>
}

export interface ShellOptions {
  /** The script's standard input, of which it reads everything. */
  readonly input?: Uint8Array
  /** The output may be long. */
  readonly isLong?: boolean
  readonly signal?: AbortSignal | undefined
}

export interface ShellResult {
  readonly exitCode: number
  /** Byte for byte. */
  readonly output: Uint8Array
  readonly errors: string
}

/** A word as `sh` reads it back. */
export function quote(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`
}
