import type { OtelSpan } from './otel.ts'

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
