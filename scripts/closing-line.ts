import type { Reporter, SerializedError, TestModule, Vitest } from 'vitest/node'

/** Ends the run with one plain line, `12 passed, 0 failed`, for whoever reads only the last. */
export default class ClosingLine implements Reporter {
  #vitest: Vitest | undefined

  onInit(vitest: Vitest): void {
    this.#vitest = vitest
  }

  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    // What went wrong outside of any test, in a file or around all of them, is a failure too.
    const count = { passed: 0, failed: unhandled.length, skipped: 0, pending: 0 }
    for (const module of modules) {
      count.failed += module.errors().length
      for (const suite of module.children.allSuites()) count.failed += suite.errors().length
      for (const test of module.children.allTests()) count[test.result().state]++
    }
    const parts = [`${count.passed} passed`, `${count.failed} failed`]
    if (count.skipped > 0) parts.push(`${count.skipped} skipped`)
    if (count.pending > 0) parts.push(`${count.pending} not run`)
    this.#vitest?.logger.log(parts.join(', '))
  }
}
