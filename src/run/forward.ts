import { untilAbort } from '../base/abort.ts'
import { fromBase64, toBase64 } from '../base/base64.ts'
import { sha256 } from '../base/digest.ts'
import { RathError, show } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { type Json, toJson } from '../base/json.ts'
import type { ChunkInput } from '../session/chunk.ts'
import type { Session } from '../session/session.ts'
import type { Effect } from '../tool/spec.ts'
import { effects } from '../tool/tool.ts'
import { currentContext, type RunContext } from './context.ts'
import { type Passed, effect as perform, valueIn } from './effect.ts'
import { callAround, filesWereSeen, notesIn, scopeIn } from './frame.ts'

export interface EffectOptions {
  /** What it does to the world, which decides what a resumed run does when it was cut off; `external` by default, as for tools. */
  readonly effect?: Effect
  /** What it is asked from; by default what the workflow around it was called with. */
  readonly session?: Session
  /** It depends on the files of that session: a run with `reuse` does it again when any of them has changed. */
  readonly files?: boolean
}

/** What a `forward` is handed besides its session. Everything that comes from here is recorded, and the same in a replay. */
export interface ForwardContext {
  /** Aborted when the call is cancelled. */
  readonly signal: AbortSignal
  effect: typeof effect
  /**
   * Milliseconds since the epoch. Draws like this one are counted in each call by themselves. Where the code of one call draws side by side, a
   * name tells whose it is: `id('receipt')`.
   */
  now(name?: string): Promise<number>
  /** From 0 to 1, without 1. */
  random(name?: string): Promise<number>
  /** A new UUID. */
  id(name?: string): Promise<string>
  /** As the global one; the response is recorded whole. Requests other than GET and HEAD count as `external`. */
  fetch(url: string | URL, init?: RequestInit): Promise<Response>
}

/**
 * Something of your own that touches the world, through the door: done once, recorded, and taken from the record by a resume or a replay.
 * `request` is JSON that says what the result depends on; the result must be JSON too. Only inside the call of a workflow.
 */
export function effect<T>(
  name: string,
  request: Json,
  work: () => T | Promise<T>,
  options: EffectOptions = {},
): Promise<T> {
  const context = currentContext()
  if (context === undefined) {
    throw new RathError(
      'invalid-argument',
      `effect(${show(name)}, …) works inside the call of a workflow, where it is recorded; here there is none.`,
    )
  }
  return effectIn(context, name, request, work, options)
}

/** Kinds that the runtime has for itself. */
const reserved = new Set([
  'model',
  'tool',
  'approval',
  'policy',
  'memory',
  'merge',
  'first',
  'budget',
  'definition',
])

async function effectIn<T>(
  context: RunContext,
  name: string,
  request: Json,
  work: () => T | Promise<T>,
  { effect: rule = 'external', session = context.input, files = false }: EffectOptions,
  draw?: { readonly firstRequest: Json },
): Promise<T> {
  if (typeof name !== 'string' || name === '' || reserved.has(name)) {
    throw new RathError(
      'invalid-argument',
      `An effect is named by a text of your own, such as 'send-mail', not ${show(name)}.`,
    )
  }
  checkEffect(rule, name)
  const light = draw !== undefined
  const isRepeatable = rule !== 'external' && rule !== 'workspace'
  const { signal, runtime, runId } = context
  const look = async () =>
    session?.placement ? await runtime.places.look({ session, run: runId, signal }) : undefined
  const passed = await perform(
    context,
    {
      kind: name as string,
      session: session as Session,
      request: toJson(request, 'request'),
      ...draw,
      rule,
      urgent: !light,
      light,
      keepsFailure: true,
      nests: !light,
      borrow: async outcome => {
        const [seen] = outcome.sees ?? []
        if (seen === undefined) return files ? undefined : outcome
        return seen.op === 'tree' && seen.is !== null && seen.is === (await look()) ? outcome : undefined
      },
    },
    async () => {
      const tree = files ? ((await look()) ?? null) : undefined
      // A call that is cancelled does not wait for what can be done again; of the rest it has to know how it ends.
      const working = async () => work()
      const result = await (isRepeatable && !light ? untilAbort(working(), signal) : working())
      const value = result === undefined ? null : toJson(result, `the result of ${name}`)
      if (tree === undefined && (light || !filesWereSeen())) return { value }
      return { value, sees: [{ op: 'tree', is: tree ?? null }] }
    },
  )
  if (!light) notesIn(context).push(...effectChunks(name, request, rule, passed, context))
  return valueIn(passed) as T
}

/** What an effect leaves on the record of the call that made it. */
function effectChunks(
  name: string,
  request: Json,
  rule: Effect,
  passed: Passed,
  context: RunContext,
): ChunkInput[] {
  const { value, error, at, ms, inside = {} } = passed
  const { code, message } = (error ?? {}) as { code?: string; message?: string }
  const callId = callAround(context)
  const { sessions, usage, notes = [] } = inside
  return [
    ...notes,
    {
      kind: 'effect',
      by: context.by,
      name,
      request,
      outcome:
        error === undefined
          ? { kind: 'value', value: value as Json }
          : { kind: 'error', error: code ?? 'run-failed', message: message ?? '' },
      effect: rule,
      ...(at !== undefined && { began: Math.round(at - (ms ?? 0)) }),
      ...(ms !== undefined && { durationMs: ms }),
      ...(callId !== undefined && { callId }),
      ...(sessions && { sessions }),
      ...(usage && { usage }),
    },
  ]
}

function checkEffect(rule: unknown, name: string): void {
  if (effects.includes(rule)) return
  throw new RathError(
    'invalid-argument',
    `The effect of ${show(name)} must be one of ${effects.join(', ')}, not ${show(rule)}.`,
  )
}

/** Made for a `forward`, which may take what it needs out of it: every member works by itself. */
export class CallForwardContext implements ForwardContext {
  readonly #context: RunContext

  constructor(context: RunContext) {
    this.#context = context
  }

  get signal(): AbortSignal {
    return this.#context.signal
  }

  get effect(): ForwardContext['effect'] {
    return (name, request, work, options = {}) => effectIn(this.#context, name, request, work, options)
  }

  get now(): ForwardContext['now'] {
    return name => this.#draw('now', name, Date.now)
  }

  get random(): ForwardContext['random'] {
    return name => this.#draw('random', name, Math.random)
  }

  get id(): ForwardContext['id'] {
    return name => this.#draw('id', name, newId)
  }

  get fetch(): ForwardContext['fetch'] {
    return (url, init = {}) =>
      recordedFetch(
        url,
        { ...init, signal: init.signal ?? this.signal },
        (request, work, rule) => effectIn(this.#context, 'fetch', request, work, { effect: rule }),
        async body => {
          const given = { data: toBase64(body) }
          const clean = (await this.#context.runtime.store).clean(given)
          return clean === given ? body : fromBase64(clean.data)
        },
      )
  }

  #draw<T extends number | string>(kind: string, name: unknown, make: () => T): Promise<T> {
    // It may be handed to somebody who calls it with arguments of their own, such as `map`.
    const own = typeof name === 'string' ? { name } : {}
    const draw = scopeIn(this.#context).drawOf(JSON.stringify([kind, own]))
    const request = { ...own, draw }
    return effectIn(this.#context, kind, request, () => make(), { effect: 'pure' }, { firstRequest: {} })
  }
}

type Through = (
  request: Json,
  work: () => Promise<Recorded>,
  rule: Effect,
) => Promise<Partial<Recorded> | null>

interface Recorded {
  readonly status: number
  readonly statusText: string
  /** Pairs: a response may set several cookies. Earlier versions wrote an object. */
  readonly headers: Json
  /** Base64: a body may be anything. Null where there is none. */
  readonly body: string | null
}

/**
 * A fetch whose response is recorded. The key covers method, address and body, without secrets; headers may hold what changes from day to day, and keys.
 */
async function recordedFetch(
  url: string | URL,
  init: RequestInit,
  through: Through,
  clean: (body: Uint8Array) => Promise<Uint8Array>,
): Promise<Response> {
  const request = new Request(url, init)
  const body = request.body === null ? null : new Uint8Array(await request.arrayBuffer())
  const { method, headers: sent } = request
  const isRead = method === 'GET' || method === 'HEAD'
  const found = await through(
    { method, url: request.url, ...(body && { body: digestOf(await clean(body), sent) }) },
    // The type of a body is told by what it was made of, and no longer by its bytes.
    async () => recorded(await fetch(request.url, { ...init, method, headers: sent, ...(body && { body }) })),
    isRead ? 'read' : 'external',
  )
  // Whoever reviewed one that was cut off may know no more than that it happened.
  const { status = 200, statusText = '', headers = [], body: text = null } = found ?? {}
  const bytes = text === null ? null : fromBase64(text)
  return new Response(bytes as Uint8Array<ArrayBuffer> | null, {
    status,
    statusText,
    headers: headers as Record<string, string> | [string, string][],
  })
}

/** Without the line between the parts of a form, which is another one every time. */
function digestOf(body: Uint8Array, headers: Headers): string {
  const boundary = /^multipart\/.*boundary="?([^";]+)/i.exec(headers.get('content-type') ?? '')?.[1]
  return sha256(boundary ? Buffer.from(body).toString('latin1').replaceAll(boundary, '') : body)
}

/** Statuses whose responses must not have a body. */
const bodiless = new Set([101, 103, 204, 205, 304])

const ofPacking = new Set(['content-encoding', 'content-length'])

async function recorded(response: Response): Promise<Recorded> {
  const { status, statusText } = response
  const bytes = new Uint8Array(await response.arrayBuffer())
  // The body is recorded as it came out, whatever it was packed in.
  const headers = [...response.headers].filter(([name]) => !ofPacking.has(name))
  return { status, statusText, headers, body: bodiless.has(status) ? null : toBase64(bytes) }
}
