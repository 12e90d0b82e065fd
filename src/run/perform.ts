import type { Sandbox } from '../sandbox/spec.ts'
import type { ToolOutcome } from '../session/chunk.ts'
import type { ToolEvidence, ToolRecord } from '../tool/tool-record.ts'
import type { Capture } from './place/capture.ts'

type Run = (sandbox?: () => Promise<Sandbox>) => Promise<ToolOutcome>

/** Runs a tool and tells what its chunk says of it: the outcome, how long it took, and where it ran if it asked for a place. */
export async function perform(run: Run, open: (() => Promise<Sandbox>) | undefined): Promise<ToolRecord> {
  let place: Sandbox | undefined
  const watched = open && (async () => (place = await open()))
  const start = performance.now()
  const outcome = await run(watched)
  const durationMs = performance.now() - start
  if (place === undefined) return { outcome, durationMs }
  const { backend, id, cwd } = place
  return { outcome, durationMs, evidence: { ranOn: { backend, id, cwd } } }
}

/** The same for one that may change files, and what it changed. */
export async function performCaptured(run: Run, capture: Capture): Promise<ToolRecord> {
  const start = performance.now()
  const outcome = await capture.run(() => run(() => capture.sandbox()))
  const durationMs = performance.now() - start
  const evidence = await evidenceOf(capture)
  return Object.keys(evidence).length === 0 ? { outcome, durationMs } : { outcome, durationMs, evidence }
}

/** The outcome stands, whatever became of the files: that they could not be kept is on the record beside it. */
async function evidenceOf(capture: Capture): Promise<ToolEvidence> {
  try {
    return await capture.end()
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) }
  }
}
