import { RathError } from '../base/errors.ts'
import type { MemoryBackend } from '../memory/spec.ts'
import type { ConformanceCase } from './conformance.ts'
import { capableCases } from './memory/capable.ts'
import { casesOn, type MemoryTestOptions } from './memory/case.ts'
import { commitCases } from './memory/commit.ts'
import { endCases } from './memory/ends.ts'
import { entryCases } from './memory/entries.ts'
import { findCases } from './memory/find.ts'
import { hostileCases } from './memory/hostile.ts'
import { ingestCases } from './memory/ingest.ts'
import { shapeCases } from './memory/shape.ts'

export type { MemoryTestOptions } from './memory/case.ts'

/**
 * What src/memory/spec.ts asks of every backend, as far as its capabilities go: `for (const { name, run } of testMemory(backend, { spec })) test(name, run)`.
 * `spec` has to lead to an empty store each time.
 */
export function testMemory(backend: MemoryBackend, options: MemoryTestOptions = {}): ConformanceCase[] {
  const { except = {} } = options
  const makers = [
    ...[entryCases, findCases, shapeCases, capableCases],
    ...[commitCases, ingestCases, hostileCases, endCases],
  ]
  const cases = makers.flatMap(make => casesOn(backend, options, make(backend.capabilities)))
  const unknown = Object.keys(except).filter(name => !cases.some(one => one.name === name))
  if (unknown.length > 0) {
    throw new RathError('invalid-argument', `There are no such cases to leave out: ${unknown.join('; ')}.`)
  }
  return cases.filter(({ name }) => except[name] === undefined)
}
