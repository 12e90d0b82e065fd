import type { Json } from '../../base/json.ts'
import { isPlainObject } from '../../base/json.ts'
import { sessionsInside } from '../../run/graph/rows.ts'
import type { Chunk, FileChange } from '../../session/chunk.ts'
import { outcomeText } from '../../session/chunk-text.ts'
import type { Cutter } from './cutter.ts'
import type { Argument, FileStep, ToolStep } from './dossier.ts'

/** What a tool was asked and what came of it. `called` are the arguments of the call, for a result that does not repeat them. */
export function toolStep(
  chunk: Chunk<'tool-result'>,
  called: Json | undefined,
  cutter: Cutter,
  drift: readonly string[],
): ToolStep {
  const { tool, callId, args = called, outcome, durationMs, ranOn, files } = chunk
  const inside = sessionsInside(chunk)
  return {
    name: tool,
    callId,
    args: argumentsOf(args, cutter),
    outcome: outcome.kind,
    ...(outcome.kind === 'error' && { error: outcome.error }),
    ...(commandOf(chunk, cutter) ?? { result: cutter.keep(resultText(chunk)) }),
    ...(durationMs !== undefined && { durationMs }),
    ...(ranOn && { ranOn: placeOf(ranOn) }),
    ...(files && { files: files.map(file => fileStep(file, cutter)) }),
    ...(drift.length > 0 && { drift }),
    ...(inside.length > 0 && { sessions: inside }),
  }
}

/** Each argument by its name, so that no value can pass for another. */
export function argumentsOf(args: Json | undefined, cutter: Cutter): Argument[] {
  if (args === undefined) return []
  if (!isPlainObject(args)) return [{ name: '', value: cutter.keep(textOf(args)) }]
  return Object.entries(args).map(([name, value]) => ({ name, value: cutter.keep(textOf(value as Json)) }))
}

export function fileStep({ path, change, from, patch }: FileChange, cutter: Cutter): FileStep {
  return {
    path,
    change,
    ...(from !== undefined && { from }),
    ...(patch !== undefined && { patch: cutter.keep(patch) }),
  }
}

/** A command's exit code, where the result is the report of one. */
export function exitOf({ outcome }: Chunk<'tool-result'>): number | null | undefined {
  if (outcome.kind !== 'value' || !isPlainObject(outcome.value)) return undefined
  const { exitCode, stdout } = outcome.value
  return typeof stdout === 'string' && (typeof exitCode === 'number' || exitCode === null)
    ? exitCode
    : undefined
}

function commandOf(chunk: Chunk<'tool-result'>, cutter: Cutter): Partial<ToolStep> | undefined {
  const exitCode = exitOf(chunk)
  if (exitCode === undefined) return undefined
  const { stdout, stderr, signal, timedOut, truncated } = (chunk.outcome as { value: Record<string, Json> })
    .value
  return {
    exitCode,
    ...(typeof signal === 'string' && { signal }),
    ...(timedOut === true && { timedOut }),
    ...(truncated === true && { truncated }),
    ...(typeof stdout === 'string' && stdout !== '' && { stdout: cutter.keep(stdout) }),
    ...(typeof stderr === 'string' && stderr !== '' && { stderr: cutter.keep(stderr) }),
  }
}

function resultText({ outcome }: Chunk<'tool-result'>): string {
  if (outcome.kind === 'error') return outcome.message
  return outcome.kind === 'denied' ? outcome.reason : outcomeText(outcome)
}

/** Files that somebody else had changed, where a chunk is the note of it. */
export function driftIn(chunk: Chunk): string[] {
  if (chunk.kind !== 'note' || chunk.name !== 'drift' || !isPlainObject(chunk.data)) return []
  const { files } = chunk.data
  if (!Array.isArray(files)) return []
  return files.flatMap(file => (isPlainObject(file) && typeof file.path === 'string' ? [file.path] : []))
}

export function placeOf(ranOn: Readonly<Record<string, unknown>>): string {
  const { backend, cwd } = ranOn
  return [backend, cwd].filter(part => typeof part === 'string').join(' ')
}

function textOf(value: Json): string {
  return typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? '')
}
