import { version } from '../../base/version.ts'
import type { Usage } from '../../session/usage.ts'
import type { Attributes, Counter, Histogram, Otel, OtelMeter, OtelMeterProvider, OtelSpan } from './otel.ts'

/** Bucket boundaries that the conventions prescribe. */
const seconds = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
/** A call is many of those. */
const longSeconds = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6]
const tokens = [
  1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216, 67_108_864,
]

/** What has a duration of its own. */
export type Timed = 'operation' | 'agent' | 'workflow' | 'tool'

interface Instruments extends Readonly<Record<Timed, Histogram>> {
  readonly tokens: Histogram
  readonly cost: Counter
  readonly errors: Counter
  readonly retries: Counter
}

/** Tokens, money, time and failures, as metrics. Those of the API know nothing of an SDK that comes later, so they are made for each. */
export class Meters {
  readonly #otel: Otel
  readonly #given: OtelMeter | undefined
  readonly #guard: Guard
  #provider: OtelMeterProvider | undefined
  #instruments: Instruments | undefined

  constructor(otel: Otel, given: OtelMeter | undefined, guard: Guard) {
    this.#otel = otel
    this.#given = given
    this.#guard = guard
  }

  took(what: Timed, ms: number, attributes: Attributes): void {
    this.#tell(instruments => instruments[what].record(ms / 1000, attributes))
  }

  used({ inputTokens, outputTokens, cost }: Usage, attributes: Attributes): void {
    this.#tell(instruments => {
      instruments.tokens.record(inputTokens, { ...attributes, 'gen_ai.token.type': 'input' })
      instruments.tokens.record(outputTokens, { ...attributes, 'gen_ai.token.type': 'output' })
      if (cost !== undefined) instruments.cost.add(cost, attributes)
    })
  }

  failed(attributes: Attributes): void {
    this.#tell(({ errors }) => errors.add(1, attributes))
  }

  retried(attributes: Attributes): void {
    this.#tell(({ retries }) => retries.add(1, attributes))
  }

  #tell(record: (instruments: Instruments) => void): void {
    this.#guard.try(() => record(this.#now()))
  }

  #now(): Instruments {
    const provider = this.#given ? undefined : this.#otel.metrics.getMeterProvider()
    if (this.#instruments === undefined || provider !== this.#provider) {
      this.#provider = provider
      const meter = this.#given ?? provider?.getMeter('openrath', version)
      this.#instruments = instrumentsOf(meter as OtelMeter)
    }
    return this.#instruments
  }
}

function instrumentsOf(meter: OtelMeter): Instruments {
  const duration = (name: string, description: string, boundaries: readonly number[]) =>
    meter.createHistogram(name, {
      description,
      unit: 's',
      advice: { explicitBucketBoundaries: [...boundaries] },
    })
  return {
    operation: duration('gen_ai.client.operation.duration', 'How long an operation took.', seconds),
    agent: duration('gen_ai.invoke_agent.duration', 'How long the call of an agent took.', longSeconds),
    workflow: duration(
      'gen_ai.invoke_workflow.duration',
      'How long the call of a workflow took.',
      longSeconds,
    ),
    tool: duration('gen_ai.execute_tool.duration', 'How long a tool ran.', seconds),
    tokens: meter.createHistogram('gen_ai.client.token.usage', {
      description: 'Tokens of a request and its answer.',
      unit: '{token}',
      advice: { explicitBucketBoundaries: [...tokens] },
    }),
    cost: meter.createCounter('openrath.cost', {
      description: 'US dollars that answers cost, where a price is known.',
      unit: '{USD}',
    }),
    errors: meter.createCounter('openrath.errors', {
      description: 'Calls and effects that failed.',
      unit: '{error}',
    }),
    retries: meter.createCounter('openrath.retries', {
      description: 'Failed attempts that were followed by another.',
      unit: '{retry}',
    }),
  }
}

/**
 * What watches a run must not end it, nor lose an answer that was paid for: whatever an SDK, a processor of spans or a meter throws is warned of
 * once, and the work goes on.
 */
export class Guard {
  #isWarned = false

  try<T>(tell: () => T): T | undefined {
    try {
      return tell()
    } catch (error) {
      if (!this.#isWarned) {
        const message = `Telemetry does not hear of everything: ${error instanceof Error ? error.message : String(error)}`
        process.emitWarning(message, { code: 'OPENRATH_TELEMETRY' })
      }
      this.#isWarned = true
      return undefined
    }
  }

  /** A span that never throws; without one, a span that nobody hears of. */
  span(span: OtelSpan | undefined): OtelSpan {
    const told = (tell: (span: OtelSpan) => unknown) => void (span && this.try(() => tell(span)))
    return {
      spanContext: () => (span && this.try(() => span.spanContext())) ?? nowhere,
      isRecording: () => (span && this.try(() => span.isRecording())) ?? false,
      setAttributes: attributes => told(span => span.setAttributes(attributes)),
      addEvent: (name, attributes) => told(span => span.addEvent(name, attributes)),
      addLinks: links => told(span => span.addLinks(links)),
      setStatus: status => told(span => span.setStatus(status)),
      end: () => told(span => span.end()),
    }
  }
}

/** The specification's context of no span. */
const nowhere = { traceId: '0'.repeat(32), spanId: '0'.repeat(16), traceFlags: 0 }
