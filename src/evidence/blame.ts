import type { Digest } from '../base/digest.ts'
import { RathError, show } from '../base/errors.ts'
import { isPlainObject, type Json } from '../base/json.ts'
import type { Chunk, ChunkKind } from '../session/chunk.ts'
import type { Session } from '../session/session.ts'
import { reachesModel, standing } from '../session/summary.ts'
import type { Store } from '../store/spec.ts'
import { filesRecorded, type TracedLine, traceLines } from './blame-lines.ts'
import { fileHistory, sessionsIn } from './file-history.ts'
import { bringFiles, openKeptFiles } from './kept-files.ts'
import { LinesOfWork } from './lines-of-work.ts'
import { codeLine, oneLine } from './one-line.ts'
import { answerBehind, type Producer, producerOf, promptText } from './producer.ts'

export interface BlameOptions {
  /** Finds prompts, and branches whose chunks a merge left out. */
  readonly store?: Store
  /** The folder that the runtime kept files in; by default where runtimes of this machine do. */
  readonly workspaces?: string
}

/**
 * Where a line comes from. `call`: a tool call wrote it. `merge`: it came with a merge, which settled a conflict or whose
 * branches are not at hand. `drift`: a person or another
 * program wrote it, and `producer` is the chunk that noticed. `before`: it was there before the session.
 */
export interface BlamedLine {
  /** From 1. */
  readonly line: number
  readonly text: string
  readonly source: 'call' | 'merge' | 'drift' | 'before'
  /** The path of the file when the line was written. */
  readonly path: string
  readonly producer?: Producer
}

/** Where a statement comes from: who made the chunk, from which instructions, and what it had seen. */
export interface BlamedChunk {
  readonly producer: Producer
  readonly text: string
  /** The instructions; absent when there were none, or no store was given that has them. */
  readonly promptText?: string
  /** What the model was shown when it was asked, oldest first; for what no model made, what was there for one to see. */
  readonly seen: readonly SeenChunk[]
}

export interface SeenChunk {
  readonly chunk: Digest
  readonly index: number
  readonly kind: ChunkKind
  readonly by?: string
  readonly branch: string
  readonly text: string
}

/** Which chunk, agent, branch, prompt and model produced the lines of a file, or a chunk. It reads what was recorded and asks nobody. */
export function blame(
  session: Session,
  target: { readonly path: string; readonly line?: number },
  options?: BlameOptions,
): Promise<BlamedLine[]>
export function blame(
  session: Session,
  target: { readonly chunk: string | number },
  options?: Pick<BlameOptions, 'store'>,
): Promise<BlamedChunk>
export async function blame(
  session: Session,
  target: { readonly path: string; readonly line?: number } | { readonly chunk: string | number },
  options: BlameOptions = {},
): Promise<BlamedLine[] | BlamedChunk> {
  if ('chunk' in target) return blameChunk(session, target.chunk, options.store)
  return blameFile(session, target.path, target.line, options)
}

async function blameFile(
  session: Session,
  path: string,
  line: number | undefined,
  { store, workspaces }: BlameOptions,
): Promise<BlamedLine[]> {
  await bringFiles(session, store, workspaces)
  const objects = await openKeptFiles(workspaces)
  try {
    const history = await fileHistory(session, store && sessionsIn(store, workspaces))
    const lines = traceLines(history, path.replace(/^\.\//, ''), objects).map(found => blamed(found, session))
    if (line === undefined) return lines
    const wanted = lines[line - 1]
    if (wanted) return [wanted]
    throw new RathError(
      'invalid-argument',
      `${path} has the lines 1 to ${lines.length}, and not ${show(line)}.`,
    )
  } finally {
    objects.close()
  }
}

function blamed({ line, text, path, state }: TracedLine, { id }: Session): BlamedLine {
  const { cause } = state
  if (cause.kind === 'start') return { line, text, path, source: 'before' }
  const made = producerOf(cause.chunk, cause.lines)
  const { session } = cause.lines
  const producer = session === id ? made : { ...made, session }
  const source = isDrift(path, { line, text, path, state }) ? 'drift' : cause.kind
  return { line, text, path, source, producer }
}

/**
 * A change that somebody else made while a call ran, or that was found when files were joined, is in the tree of that chunk and not in what
 * the chunk says it changed.
 */
function isDrift(path: string, { state }: TracedLine): boolean {
  const { cause } = state
  if (cause.kind === 'call')
    return (
      !filesRecorded(state).some(file => file.path === path) && driftPaths(cause.chunk, cause.lines).has(path)
    )
  if (cause.kind === 'merge')
    return !cause.isIncomplete && !cause.chunk.conflicts?.some(conflict => conflict.path === path)
  return cause.kind === 'drift'
}

/** What the notes right before the result of a call say that others changed. */
function driftPaths(chunk: Chunk, lines: LinesOfWork): Set<string> {
  const paths = new Set<string>()
  for (let i = lines.before(chunk.index); i >= 0; i = lines.before(i)) {
    const note = lines.chunks[i] as Chunk
    if (note.kind !== 'note' && note.kind !== 'error' && note.kind !== 'approval') break
    if (note.kind === 'note' && note.name === 'drift') for (const path of pathsIn(note.data)) paths.add(path)
  }
  return paths
}

function pathsIn(drift: Json | undefined): string[] {
  const files = isPlainObject(drift) ? drift.files : undefined
  return Array.isArray(files) ? files.flatMap(file => (isPlainObject(file) ? [String(file.path)] : [])) : []
}

async function blameChunk(
  session: Session,
  name: string | number,
  store: Store | undefined,
): Promise<BlamedChunk> {
  const lines = new LinesOfWork(session)
  const chunk = chunkNamed(lines, name)
  const producer = producerOf(chunk, lines)
  const asked = answerBehind(chunk, lines) ?? chunk
  const instructions = producer.prompt !== undefined && store && (await promptText(producer.prompt, store))
  const seen = [...standing(lines.seenBy(asked.index))].filter(reachesModel)
  return {
    producer,
    text: chunk.text,
    ...(instructions && { promptText: instructions }),
    seen: seen.map(seenChunk),
  }
}

function chunkNamed(lines: LinesOfWork, name: string | number): Chunk {
  const { chunks } = lines
  if (typeof name === 'number') {
    const chunk = chunks.at(name)
    if (chunk && Number.isInteger(name)) return chunk
    throw new RathError(
      'unknown-chunk',
      `There is no chunk ${show(name)}: this session has ${chunks.length}, from 0.`,
    )
  }
  const short = /^[0-9a-f]{4,63}$/.test(name)
  const found = short
    ? chunks.filter(({ id, origin }) => id.startsWith(name) || origin?.startsWith(name))
    : []
  if (found.length > 1)
    throw new RathError(
      'unknown-chunk',
      `${found.length} chunks of this session begin with ${name}; give more of the id.`,
    )
  return found[0] ?? (chunks[lines.indexOf(name)] as Chunk)
}

function seenChunk({ id, index, kind, by, branch = '', text }: Chunk): SeenChunk {
  return { chunk: id, index, kind, branch, text, ...(by !== undefined && { by }) }
}

/** One line of text for each line of the file: chunk, who, on which branch, and the line itself. */
export function printBlamedLines(lines: readonly BlamedLine[]): string {
  const marks = lines.map(markOf)
  const width = Math.max(0, ...marks.map(mark => mark.length))
  const digits = String(lines.at(-1)?.line ?? 0).length
  return lines
    .map(
      ({ line, text }, i) => `${marks[i]?.padEnd(width)}  ${String(line).padStart(digits)} ${codeLine(text)}`,
    )
    .join('\n')
}

export function printBlamedChunk({ producer, text, promptText, seen }: BlamedChunk): string {
  const facts = [
    ['chunk', `${producer.index} ${producer.kind} ${producer.chunk.slice(0, 12)}`],
    ['by', whoOf(producer)],
    ['branch', producer.branch || 'trunk'],
    ['model', producer.model ?? ''],
    ['tool', producer.tool ?? ''],
    ['prompt', promptText ?? producer.prompt?.slice(0, 12) ?? ''],
    ['says', text],
  ] as const
  const shown = facts.filter(([, value]) => value !== '')
  const lines = shown.map(([name, value]) => `${name.padEnd(7)} ${oneLine(value)}`)
  const inputs = seen.map(
    ({ index, kind, by, text }) =>
      `  ${String(index).padStart(4)} ${kind.padEnd(11)} ${oneLine([by && `${by}:`, text].filter(Boolean).join(' '), 100)}`,
  )
  return [...lines, seen.length > 0 ? 'had seen' : 'had seen nothing', ...inputs].join('\n')
}

function markOf({ source, producer }: BlamedLine): string {
  if (source === 'before' || producer === undefined) return 'before the session'
  if (source === 'drift') return `drift, a person or another program (seen at ${producer.index})`
  const who = source === 'merge' ? `merge ${whoOf(producer)}` : whoOf(producer)
  return [producer.chunk.slice(0, 8), who, producer.branch && `(${producer.branch})`, producer.model]
    .filter(Boolean)
    .join(' ')
}

function whoOf({ by, tool }: Producer): string {
  return by ?? tool ?? 'a person, or plain code'
}
