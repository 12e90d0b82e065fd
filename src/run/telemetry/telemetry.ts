import { RathError, show } from '../../base/errors.ts'
import type { Json } from '../../base/json.ts'
import { loadOtel, type OtelMeter, type OtelTracer } from './otel.ts'
import { OtelTracing } from './otel-tracing.ts'

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
