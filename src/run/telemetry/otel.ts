import { createRequire } from 'node:module'
import { RathError } from '../../base/errors.ts'

/** The part of `@opentelemetry/api` that is used here: types of ours need no package that may not be installed. */
export interface Otel {
  readonly trace: {
    getTracer(name: string, version?: string): OtelTracer
    getTracerProvider(): object
    setSpan(context: OtelContext, span: OtelSpan): OtelContext
  }
  readonly metrics: { getMeterProvider(): OtelMeterProvider }
  readonly context: { active(): OtelContext; with<T>(context: OtelContext, work: () => T): T }
  readonly ROOT_CONTEXT: OtelContext
  createNoopMeter(): unknown
}

/** What an API context is to us: something to hand back. */
export type OtelContext = object

export interface Attributes {
  [name: string]: string | number | boolean | string[] | undefined
}

export interface OtelSpanContext {
  readonly traceId: string
  readonly spanId: string
  readonly traceFlags: number
}

export interface OtelLink {
  readonly context: OtelSpanContext
  readonly attributes?: Attributes
}

export interface OtelSpan {
  spanContext(): OtelSpanContext
  isRecording(): boolean
  setAttributes(attributes: Attributes): unknown
  addEvent(name: string, attributes?: Attributes): unknown
  addLinks(links: OtelLink[]): unknown
  setStatus(status: { code: number; message?: string }): unknown
  end(): void
}

export interface OtelTracer {
  startSpan(
    name: string,
    options?: { kind?: number; attributes?: Attributes; links?: OtelLink[] },
    context?: OtelContext,
  ): OtelSpan
}

export interface OtelMeterProvider {
  getMeter(name: string, version?: string): OtelMeter
}

export interface OtelMeter {
  createHistogram(name: string, options: InstrumentOptions): Histogram
  createCounter(name: string, options: InstrumentOptions): Counter
}

export interface InstrumentOptions {
  readonly description: string
  readonly unit: string
  readonly advice?: { explicitBucketBoundaries?: number[] }
}

export interface Histogram {
  record(value: number, attributes: Attributes): void
}

export interface Counter {
  add(value: number, attributes: Attributes): void
}

/** Whether an SDK is registered, for spans or for metrics. */
export function hasSdk({ trace, metrics, createNoopMeter }: Otel): boolean {
  // What stands in for a provider until there is one says so by having no tracer behind it.
  const provider = trace.getTracerProvider() as { getDelegateTracer?(name: string): unknown }
  if (provider.getDelegateTracer === undefined || provider.getDelegateTracer('openrath') !== undefined)
    return true
  return metrics.getMeterProvider().getMeter('openrath') !== createNoopMeter()
}

/** Numbers of the specification. */
export const spanKind = { internal: 0, client: 2 } as const
export const errorStatus = 2

const name = '@opentelemetry/api'

/** Loads the API at once, so that it is known before a run begins whether it is there. All copies of it share what was registered. */
export function loadOtel(require: (name: string) => unknown = createRequire(import.meta.url)): Otel {
  try {
    return require(name) as Otel
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'MODULE_NOT_FOUND') throw cause
    throw new RathError(
      'missing-package',
      `Telemetry needs the package ${name}, which is not installed: run \`npm install ${name}\`, with an SDK that sends what it is told.`,
      { cause, data: { package: name } },
    )
  }
}
