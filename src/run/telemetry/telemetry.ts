import { RathError, show } from '../../base/errors.ts'
import type { Json } from '../../base/json.ts'
import { version } from '../../base/version.ts'
import type { Chunk } from '../../session/chunk.ts'
import type { Session } from '../../session/session.ts'
import { FramePart } from '../frame.ts'
import {
  type Content,
  type EffectEnd,
  type EffectSpan,
  memorySpan,
  modelAttributes,
  modelSpan,
  toolSpan,
} from './effects.ts'
import { Guard, Meters } from './meters.ts'
import {
  type Attributes,
  errorStatus,
  hasSdk,
  loadOtel,
  type Otel,
  type OtelContext,
  type OtelLink,
  type OtelMeter,
  type OtelSpan,
  type OtelSpanContext,
  type OtelTracer,
  spanKind,
} from './otel.ts'
import type { Caller, CallTrace, EffectKey, TracedCallee, Tracing } from './tracing.ts'

export interface TelemetryOptions {
  /** Makes the spans; that of the registered SDK by default. */
  readonly tracer?: OtelTracer
  /** Makes the metrics; that of the registered SDK by default. */
  readonly meter?: OtelMeter
  /** Puts prompts, answers, arguments and results on the spans, without the secrets that the store takes out. `false` by default. */
  readonly content?: boolean
}

const names = ['tracer', 'meter', 'content']

/** What follows the runs of a runtime. Nothing is loaded unless it was asked for. */
export function openTracing(
  telemetry: boolean | TelemetryOptions | undefined,
  clean: (value: Json) => Promise<Json>,
  words: (text: string) => string,
): OtelTracing | undefined {
  if (telemetry === undefined || telemetry === false) return undefined
  const options = telemetry === true ? {} : telemetry
  check(options)
  const { tracer, meter, content = false } = options
  return new OtelTracing(loadOtel(), { tracer, meter, words, ...(content && { clean }) })
}

function check(options: unknown): asserts options is TelemetryOptions {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new RathError(
      'invalid-argument',
      `telemetry is true, false or options such as { content: true }, not ${show(options)}.`,
    )
  }
  const unknown = Object.keys(options).filter(name => !names.includes(name))
  if (unknown.length === 0) return
  throw new RathError(
    'invalid-argument',
    `telemetry has no option ${unknown.map(show).join(', ')}; it takes ${names.join(', ')}.`,
  )
}

interface OtelTracingOptions {
  readonly tracer?: OtelTracer | undefined
  readonly meter?: OtelMeter | undefined
  /** Whether what was said and done goes on the spans, and what takes secrets out of it. */
  readonly clean?: ((value: Json) => Promise<Json>) | undefined
  /** Takes secrets out of what spans say without content, such as descriptions and names. */
  readonly words: (text: string) => string
}

/** A span under way. */
interface SpanFrame {
  readonly span: OtelSpan
  readonly context: OtelContext
  readonly measured: Attributes
  readonly started: number
  /** Effects in it whose outcomes were on record. */
  recorded: number
}

/** The span that the running code is inside of. An SDK may come without a context manager, and then only this knows. */
const spans = new FramePart<SpanFrame>()

/** Runs as OpenTelemetry sees them, by the conventions for generative AI. */
class OtelTracing implements Tracing {
  readonly #otel: Otel
  readonly #options: OtelTracingOptions
  readonly #meters: Meters
  readonly #makers = new Makers()
  readonly #guard = new Guard()

  constructor(otel: Otel, options: OtelTracingOptions) {
    this.#otel = otel
    this.#options = options
    this.#meters = new Meters(otel, options.meter, this.#guard)
  }

  /** Itself while anybody is told; without an SDK there is nothing to do. */
  get heard(): this | undefined {
    const { tracer, meter } = this.#options
    return tracer !== undefined || meter !== undefined || hasSdk(this.#otel) ? this : undefined
  }

  call(callee: TracedCallee, input: Session, caller: Caller): CallTrace {
    const { agent } = callee
    const name = caller.by.slice(caller.by.lastIndexOf('/') + 1)
    const operation = agent ? 'invoke_agent' : 'invoke_workflow'
    const timed = agent ? 'agent' : 'workflow'
    const measured = {
      'gen_ai.operation.name': operation,
      [agent ? 'gen_ai.agent.name' : 'gen_ai.workflow.name']: name,
      ...(agent?.model !== undefined && modelAttributes(agent.model)),
    }
    const attributes = {
      'gen_ai.agent.description': agent?.description || undefined,
      'openrath.operation': callee.operation,
      'openrath.session.input': input.id,
      ...ownAttributes(input, caller),
    }
    const links = this.#makers.linksOf(input)
    const frame = this.#begin(`${operation} ${name}`, spanKind.internal, measured, attributes, links)
    const { span } = frame
    // Of all forks of one conversation alike.
    if (span.isRecording()) span.setAttributes({ 'gen_ai.conversation.id': input.chunks.at(0)?.id })
    const end = (status: string, session: Session | undefined, error?: string) => {
      if (span.isRecording())
        span.setAttributes({ 'openrath.status': status, 'openrath.state': session?.state })
      this.#end(frame, timed, {}, error)
    }
    return {
      run: work => this.#inside(frame, work),
      done: (result, made) => {
        const merged = this.#makers.linksOfMerge(made)
        if (merged.length > 0) span.addLinks(merged)
        this.#makers.add(result, span.spanContext())
        end('done', result)
      },
      failed: (error, status) => {
        const { session } = error
        if (session?.id === caller.out.id) this.#makers.add(session, span.spanContext())
        // A run that waits for a person is well.
        end(status, session, status === 'waiting' ? undefined : error.code)
      },
    }
  }

  model: Tracing['model'] = (question, caller, at, work) =>
    this.#effect(modelSpan(question), question.session, caller, at, work)

  tool: Tracing['tool'] = (call, session, caller, at, work) =>
    this.#effect(toolSpan(call), session, caller, at, work)

  memory: Tracing['memory'] = (request, session, caller, at, work) =>
    this.#effect(memorySpan(request), session, caller, at, work)

  retry(error: RathError, attempt: number, waitMs: number): void {
    const frame = spans.here
    if (frame === undefined) return
    const type = { 'error.type': error.code }
    frame.span.addEvent('openrath.retry', {
      'openrath.attempt': attempt,
      'openrath.wait_ms': waitMs,
      ...type,
    })
    this.#meters.retried({ ...frame.measured, ...type })
  }

  recorded(): void {
    const frame = spans.here
    if (frame) frame.recorded++
  }

  async #effect<R, T extends R>(
    effect: EffectSpan<R>,
    session: Session,
    caller: Caller,
    { key, occurrence }: EffectKey,
    work: () => Promise<T>,
  ): Promise<T> {
    const { name, kind, timed, measured } = effect
    const frame = this.#begin(name, kind, measured, {
      ...effect.attributes,
      ...ownAttributes(session, caller),
      'openrath.state': session.state,
      'openrath.effect.key': key,
      'openrath.effect.occurrence': occurrence,
    })
    let ended: EffectEnd = {}
    try {
      if (this.#tells(frame)) await this.#say(frame, effect.content())
      const result = await this.#inside(frame, work)
      ended = effect.ended(result)
      return result
    } catch (error) {
      ended = { error: error instanceof RathError ? error.code : 'run-failed' }
      throw error
    } finally {
      if (ended.content && this.#tells(frame)) await this.#say(frame, ended.content)
      if (ended.attributes) frame.span.setAttributes(ended.attributes)
      if (ended.usage) this.#meters.used(ended.usage, { ...measured, ...ended.measured })
      this.#end(frame, timed, ended.measured ?? {}, ended.error)
    }
  }

  #begin(
    name: string,
    kind: number,
    measured: Attributes,
    attributes: Attributes,
    links: OtelLink[] = [],
  ): SpanFrame {
    const { trace, context, ROOT_CONTEXT } = this.#otel
    // Asked for each time: an SDK may be registered after the first run began.
    const tracer = this.#options.tracer ?? trace.getTracer('openrath', version)
    const active = context.active()
    const parent = active === ROOT_CONTEXT ? (spans.here?.context ?? active) : active
    const { words } = this.#options
    const said: Attributes = { ...measured, ...attributes }
    for (const [key, value] of Object.entries(said)) if (typeof value === 'string') said[key] = words(value)
    const span = this.#guard.try(() =>
      tracer.startSpan(words(name), { kind, attributes: said, links }, parent),
    )
    return {
      span: this.#guard.span(span),
      context: span ? trace.setSpan(parent, span) : parent,
      measured,
      started: performance.now(),
      recorded: 0,
    }
  }

  #inside<T>(frame: SpanFrame, work: () => T): T {
    return spans.run(frame, () => this.#otel.context.with(frame.context, work))
  }

  /** Messages of errors may quote what was said, so that a status names the code alone. */
  #end(
    { span, measured, started, recorded }: SpanFrame,
    timed: Parameters<Meters['took']>[0],
    more: Attributes,
    error: string | undefined,
  ): void {
    if (recorded > 0) span.setAttributes({ 'openrath.recorded': recorded })
    const type = error === undefined ? {} : { 'error.type': error }
    if (error !== undefined) {
      span.setAttributes(type)
      span.setStatus({ code: errorStatus, message: error })
      this.#meters.failed({ ...measured, ...type })
    }
    this.#meters.took(timed, performance.now() - started, { ...measured, ...more, ...type })
    span.end()
  }

  #tells({ span }: SpanFrame): boolean {
    return this.#options.clean !== undefined && span.isRecording()
  }

  /** What cannot be cleaned is not told. */
  async #say({ span }: SpanFrame, content: Content): Promise<void> {
    const cleaned = await this.#options.clean?.(content as Json).catch(() => ({}))
    for (const [name, value] of Object.entries(cleaned ?? {}))
      span.setAttributes({ [name]: typeof value === 'string' ? value : JSON.stringify(value) })
  }
}

function ownAttributes(session: Session, { runId, by, out }: Caller): Attributes {
  return {
    'openrath.run.id': runId,
    'openrath.session.id': out.id,
    'openrath.by': by,
    'openrath.branch': session.branch,
    'openrath.lane': session.lineage.lane ?? '',
  }
}

/** Sessions whose makers are remembered by id; the oldest are forgotten first. */
const most = 10_000
/** So many chunks are looked at behind the last one: what is added to a session between two calls is short. */
const farthest = 256

/** Which span made which session, as far as this process knows. */
class Makers {
  readonly #byId = new Map<string, OtelSpanContext>()
  /** By the last chunk: forks and appends of a session have ids of their own, and the same chunks. */
  readonly #byChunk = new WeakMap<Chunk, { readonly maker: OtelSpanContext; readonly session: string }>()

  add(session: Session, maker: OtelSpanContext): void {
    const { id } = session
    this.#byId.delete(id)
    this.#byId.set(id, maker)
    if (this.#byId.size > most) this.#byId.delete(this.#byId.keys().next().value as string)
    const last = session.chunks.at(-1)
    if (last) this.#byChunk.set(last, { maker, session: id })
  }

  /** Links to what made a session: the call it comes from, or the parents of the fork or merge that it is. */
  linksOf(session: Session): OtelLink[] {
    const { id, lineage } = session
    const own = this.#links([id], 'call')
    if (own.length > 0) return own
    const parents = this.#links(lineage.parents, lineage.operation)
    return parents.length > 0 ? parents : this.#behind(session)
  }

  /** The same for what a call returns, when it is a merge of what others made. */
  linksOfMerge({ lineage }: Session): OtelLink[] {
    return lineage.operation === 'merge' ? this.#links(lineage.parents, 'merge') : []
  }

  #behind({ chunks, lineage }: Session): OtelLink[] {
    const last = chunks.length - 1
    for (let index = last; index >= 0 && index > last - farthest; index--) {
      const chunk = chunks.at(index) as Chunk
      const known = this.#byChunk.get(chunk)
      if (known) return [linkTo(known.maker, known.session, lineage.operation)]
      if (chunk.kind !== 'merge') continue
      const merged = this.#links(
        chunk.branches.map(branch => branch.session),
        'merge',
      )
      if (merged.length > 0) return merged
    }
    return []
  }

  #links(ids: readonly string[], operation: string): OtelLink[] {
    return ids.flatMap(id => {
      const maker = this.#byId.get(id)
      return maker ? [linkTo(maker, id, operation)] : []
    })
  }
}

/** `operation` is how the session that is worked on came from the one that was made. */
function linkTo(context: OtelSpanContext, session: string, operation: string): OtelLink {
  return { context, attributes: { 'openrath.session.id': session, 'openrath.operation': operation } }
}
