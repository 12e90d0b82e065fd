import { AsyncLocalStorage } from 'node:async_hooks'
import type { ChunkInput, InsideSession } from '../session/chunk.ts'
import { addUsage, completeUsage, noUsage, subtractUsage, type Usage } from '../session/usage.ts'
import type { ToolInside } from '../tool/tool-record.ts'

/**
 * What was done inside a tool or an effect, as the journal keeps it beside the outcome: `sessions` that calls made in it gave back, or left
 * behind when they failed; `usage` of model calls in it that no chunk of `notes` says; `notes` for the session of whoever made the call.
 */
export type Inside = ToolInside

/** An effect whose work is running. */
class Frame {
  /** The call that the effect belongs to: its session gets the chunk. */
  readonly holder: object
  readonly outer: Frame | undefined
  /** Of the tool call. */
  readonly callId: string | undefined
  readonly sessions = new Map<string, InsideSession>()
  readonly notes: ChunkInput[] = []
  usage: Usage = noUsage

  constructor(holder: object, outer: Frame | undefined, callId: string | undefined) {
    this.holder = holder
    this.outer = outer
    this.callId = callId ?? (outer?.holder === holder ? outer.callId : undefined)
  }

  get inside(): Inside {
    const usage = without(this.usage, this.notes)
    return {
      ...(this.sessions.size > 0 && { sessions: [...this.sessions.values()] }),
      ...(usage && { usage }),
      ...(this.notes.length > 0 && { notes: this.notes }),
    }
  }
}

const frames = new AsyncLocalStorage<Frame>()

/** Runs the work of an effect of `holder`, and gives what was done inside it besides what it returns. */
export async function watchInside<T>(
  holder: object,
  callId: string | undefined,
  work: () => Promise<T>,
): Promise<{ readonly result: T; readonly inside: Inside }> {
  const frame = new Frame(holder, frames.getStore(), callId)
  const result = await frames.run(frame, work)
  return { result, inside: frame.inside }
}

/** Counts what a model call spent, or an effect on record, in every effect around it whose chunk lies in another session. */
export function spendInside(spent: Partial<Usage> | undefined): void {
  if (spent === undefined) return
  const usage = completeUsage(spent)
  let last: Frame | undefined
  for (let frame = frames.getStore(); frame; frame = frame.outer) {
    // The chunks of effects of one call follow each other in one session: the innermost says it.
    if (last?.holder === frame.holder) continue
    frame.usage = addUsage(frame.usage, usage)
    last = frame
  }
}

/** Where chunks about what a call does go: beside the effect whose work it is in, or to the end of its session. */
export function notesIn(holder: { readonly notes: ChunkInput[] }): ChunkInput[] {
  const frame = frames.getStore()
  return frame?.holder === holder ? frame.notes : holder.notes
}

/** The tool call whose work is running in `holder`. */
export function callAround(holder: object): string | undefined {
  const frame = frames.getStore()
  return frame?.holder === holder ? frame.callId : undefined
}

/** Whether a call of `holder` is made in the work of an effect, and says which session came of it. */
export function callInside(holder: object | undefined): ((made: InsideSession) => void) | undefined {
  const frame = frames.getStore()
  if (frame === undefined || frame.holder !== holder) return undefined
  return made => void frame.sessions.set(made.session, made)
}

/** What is left when chunks of the same session say part of it. */
function without(usage: Usage, notes: readonly ChunkInput[]): Usage | undefined {
  let left = usage
  for (const note of notes) {
    if (note.kind === 'effect' || !('usage' in note) || note.usage === undefined) continue
    left = subtractUsage(left, completeUsage(note.usage))
  }
  return left.totalTokens > 0 || (left.cost ?? 0) > 0 ? left : undefined
}
