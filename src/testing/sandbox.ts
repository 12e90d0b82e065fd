import { RathError } from '../base/errors.ts'
import type { SandboxBackend } from '../sandbox/spec.ts'
import type { ConformanceCase } from './conformance.ts'
import { casesOn, type SandboxTestOptions } from './sandbox/case.ts'
import { commandCases } from './sandbox/commands.ts'
import { endCases } from './sandbox/ends.ts'
import { fileCases } from './sandbox/files.ts'
import { pathCases } from './sandbox/paths.ts'
import { searchCases } from './sandbox/search.ts'
import { workspaceCases } from './sandbox/workspace.ts'

export type { SandboxTestOptions } from './sandbox/case.ts'

/**
 * What src/sandbox/spec.ts asks of every backend, as far as its capabilities go: `for (const { name, run } of testSandbox(backend)) test(name, run)`.
 * Commands are run with `sh` and the usual tools of a POSIX system.
 */
export function testSandbox(backend: SandboxBackend, options: SandboxTestOptions = {}): ConformanceCase[] {
  const { except = {} } = options
  const cases = [fileCases, pathCases, searchCases, commandCases, endCases, workspaceCases].flatMap(make =>
    casesOn(backend, options, make(backend.capabilities)),
  )
  const unknown = Object.keys(except).filter(name => !cases.some(one => one.name === name))
  if (unknown.length > 0) {
    throw new RathError('invalid-argument', `There are no such cases to leave out: ${unknown.join('; ')}.`)
  }
  return cases.filter(({ name }) => except[name] === undefined)
}
