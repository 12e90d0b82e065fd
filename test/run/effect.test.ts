import { expect, it } from 'vitest'
import { Workflow } from '../../src/flow/workflow.ts'
import type { ForwardContext } from '../../src/run/forward.ts'
import type { Session } from '../../src/session/session.ts'
import { fresh, say } from './journal/make.ts'
import { failureOf } from './make.ts'

it('what nobody waits for is part of the run, and ends it', async () => {
  const { store, runtime } = await fresh()
  const gate = Promise.withResolvers<string>()
  class Later extends Workflow {
    forward(session: Session, context: ForwardContext) {
      void context.effect('later', {}, () => gate.promise)
      return session
    }
  }
  const workflow = new Later()
  const pending = runtime.run(workflow, say())
  await pending
  gate.resolve('there')
  await expect.poll(async () => (await store.runs.get(pending.runId)).status).toBe('done')
  const [entry] = (await store.runs.journal(pending.runId)).filter(({ kind }) => kind !== 'definition')
  expect(entry?.outcome).toMatchObject({ value: 'there' })
  expect(await runtime.replay(pending.runId, workflow)).toMatchObject({ ok: true })
})

it('an effect of a kind that there is not is refused before it is done', async () => {
  const { runtime } = await fresh()
  class Typo extends Workflow {
    async forward(session: Session, context: ForwardContext) {
      await context.effect('charge', {}, () => expect.unreachable(), { effect: 'extern' as never })
      return session
    }
  }
  const error = await failureOf(runtime.run(new Typo(), say()))
  expect(error.message).toBe(
    'The effect of "charge" must be one of pure, read, workspace, idempotent, external, not "extern".',
  )
})

it('a cancelled call does not wait for an effect that does not listen and can be done again', async () => {
  const { store, runtime } = await fresh()
  const begun = Promise.withResolvers<void>()
  class Deaf extends Workflow {
    async forward(session: Session, context: ForwardContext) {
      const work = () => {
        begun.resolve()
        return new Promise<null>(() => {})
      }
      await context.effect('look', {}, work, { effect: 'read' })
      return session
    }
  }
  const pending = runtime.run(new Deaf(), say())
  await begun.promise
  pending.cancel('enough')
  expect((await failureOf(pending)).code).toBe('cancelled')
  expect((await store.runs.get(pending.runId)).status).toBe('cancelled')
})

it('what a forward takes out of its context works by itself', async () => {
  const { runtime } = await fresh()
  class Taking extends Workflow {
    async forward(session: Session, { effect, now, random, id }: ForwardContext) {
      const drawn = [await now(), await random(), await id(), await effect('one', {}, () => 1)]
      return session.user(drawn.map(value => typeof value).join(' '))
    }
  }
  const out = await runtime.run(new Taking(), say())
  expect(out.chunks.findLast(chunk => chunk.kind === 'user')?.text).toBe('number number string number')
})
