import { RathError, show } from '../base/errors.ts'
import { inOrder, isPlainObject, memberPath, type Problem, refuse } from '../base/json.ts'
import { checkFields, type Fields } from './check.ts'
import type { ChunkBody, ChunkKind } from './chunk.ts'
import { given, recorded } from './chunk-fields.ts'
import type { AnswerPart } from './part.ts'

/** Makes the object that the fields of a chunk are written on. */
export type Make = () => Record<string, unknown>
const plain: Make = () => ({})

/** The normal form of a chunk that a caller wrote. Throws one error with every problem in it. */
export function parseChunk(input: unknown, at: number, name = 'chunk', make = plain): ChunkBody {
  return parse(input, given, at, name, make)
}

/** The same for a chunk that was recorded before, with the fields that only a session sets. */
export function parseRecordedChunk(input: unknown, name: string, make = plain): ChunkBody {
  return parse(input, recorded, undefined, name, make)
}

function parse(
  input: unknown,
  table: Record<ChunkKind, Fields>,
  at: number | undefined,
  name: string,
  make: Make,
): ChunkBody {
  if (!isPlainObject(input)) {
    throw new RathError('invalid-chunk', `${name} must be an object with a kind, not ${show(input)}.`)
  }
  const kind = input.kind as ChunkKind
  if (typeof kind !== 'string' || !Object.hasOwn(table, kind)) {
    const kinds = Object.keys(table).join(', ')
    throw new RathError('invalid-chunk', `${name}.kind is ${show(kind)}; it must be one of ${kinds}.`)
  }
  const whole = withoutShorthand(input)
  const check = (path: string, problems: Problem[]) => {
    const body = make()
    checkFields(whole, table[kind], path, problems, body, at)
    checkWhole[kind]?.(body, path, problems)
    return body as unknown as ChunkBody
  }
  // Paths are worth building only where there is something to say.
  const found: Problem[] = []
  const body = check('', found)
  if (found.length === 0) return body
  const problems: Problem[] = []
  check(name, problems)
  refuse('invalid-chunk', `${name} of kind ${kind} cannot be recorded`, problems)
  return body
}

/** A body with one more field, its fields in canonical order as `parse` leaves them. */
export function withField(body: ChunkBody, field: Partial<ChunkBody>): ChunkBody {
  const whole: Record<string, unknown> = { ...body, ...field }
  const ordered: Record<string, unknown> = {}
  for (const name of inOrder(Object.keys(whole))) ordered[name] = whole[name]
  return ordered as unknown as ChunkBody
}

/** `text`, `reasoning` and `toolCalls` become `content`, in that order of telling: thought, said, asked. */
function withoutShorthand(input: Record<string, unknown>): Record<string, unknown> {
  if (input.content !== undefined || !messageKinds.has(input.kind)) return input
  const { text, reasoning, toolCalls, ...rest } = input
  if (text === undefined && reasoning === undefined && toolCalls === undefined) return input
  if (input.kind !== 'assistant') return { ...input, content: text, text: undefined }
  const content: unknown[] = []
  if (typeof reasoning === 'string') content.push({ type: 'reasoning', text: reasoning })
  else if (Array.isArray(reasoning)) content.push(...reasoning.map(part => asPart('reasoning', part)))
  else if (reasoning !== undefined) content.push(reasoning)
  if (text !== undefined && text !== '') content.push({ type: 'text', text })
  if (Array.isArray(toolCalls)) content.push(...toolCalls.map(call => asPart('tool-call', call)))
  else if (toolCalls !== undefined) content.push(toolCalls)
  return { ...rest, content }
}

function asPart(type: string, value: unknown): unknown {
  return isPlainObject(value) ? { type, ...value } : value
}

const messageKinds: ReadonlySet<unknown> = new Set(['system', 'user', 'assistant'])

/** Rules that need the whole chunk. */
const checkWhole: {
  [K in ChunkKind]?: (body: Record<string, unknown>, path: string, problems: Problem[]) => void
} = {
  system: saysSomething,
  user: saysSomething,
  assistant(body, path, problems) {
    // A model may truly answer nothing; such an answer is evidence, and its finish reason says that it is one.
    if (body.finishReason === undefined) saysSomething(body, path, problems)
    const ids: string[] = []
    for (const part of (body.content ?? []) as readonly AnswerPart[])
      if (part?.type === 'tool-call') ids.push(part.id)
    if (ids.length > 1 && new Set(ids).size < ids.length) {
      problems.push({
        path: memberPath(path, 'content'),
        message: 'has two tool calls with the same id; give each its own',
      })
    }
  },
  compress(body, path, problems) {
    if ((body.replaced as readonly unknown[])?.length === 0) {
      problems.push({ path: memberPath(path, 'replaced'), message: 'must name at least one chunk' })
    }
  },
}

function saysSomething(body: Record<string, unknown>, path: string, problems: Problem[]): void {
  const content = body.content as readonly AnswerPart[] | undefined
  const place = memberPath(path, 'content')
  if (!Array.isArray(content) || problems.some(problem => problem.path.startsWith(place))) return
  if (content.every(part => (part.type === 'text' || part.type === 'reasoning') && part.text === '')) {
    problems.push({ path: place, message: 'is empty; give it text, an image or a file' })
  }
}
