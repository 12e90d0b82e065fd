import { RathError } from '../base/errors.ts'
import type { Sandbox } from '../sandbox/spec.ts'
import type { ToolOutcome } from '../session/chunk.ts'
import type { ToolEvidence, ToolRecord } from '../tool/tool-record.ts'
import type { Capture } from './place/capture.ts'
import type { Place } from './place/place.ts'
import type { Sight } from './place/sight.ts'

type Run = (sandbox?: () => Promise<Sandbox>) => Promise<ToolOutcome>

/** Runs a tool and tells what its chunk says of it: the outcome, how long it took, and where it ran if it asked for a place. */
export async function perform(
  run: Run,
  open: (() => Promise<Place>) | undefined,
  sight: Sight,
): Promise<ToolRecord> {
  let place: Place | undefined
  const refused = new Refusal()
  const watched =
    open &&
    (async () => {
      place = await refused.kept(open())
      return sight.watch(place.sandbox)
    })
  const start = performance.now()
  const outcome = await run(watched)
  const durationMs = performance.now() - start
  refused.throw()
  if (place === undefined) return { outcome, durationMs }
  const { backend, id, cwd } = place.sandbox
  const folder = place.folder !== undefined && { folder: place.folder }
  return { outcome, durationMs, evidence: { ranOn: { backend, id, cwd, ...folder } } }
}

/** The same for one that may change files, and what it changed. */
export async function performCaptured(run: Run, capture: Capture, sight: Sight): Promise<ToolRecord> {
  const start = performance.now()
  const refused = new Refusal()
  const outcome = await capture.run(() => run(async () => sight.watch(await refused.kept(capture.sandbox()))))
  const durationMs = performance.now() - start
  refused.throw()
  const evidence = await evidenceOf(capture)
  return Object.keys(evidence).length === 0 ? { outcome, durationMs } : { outcome, durationMs, evidence }
}

/** A folder that the session did not begin in is no news for the model: the run stops, whatever the tool made of it. */
class Refusal {
  #error: RathError | undefined

  async kept<T>(opening: Promise<T>): Promise<T> {
    try {
      return await opening
    } catch (error) {
      if (error instanceof RathError && error.code === 'workspace-elsewhere') this.#error = error
      throw error
    }
  }

  throw(): void {
    if (this.#error) throw this.#error
  }
}

/** The outcome stands, whatever became of the files: that they could not be kept is on the record beside it. */
async function evidenceOf(capture: Capture): Promise<ToolEvidence> {
  try {
    return await capture.end()
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) }
  }
}
