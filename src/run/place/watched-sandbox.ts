import type { ExecHandle, ExecOutput, ExecResult, Sandbox, SandboxFiles } from '../../sandbox/spec.ts'

/** Told before anything is changed; the change waits. */
export interface Watcher {
  /** These paths are about to be changed. */
  onTouch(paths: readonly string[]): Promise<void>
  /** A command is about to start, which may change anything. */
  onCommand(): Promise<void>
}

/** A sandbox as one call sees it: everything it changes is announced first. */
export function watched(sandbox: Sandbox, watcher: Watcher): Sandbox {
  const { id, backend, cwd, capabilities, hostPath, interpreters } = sandbox
  return {
    id,
    backend,
    cwd,
    capabilities,
    ...(hostPath !== undefined && { hostPath }),
    ...(interpreters && { interpreters }),
    ...(sandbox.expose && { expose: (port: number) => sandbox.expose?.(port) as Promise<string> }),
    files: watchedFiles(sandbox.files, watcher),
    exec: (command, options) => new AnnouncedExec(watcher.onCommand(), () => sandbox.exec(command, options)),
    // A tool that closes it would close it for everybody.
    close: async () => {},
    [Symbol.asyncDispose]: async () => {},
  }
}

function watchedFiles(files: SandboxFiles, { onTouch }: Watcher): SandboxFiles {
  return {
    read: (path, range) => files.read(path, range),
    stat: path => files.stat(path),
    list: path => files.list(path),
    search: query => files.search(query),
    async write(path, data, options) {
      await onTouch([path])
      return files.write(path, data, options)
    },
    async mkdir(path) {
      await onTouch([path])
      return files.mkdir(path)
    },
    async remove(path, options) {
      await onTouch([path])
      return files.remove(path, options)
    },
    async rename(from, to) {
      await onTouch([from, to])
      return files.rename(from, to)
    },
  }
}

/** A command that starts when it has been announced. */
class AnnouncedExec implements ExecHandle {
  readonly result: Promise<ExecResult>
  readonly #started: Promise<ExecHandle>
  #isKilled = false

  constructor(announced: Promise<void>, start: () => ExecHandle) {
    this.#started = announced.then(() => {
      const handle = start()
      if (this.#isKilled) handle.kill()
      return handle
    })
    this.result = this.#started.then(handle => handle.result)
    this.result.catch(() => {})
  }

  kill(): void {
    this.#isKilled = true
    void this.#started.then(
      handle => handle.kill(),
      () => {},
    )
  }

  async *[Symbol.asyncIterator](): AsyncIterator<ExecOutput> {
    yield* await this.#started
  }
}
