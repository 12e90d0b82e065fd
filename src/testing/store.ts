import type { ConformanceCase } from './conformance.ts'
import type { OpenStore } from './store/case.ts'
import { followCases } from './store/follow.ts'
import { gcCases } from './store/gc.ts'
import { nameCases } from './store/names.ts'
import { payloadCases } from './store/payloads.ts'
import { redactionCases } from './store/redaction.ts'
import { refusalCases } from './store/refusals.ts'
import { runCases } from './store/runs.ts'
import { searchCases } from './store/search.ts'
import { sessionCases } from './store/sessions.ts'

export type { OpenStore, StoreUnderTest } from './store/case.ts'

/**
 * What src/store/spec.ts asks of every store. `open` makes an empty one for each case and passes the options on to
 * `openStore` or `createStore`: `for (const { name, run } of testStore(open)) test(name, run)`.
 */
export function testStore(open: OpenStore): ConformanceCase[] {
  return [
    ...sessionCases(open),
    ...nameCases(open),
    ...searchCases(open),
    ...followCases(open),
    ...runCases(open),
    ...payloadCases(open),
    ...gcCases(open),
    ...redactionCases(open),
    ...refusalCases(open),
  ]
}
