import fc, { type Arbitrary } from 'fast-check'
import { sha256 } from '../../src/base/digest.ts'
import type { Json, JsonObject } from '../../src/base/json.ts'
import type { ChunkInput, ChunkKind } from '../../src/session/chunk.ts'

const oddTexts = [
  '\u2028',
  '\u2029',
  '\u0085',
  '\u0000',
  '\ud800',
  'x\udc00',
  '\ufeff',
  '\r\n',
  '"\\',
  '😀',
  'é',
  '',
]
const oddKeys = [
  '__proto__',
  '10',
  '9',
  'toJSON',
  'constructor',
  'hasOwnProperty',
  'length',
  '',
  '\ud83d',
  'é',
  '😀',
]

/** Any sequence of UTF-16 code units, lone surrogates included. */
export const anyText: Arbitrary<string> = fc.oneof(
  fc.string({ maxLength: 8 }),
  fc.constantFrom(...oddTexts),
  fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 6 }).map(units => String.fromCharCode(...units)),
)
export const someText = anyText.map(text => `t${text}`)
const name = fc.oneof(fc.constantFrom('a', 'b', 'write_file', 'é'), someText)

export const anyJson: Arbitrary<Json> = fc.letrec<{ value: Json }>(again => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom(null, true, false, 0, -1, 1e21, 5e-324, 0.1),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    anyText,
    fc.array(again('value'), { maxLength: 3 }),
    record(again('value')),
  ),
})).value
export const anyObject = record(anyJson)

/**
 * Own properties only, `__proto__` among them. No key ends in a backslash: once the `JSON.parse` of V8 13.6 (Node 24) has seen
 * `{"a":1,"\\\\":1}`, it reads the second key of `{"a":1,"\\n":1}` as a backslash, too. `verify()` finds what that does to a record.
 */
function record(value: Arbitrary<Json>): Arbitrary<JsonObject> {
  const key = fc.oneof(fc.constantFrom(...oddKeys), anyText).map(text => text.replace(/\\+$/, ''))
  return fc.array(fc.tuple(key, value), { maxLength: 3 }).map(entries => Object.fromEntries(entries))
}

export const anyDigest = fc.nat(9).map(n => sha256(String(n)))
const count = fc.nat(1000)
const usage = fc.record(
  {
    inputTokens: count,
    outputTokens: count,
    cachedInputTokens: count,
    reasoningTokens: count,
    totalTokens: count,
    cost: count,
  },
  { requiredKeys: [] },
)
const extras = { extras: anyObject }

const textPart = partly({ type: fc.constant('text' as const), text: someText, ...extras }, 'type', 'text')
const bytes = fc.uint8Array({ maxLength: 5 })
const data = fc.oneof(
  bytes,
  bytes.map(piece => Buffer.from(piece).toString('base64')),
)
const source = fc.oneof(fc.record({ data }), fc.record({ url: someText }))
const media = (type: 'image' | 'file', more: object) =>
  fc
    .tuple(
      partly(
        { type: fc.constant(type), mediaType: fc.constant('image/png'), ...more, ...extras },
        'type',
        'mediaType',
      ),
      source,
    )
    .map(([part, from]) => ({ ...part, ...from }))
const anyPart = fc.oneof(textPart, media('image', {}), media('file', { name }))
export const anyParts = fc.array(anyPart, { minLength: 1, maxLength: 3 })
const content = fc.oneof(someText, anyParts)

const reasoningPart = partly(
  { type: fc.constant('reasoning' as const), text: someText, ...extras },
  'type',
  'text',
)
const callPart = partly(
  {
    type: fc.constant('tool-call' as const),
    id: fc.constantFrom('c1', 'c2', 'c3'),
    name,
    args: anyJson,
    ...extras,
  },
  'type',
  'id',
  'name',
  'args',
)
const answer = fc.uniqueArray(fc.oneof(anyPart, reasoningPart, callPart), {
  minLength: 1,
  maxLength: 4,
  // One call an id; everything else may repeat.
  selector: part => ('id' in part ? part.id : part),
})
const outcome = fc.oneof(
  partly({ kind: fc.constant('value' as const), value: anyJson, content }, 'kind', 'value'),
  partly(
    { kind: fc.constant('error' as const), error: name, message: anyText, detail: anyJson },
    'kind',
    'error',
    'message',
  ),
  fc.record({ kind: fc.constant('denied' as const), reason: anyText }),
)
const file = partly(
  {
    path: name,
    change: fc.constantFrom('added', 'modified', 'deleted', 'renamed'),
    from: name,
    patch: anyText,
  },
  'path',
  'change',
)
const hit = partly(
  { id: name, text: anyText, score: fc.constantFrom(0, 0.5, -1), ...extras },
  'id',
  'text',
  'score',
)
const branch = fc.record({ session: name, head: fc.option(anyDigest), branch: anyText, chunks: count })

const insideSession = fc.record({ session: name, head: fc.option(anyDigest) })

/** What each kind carries besides the fields that all share: a generator for every field, and which are needed. */
export const fieldsOf: {
  [K in ChunkKind]: { fields: Record<string, Arbitrary<unknown>>; required: string[] }
} = {
  system: { fields: { content }, required: ['content'] },
  user: { fields: { content }, required: ['content'] },
  assistant: {
    fields: { content: answer, model: name, finishReason: name, usage, prompt: anyDigest },
    required: ['content'],
  },
  'tool-result': {
    fields: {
      callId: fc.constantFrom('c1', 'c2', 'c3'),
      tool: name,
      args: anyJson,
      outcome,
      durationMs: count,
      ranOn: anyObject,
      files: fc.array(file, { maxLength: 2 }),
      tree: anyDigest,
      sessions: fc.array(insideSession, { maxLength: 2 }),
      usage,
    },
    required: ['callId', 'tool', 'outcome'],
  },
  effect: {
    fields: {
      name,
      request: anyJson,
      outcome: fc.oneof(
        fc.record({ kind: fc.constant('value' as const), value: anyJson }),
        fc.record({ kind: fc.constant('error' as const), error: name, message: anyText }),
      ),
      effect: fc.constantFrom('external', 'read'),
      began: count,
      durationMs: count,
      callId: name,
      sessions: fc.array(insideSession, { maxLength: 2 }),
      usage,
    },
    required: ['name', 'outcome'],
  },
  memory: {
    fields: {
      op: fc.constantFrom('recall', 'remember', 'commit', 'forget'),
      store: name,
      query: anyText,
      hits: fc.array(hit, { maxLength: 2 }),
      injected: anyText,
      entries: fc.array(name, { maxLength: 2 }),
      from: fc.array(anyDigest, { maxLength: 2 }),
      usage,
      error: name,
    },
    required: ['op', 'store'],
  },
  placement: {
    fields: {
      backend: name,
      spec: fc.oneof(someText, anyObject),
      workspace: fc.record({ path: name, tree: anyDigest, ...extras }, { requiredKeys: [] }),
    },
    required: ['backend'],
  },
  route: {
    fields: {
      candidates: fc.array(partly({ name, description: anyText }, 'name'), { maxLength: 2 }),
      choice: fc.option(name),
      reason: anyText,
      model: name,
      usage,
    },
    required: ['candidates', 'choice'],
  },
  approval: {
    fields: {
      approval: name,
      callId: name,
      tool: name,
      args: anyJson,
      question: anyText,
      verdict: fc.constantFrom('approved', 'rejected', 'edited', 'answered', 'expired'),
      decidedBy: name,
      reason: anyText,
      answer: anyJson,
    },
    required: ['approval'],
  },
  verdict: {
    fields: {
      verdict: fc.constantFrom('accept', 'reject'),
      subject: name,
      reason: anyText,
      score: fc.constantFrom(0, 1, -2.5),
    },
    required: ['verdict', 'subject'],
  },
  merge: {
    fields: {
      branches: fc.array(branch, { maxLength: 2 }),
      ancestor: fc.option(anyDigest),
      policy: name,
      conflicts: fc.array(partly({ path: name, settled: name, by: name }, 'path', 'settled'), {
        maxLength: 2,
      }),
      usage,
    },
    required: ['branches', 'ancestor', 'policy'],
  },
  compress: {
    fields: {
      replaced: fc.array(anyDigest, { minLength: 1, maxLength: 2 }),
      summary: someText,
      model: name,
      usage,
    },
    required: ['replaced', 'summary'],
  },
  error: {
    fields: {
      error: name,
      message: anyText,
      attempt: count,
      retry: fc.constantFrom('never', 'now', 'after'),
      usage,
      detail: anyJson,
    },
    required: ['error', 'message'],
  },
  note: { fields: { name, data: anyJson }, required: ['name'] },
}
export const kinds = Object.keys(fieldsOf) as ChunkKind[]

/** A chunk of one kind with any of its optional fields; `at` is always fixed, so that ids can be compared. */
export function chunkOf(kind: ChunkKind): Arbitrary<ChunkInput> {
  const { fields, required } = fieldsOf[kind]
  const all = { kind: fc.constant(kind), at: fc.nat(99), by: name, ...extras, ...fields }
  return partly(all, 'kind', 'at', ...required) as unknown as Arbitrary<ChunkInput>
}
export const anyChunk: Arbitrary<ChunkInput> = fc.oneof(...kinds.map(chunkOf))
export const anyChunks = fc.array(anyChunk, { maxLength: 4 })
export const anyLabel = name

function partly<T extends Record<string, Arbitrary<unknown>>, K extends string>(fields: T, ...required: K[]) {
  return fc.record(fields, { requiredKeys: required as never[] }) as unknown as Arbitrary<Filled<T, K>>
}
type Value<A> = A extends Arbitrary<infer V> ? V : never
type Filled<T, K> = { [P in keyof T as P extends K ? P : never]: Value<T[P]> } & {
  [P in keyof T as P extends K ? never : P]?: Value<T[P]>
}
