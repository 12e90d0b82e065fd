/** What to do when this process exits. One listener serves all, and none stays when nothing is left to do. */
const waiting = new Set<() => void>()

/** Calls back when the process exits normally or by `process.exit`; a signal that kills it gives nobody the time. */
export function beforeExit(callback: () => void): Disposable {
  if (waiting.size === 0) process.on('exit', run)
  waiting.add(callback)
  return {
    [Symbol.dispose]() {
      if (waiting.delete(callback) && waiting.size === 0) process.off('exit', run)
    },
  }
}

function run(): void {
  for (const callback of waiting) {
    try {
      callback()
    } catch {
      // The next one still has its own to clean up.
    }
  }
}
