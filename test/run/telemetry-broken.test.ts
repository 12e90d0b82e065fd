import { type SpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import { expect, test, vi } from 'vitest'
import { Agent } from '../../src/flow/agent.ts'
import { createRuntime } from '../../src/run/runtime.ts'
import type { TelemetryOptions } from '../../src/run/telemetry/telemetry.ts'
import { Session } from '../../src/session/session.ts'
import { scripted } from '../../src/testing/scripted.ts'
import { tool } from '../../src/tool/tool.ts'

const broken = () => {
  throw new Error('the collector is gone')
}
const instrument = { record: broken, add: broken }

function tracer(processor: Partial<SpanProcessor>): TelemetryOptions['tracer'] {
  const whole = {
    onStart: () => {},
    onEnd: () => {},
    forceFlush: async () => {},
    shutdown: async () => {},
    ...processor,
  }
  return new TracerProvider({ spanProcessors: [whole] }).getTracer('test')
}

test.each<[string, TelemetryOptions]>([
  ['a processor that throws when a span begins', { tracer: tracer({ onStart: broken }) as never }],
  ['a processor that throws when a span ends', { tracer: tracer({ onEnd: broken }) as never }],
  ['a meter without instruments', { meter: { createHistogram: broken, createCounter: broken } }],
  [
    'instruments that throw',
    { meter: { createHistogram: () => instrument, createCounter: () => instrument } },
  ],
])('%s ends no run: every effect happens once, and one warning is given', async (_, telemetry) => {
  const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  const runtime = createRuntime({ store: 'memory:', telemetry })
  const sent = vi.fn(() => 'sent')
  const send = tool({
    name: 'send',
    description: 'Sends.',
    effect: 'external',
    input: { type: 'object' },
    run: sent,
  })
  const model = scripted([{ toolCalls: [{ name: 'send' }] }, 'It is sent.'])
  const agent = new Agent('Send it.', { model, tools: [send], builtins: false })
  const out = await runtime.run(agent, Session.fromUserMessage('go'))
  expect(out.text).toBe('It is sent.')
  expect(sent).toHaveBeenCalledTimes(1)
  const ours = warned.mock.calls.filter(([, options]) => isOurs(options))
  expect(ours.map(([message]) => message)).toEqual([
    'Telemetry does not hear of everything: the collector is gone',
  ])
  warned.mockRestore()
  await runtime.close()
})

/** Work of other test files may warn meanwhile. */
const isOurs = (options: unknown) => (options as { code?: string } | undefined)?.code === 'OPENRATH_TELEMETRY'
