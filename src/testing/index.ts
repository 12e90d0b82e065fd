export type { ConformanceCase } from './conformance.ts'
export { type FakeClock, fakeClock } from './fake-clock.ts'
export { type MemoryTestOptions, testMemory } from './memory.ts'
export { type RecordedOptions, recorded } from './recorded.ts'
export { type RecordedRuns, type RecordedRunsOptions, recordedRuns } from './recorded-runs.ts'
export { type SandboxTestOptions, testSandbox } from './sandbox.ts'
export {
  type Answer,
  type AnswerScript,
  type Script,
  type ScriptedFault,
  type ScriptedModel,
  type ScriptedOptions,
  scripted,
} from './scripted.ts'
export { type OpenStore, type StoreUnderTest, testStore } from './store.ts'
