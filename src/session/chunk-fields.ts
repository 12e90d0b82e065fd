import { isBase64, toBase64 } from '../base/base64.ts'
import { show } from '../base/errors.ts'
import type { Json } from '../base/json.ts'
import {
  type Check,
  count,
  digest,
  type Fields,
  fields,
  json,
  jsonObject,
  list,
  nonEmpty,
  nullable,
  number,
  oneOf,
  record,
  tagged,
  text,
  time,
} from './check.ts'
import type { ChunkKind } from './chunk.ts'
import type { AnswerPart, Part } from './part.ts'
import type { Usage } from './usage.ts'

const extras = { extras: jsonObject }

const bytes: Check<string> = (value, path, problems) => {
  if (value instanceof Uint8Array) return toBase64(value)
  if (typeof value !== 'string' || !isBase64(value)) {
    problems.push({ path, message: `must be a Uint8Array or padded base64, not ${show(value)}` })
  }
  return value as string
}

const media = { type: text, mediaType: nonEmpty, data: bytes, url: nonEmpty, ...extras }
const parts: { [type: string]: Fields } = {
  text: fields({ type: text, text, ...extras }, ['text']),
  image: fields(media, ['mediaType']),
  file: fields({ ...media, name: nonEmpty }, ['mediaType']),
}
const answerParts: { [type: string]: Fields } = {
  ...parts,
  reasoning: fields({ type: text, text, ...extras }, ['text']),
  'tool-call': fields({ type: text, id: nonEmpty, name: nonEmpty, args: json, ...extras }, [
    'id',
    'name',
    'args',
  ]),
}

function content<T extends AnswerPart>(cases: { [type: string]: Fields }): Check<readonly T[]> {
  const many = list(oneSource(tagged<T>('type', cases)))
  return (value, path, problems) => {
    if (Array.isArray(value)) return many(value, path, problems)
    if (typeof value !== 'string') {
      problems.push({ path, message: `must be a string or an array of parts, not ${show(value)}` })
      return []
    }
    return Object.freeze(value === '' ? [] : [Object.freeze({ text: value, type: 'text' }) as unknown as T])
  }
}

function oneSource<T extends AnswerPart>(check: Check<T>): Check<T> {
  return (value, path, problems) => {
    const part = check(value, path, problems)
    if (
      (part?.type === 'image' || part?.type === 'file') &&
      (part.data === undefined) === (part.url === undefined)
    ) {
      problems.push({ path, message: 'must have either data or url' })
    }
    return part
  }
}

const usage: Check<Usage> = (value, path, problems) => {
  const given = checkUsage(value, path, problems)
  // Complete, as every model driver gives it.
  const {
    inputTokens: input = 0,
    outputTokens: output = 0,
    totalTokens,
    cachedInputTokens,
    reasoningTokens,
  } = given
  if (totalTokens !== undefined && cachedInputTokens !== undefined && reasoningTokens !== undefined) {
    if (given.inputTokens !== undefined && given.outputTokens !== undefined) return given as Usage
  }
  return Object.freeze({
    cachedInputTokens: cachedInputTokens ?? 0,
    ...(given.cost !== undefined && { cost: given.cost }),
    inputTokens: input,
    outputTokens: output,
    reasoningTokens: reasoningTokens ?? 0,
    totalTokens: totalTokens ?? input + output,
  })
}
const usageFields = fields(
  {
    inputTokens: count,
    outputTokens: count,
    cachedInputTokens: count,
    reasoningTokens: count,
    totalTokens: count,
    cost: count,
  },
  [],
)
const checkUsage = record<Partial<Usage>>(usageFields)

/** What a person, a system prompt or a tool says. */
export const saidParts = content<Part>(parts)
const outcome = tagged('kind', {
  value: fields({ kind: text, value: json, content: saidParts }, ['value']),
  error: fields({ kind: text, error: nonEmpty, message: text, detail: json }, ['error', 'message']),
  denied: fields({ kind: text, reason: text }, ['reason']),
})
const fileChange = record(
  fields(
    { path: nonEmpty, change: oneOf('added', 'modified', 'deleted', 'renamed'), from: nonEmpty, patch: text },
    ['path', 'change'],
  ),
)
const spec: Check<Json> = (value, path, problems) =>
  typeof value === 'string' ? nonEmpty(value, path, problems) : jsonObject(value, path, problems)
const workspace = record(fields({ path: nonEmpty, tree: digest, ...extras }, []))
const hit = record(fields({ id: nonEmpty, text, score: number, ...extras }, ['id', 'text', 'score']))
const candidate = record(fields({ name: nonEmpty, description: text }, ['name']))
const mergedBranch = record(
  fields({ session: nonEmpty, head: nullable(digest), branch: text, chunks: count }, [
    'session',
    'head',
    'branch',
    'chunks',
  ]),
)
const isTrue: Check<true> = (value, path, problems) => {
  if (value !== true) problems.push({ path, message: `must be true or left out, not ${show(value)}` })
  return true
}
const leftOutChunk = record(fields({ chunk: digest, usage, inside: isTrue }, ['chunk', 'usage']))
const insideSession = record(fields({ session: nonEmpty, head: nullable(digest) }, ['session', 'head']))
const effectOutcome = tagged('kind', {
  value: fields({ kind: text, value: json }, ['value']),
  error: fields({ kind: text, error: nonEmpty, message: text }, ['error', 'message']),
})
const conflict = record(
  fields({ path: nonEmpty, kind: nonEmpty, settled: nonEmpty, by: nonEmpty }, ['path', 'settled']),
)
const common = { kind: text, at: time, by: nonEmpty, ...extras }

const kinds: Record<ChunkKind, Fields> = {
  system: fields({ content: saidParts }, ['content']),
  user: fields({ content: saidParts }, ['content']),
  assistant: fields(
    {
      content: content<AnswerPart>(answerParts),
      model: nonEmpty,
      finishReason: nonEmpty,
      usage,
      prompt: digest,
    },
    ['content'],
  ),
  'tool-result': fields(
    {
      callId: nonEmpty,
      tool: nonEmpty,
      args: json,
      outcome,
      durationMs: count,
      ranOn: jsonObject,
      files: list(fileChange),
      before: digest,
      tree: digest,
      sessions: list(insideSession),
      usage,
    },
    ['callId', 'tool', 'outcome'],
  ),
  effect: fields(
    {
      name: nonEmpty,
      request: json,
      outcome: effectOutcome,
      effect: nonEmpty,
      began: time,
      durationMs: count,
      callId: nonEmpty,
      sessions: list(insideSession),
      usage,
    },
    ['name', 'outcome'],
  ),
  memory: fields(
    {
      op: oneOf('recall', 'remember', 'commit', 'forget'),
      store: nonEmpty,
      query: text,
      hits: list(hit),
      injected: text,
      entries: list(nonEmpty),
      from: list(digest),
      usage,
      error: nonEmpty,
    },
    ['op', 'store'],
  ),
  placement: fields({ backend: nonEmpty, spec, workspace }, ['backend']),
  route: fields(
    { candidates: list(candidate), choice: nullable(nonEmpty), reason: text, model: nonEmpty, usage },
    ['candidates', 'choice'],
  ),
  approval: fields(
    {
      approval: nonEmpty,
      callId: nonEmpty,
      tool: nonEmpty,
      args: json,
      question: text,
      verdict: oneOf('approved', 'rejected', 'edited', 'answered', 'expired'),
      decidedBy: nonEmpty,
      reason: text,
      answer: json,
    },
    ['approval'],
  ),
  verdict: fields({ verdict: oneOf('accept', 'reject'), subject: nonEmpty, reason: text, score: number }, [
    'verdict',
    'subject',
  ]),
  merge: fields(
    {
      branches: list(mergedBranch),
      ancestor: nullable(digest),
      policy: nonEmpty,
      conflicts: list(conflict),
      tree: digest,
      usage,
      leftOut: list(leftOutChunk),
    },
    ['branches', 'ancestor', 'policy'],
  ),
  compress: fields({ replaced: list(digest), summary: nonEmpty, model: nonEmpty, usage }, [
    'replaced',
    'summary',
  ]),
  error: fields(
    {
      error: nonEmpty,
      message: text,
      attempt: count,
      retry: oneOf('never', 'now', 'after'),
      usage,
      detail: json,
    },
    ['error', 'message'],
  ),
  note: fields({ name: nonEmpty, data: json }, ['name']),
}

/** What a caller may write, by kind. */
export const given = extend(kinds, common, [])
/** What a session has written, by kind. */
export const recorded = extend(kinds, { ...common, branch: nonEmpty, origin: digest }, ['at'])

function extend(table: Record<ChunkKind, Fields>, checks: Fields['checks'], required: string[]) {
  const extended = {} as Record<ChunkKind, Fields>
  for (const kind of Object.keys(table) as ChunkKind[]) {
    const own = table[kind]
    extended[kind] = fields({ ...checks, ...own.checks }, [...required, ...own.required])
  }
  return extended
}
