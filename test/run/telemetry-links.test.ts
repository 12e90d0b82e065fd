import { AsyncLocalStorage } from 'node:async_hooks'
import { type Context, context, metrics, ROOT_CONTEXT, trace } from '@opentelemetry/api'
import { MeterProvider } from '@opentelemetry/sdk-metrics'
import { TracerProvider } from '@opentelemetry/sdk-trace'
import { afterEach, describe, expect, it } from 'vitest'
import { Parallel } from '../../src/flow/containers.ts'
import { Workflow } from '../../src/flow/workflow.ts'
import { createRuntime } from '../../src/run/runtime.ts'
import type { Session } from '../../src/session/session.ts'
import { openStore } from '../../src/store/open.ts'
import { tool } from '../../src/tool/tool.ts'
import { agentWith, ask } from './make.ts'
import { collector, one, parentOf, pointsIn, Reader, type Span, watched } from './telemetry-make.ts'

const named = (name: string, script = (): string => name) => agentWith(script, { name }).agent

/** How each span is linked: the operation, and the span it leads to. */
const linksOf = (span: Span, spans: readonly Span[]) =>
  span.links.map(({ context, attributes }) => {
    const to = spans.find(other => other.spanContext().spanId === context.spanId)
    return [
      attributes?.['openrath.operation'],
      to?.name,
      to?.attributes['openrath.session.id'] === attributes?.['openrath.session.id'],
    ]
  })

describe('a call links to', () => {
  it('the one that made its input, and that which was forked', async () => {
    const { runtime, spans } = await watched()
    const first = await runtime.run(named('first'), ask())
    await runtime.run(named('next'), first)
    await runtime.run(named('forked'), first.fork('side'))
    await runtime.run(named('added'), first.fork().user('more').user('and more'))
    await runtime.run(named('other'), ask('other'))
    const all = spans()
    const links = (name: string) => linksOf(one(all, `invoke_agent ${name}`), all)
    expect(links('first')).toEqual([])
    expect(links('next')).toEqual([['call', 'invoke_agent first', true]])
    expect(links('forked')).toEqual([['fork', 'invoke_agent first', true]])
    expect(links('added')).toEqual([['append', 'invoke_agent first', true]])
    expect(links('other')).toEqual([])
    // Runs of their own are traces of their own.
    expect(new Set(all.map(span => span.spanContext().traceId)).size).toBe(5)
  })

  it('every side of a merge, also when something was added since', async () => {
    const { runtime, spans } = await watched()
    class Drafts extends Workflow {
      left = named('left')
      right = named('right')
      judge = named('judge')
      later = named('later')
      async forward(session: Session) {
        const [a, b] = await Promise.all([this.left(session.fork()), this.right(session.fork())])
        const merged = await a.merge(b)
        await this.later(merged.user('Which is better?'))
        return this.judge(merged)
      }
    }
    await runtime.run(new Drafts(), ask())
    const all = spans()
    const sides = [
      ['merge', 'invoke_agent left', true],
      ['merge', 'invoke_agent right', true],
    ]
    expect(linksOf(one(all, 'invoke_agent judge'), all)).toEqual(sides)
    expect(linksOf(one(all, 'invoke_agent later'), all)).toEqual(sides)
  })

  it('the sides that it merges itself', async () => {
    const { runtime, spans } = await watched()
    const both = new Parallel({ left: named('left'), right: named('right') })
    const out = await runtime.run(both, ask())
    await runtime.run(named('next'), out)
    const all = spans()
    expect(linksOf(one(all, 'invoke_workflow Parallel'), all)).toEqual([
      ['merge', 'invoke_agent left', true],
      ['merge', 'invoke_agent right', true],
    ])
    expect(linksOf(one(all, 'invoke_agent next'), all)).toEqual([['call', 'invoke_workflow Parallel', true]])
  })

  it('nothing when another process made its input', async () => {
    const { runtime, store } = await watched()
    const made = await runtime.run(named('first'), ask())
    const elsewhere = await watched()
    await elsewhere.runtime.run(named('next'), await store.sessions.get(made.id))
    expect(one(elsewhere.spans(), 'invoke_agent next').links).toEqual([])
  })
})

describe('beside spans of your own', () => {
  afterEach(() => {
    context.disable()
    trace.disable()
    metrics.disable()
  })

  it('those of a run find their place, and yours find theirs in a tool', async () => {
    const storage = new AsyncLocalStorage<Context>()
    context.setGlobalContextManager({
      active: () => storage.getStore() ?? ROOT_CONTEXT,
      with: (active, work, self, ...args) => storage.run(active, () => work.call(self as never, ...args)),
      bind: (_, target) => target,
      enable() {
        return this
      },
      disable() {
        return this
      },
    })
    // The runtime is there first: an SDK that is registered later is used all the same.
    const runtime = createRuntime({ store: await openStore('memory:'), telemetry: true })
    await runtime.run(named('unseen'), ask())
    expect(runtime.tracing).toBeUndefined()
    const { processor, spans } = collector()
    trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [processor] }))
    const tracer = trace.getTracer('mine')
    const works = tool({
      name: 'works',
      description: 'Works.',
      input: { type: 'object' },
      effect: 'read',
      run: () => tracer.startActiveSpan('inside', span => void span.end()),
    })
    const { agent } = agentWith([{ toolCalls: [{ name: 'works' }] }, 'done'], { tools: [works] })
    await tracer.startActiveSpan('request', async span => {
      await runtime.run(agent, ask())
      span.end()
    })
    const all = spans()
    expect(all.map(span => [span.name, parentOf(span, all)])).toEqual([
      ['request', undefined],
      ['invoke_agent Agent', 'request'],
      ['chat model', 'invoke_agent Agent'],
      ['execute_tool works', 'invoke_agent Agent'],
      ['inside', 'execute_tool works'],
      ['chat model', 'invoke_agent Agent'],
    ])
    expect(one(all, 'invoke_agent Agent').instrumentationScope).toMatchObject({ name: 'openrath' })
  })

  it('metrics are counted by an SDK that has nothing else, whenever it is registered', async () => {
    const runtime = createRuntime({ store: await openStore('memory:'), telemetry: true })
    await runtime.run(named('unseen'), ask())
    const reader = new Reader()
    metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }))
    await runtime.run(named('seen'), ask())
    const { 'gen_ai.invoke_agent.duration': found } = await pointsIn(reader)
    expect(found).toMatchObject([{ attributes: { 'gen_ai.agent.name': 'seen' }, value: { count: 1 } }])
  })
})
