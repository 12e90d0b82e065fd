import { MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics'
import { type ReadableSpan, type SpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import { askedIn, outcomeIn } from '../../src/run/entry.ts'
import { createRuntime } from '../../src/run/runtime.ts'
import { openStore } from '../../src/store/open.ts'
import type { JournalEntry, Store, StoreOptions } from '../../src/store/spec.ts'

export type Span = ReadableSpan

export class Reader extends MetricReader {
  protected override async onForceFlush(): Promise<void> {}
  protected override async onShutdown(): Promise<void> {}
}

/** A runtime over a store of its own, and what an SDK was told of it. */
export async function watched(more: { content?: boolean; redact?: StoreOptions['redact'] } = {}) {
  const collected = collector()
  const provider = new TracerProvider({ spanProcessors: [collected.processor] })
  const reader = new Reader()
  const meters = new MeterProvider({ readers: [reader] })
  const { content = false, redact } = more
  const store = await openStore('memory:', redact ? { redact } : {})
  const telemetry = { tracer: provider.getTracer('test'), meter: meters.getMeter('test'), content }
  const runtime = createRuntime({ store, telemetry })
  return {
    runtime,
    store,
    spans: collected.spans,
    clear: collected.clear,
    metrics: () => pointsIn(reader),
  }
}

/** What each metric has counted, by name. */
export async function pointsIn(reader: Reader): Promise<Record<string, Point[]>> {
  const { resourceMetrics } = await reader.collect()
  const found: Record<string, Point[]> = {}
  for (const { metrics } of resourceMetrics.scopeMetrics)
    for (const { descriptor, dataPoints } of metrics) found[descriptor.name] = dataPoints as Point[]
  return found
}

/** Spans in the order they began; one that was begun and never ended is a mistake. */
export function collector() {
  const spans: Span[] = []
  const processor: SpanProcessor = {
    onStart: span => void spans.push(span),
    onEnd: () => {},
    forceFlush: async () => {},
    shutdown: async () => {},
  }
  return {
    processor,
    clear: () => void spans.splice(0),
    spans(): readonly Span[] {
      const open = spans.filter(({ ended }) => !ended)
      if (open.length > 0) throw new Error(`never ended: ${open.map(({ name }) => name)}`)
      return [...spans]
    },
  }
}

export interface Point {
  readonly attributes: Readonly<Record<string, unknown>>
  readonly value:
    | number
    | { readonly count: number; readonly sum: number; readonly buckets: { boundaries: number[] } }
}

export const one = (spans: readonly Span[], name: string): Span => {
  const found = spans.filter(span => span.name === name)
  if (found.length !== 1)
    throw new Error(`${found.length} spans are called ${name}: ${spans.map(s => s.name)}`)
  return found[0] as Span
}

export const parentOf = (span: Span, spans: readonly Span[]): string | undefined =>
  spans.find(other => other.spanContext().spanId === span.parentSpanContext?.spanId)?.name

/** What the spans of a run's effects should be, by its journal: what was asked of the world, and not taken from another run. */
export async function effectsOnRecord(store: Store, run: string): Promise<string[]> {
  const entries = (await store.runs.journal(run)).filter(
    ({ kind, request }) =>
      ['model', 'tool', 'memory'].includes(kind) && askedIn({ request } as JournalEntry).reused === undefined,
  )
  return entries
    .map(entry => `${entry.key}.${entry.occurrence} ${nameOf(entry)} ${failed(entry) ? 'failed' : 'ok'}`)
    .sort()
}

export function effectsInSpans(spans: readonly Span[]): string[] {
  return spans
    .flatMap(({ name, attributes, status }) => {
      const { 'openrath.effect.key': key, 'openrath.effect.occurrence': occurrence } = attributes
      return key === undefined ? [] : [`${key}.${occurrence} ${name} ${status.code === 2 ? 'failed' : 'ok'}`]
    })
    .sort()
}

const operations: Record<string, string> = {
  recall: 'search_memory',
  remember: 'create_memory',
  commit: 'upsert_memory',
  forget: 'delete_memory',
}

function nameOf(entry: JournalEntry): string {
  const request = askedIn(entry).request as Record<string, string>
  if (entry.kind === 'model') return `chat ${request.model?.split('/')[1]}`
  if (entry.kind === 'tool') return `execute_tool ${request.tool}`
  return `${operations[request.op as string]}`
}

function failed(entry: JournalEntry): boolean {
  const outcome = outcomeIn(entry)
  const { outcome: tool } = (outcome?.value ?? {}) as { outcome?: { kind: string } }
  return outcome?.error !== undefined || tool?.kind === 'error'
}
