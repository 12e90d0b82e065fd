import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { SessionChange, Store, SubscribeOptions } from '../../store/spec.ts'
import type { ConformanceCase } from '../conformance.ts'
import { casesOn, type OpenStore, says, talk } from './case.ts'

export function followCases(open: OpenStore): ConformanceCase[] {
  return casesOn(open, {
    async 'a subscriber is told of sessions that are put and extended'({ store }) {
      const session = talk(1)
      using follower = follow(store)
      await store.sessions.put(session)
      await follower.until(({ session: row }) => row.id === session.id && row.length === 1)
      const { head } = await store.sessions.append(session.id, [says('more')])
      const change = await follower.until(({ session: row }) => row.length === 2)
      assert.equal(change.session.head, head)
      assert.deepEqual(change.session.lineage, session.lineage)
    },

    async 'a subscriber is not told of what was there before'({ store }) {
      await store.sessions.put(talk(1))
      using follower = follow(store)
      const later = talk(2)
      await store.sessions.put(later)
      await follower.until(({ session }) => session.id === later.id)
      assert.deepEqual(
        follower.changes.map(({ session }) => session.id),
        [later.id],
      )
    },

    async 'a subscriber is told what another connection writes'({ store, other }) {
      const second = await other()
      using follower = follow(store)
      const session = talk(1)
      await second.sessions.put(session)
      await follower.until(({ session: row }) => row.id === session.id)
      for (let i = 0; i < 50; i++) await second.sessions.append(session.id, [says(`${i}`)])
      await follower.until(({ session: row }) => row.length === 51)
    },

    async 'a subscriber to one session is told of no other'({ store }) {
      const [wanted, unwanted] = [talk(1), talk(1)]
      await store.sessions.put(wanted)
      await store.sessions.put(unwanted)
      using follower = follow(store, { session: wanted.id })
      await store.sessions.append(unwanted.id, [says('no')])
      await store.sessions.append(wanted.id, [says('yes')])
      await follower.until(({ session }) => session.id === wanted.id)
      assert.ok(follower.changes.every(({ session }) => session.id === wanted.id))
    },

    async 'a cursor resumes without a gap'({ store, other }) {
      const first = talk(1)
      let cursor: string
      {
        using follower = follow(store)
        await store.sessions.put(first)
        cursor = (await follower.until(({ session }) => session.id === first.id)).cursor
      }
      const missed = Array.from({ length: 2500 }, () => talk(1))
      await Promise.all(missed.map(session => store.sessions.put(session)))
      using again = follow(await other(), { cursor })
      const wanted = new Set(missed.map(({ id }) => id))
      await again.until(({ session }) => {
        wanted.delete(session.id)
        return wanted.size === 0
      })
      assert.ok(!again.changes.some(({ session }) => session.id === first.id))
    },

    async 'a cursor of any change leaves out nothing that came after it'({ store }) {
      using start = follow(store)
      const first = talk(1)
      await store.sessions.put(first)
      const { cursor } = await start.until(({ session }) => session.id === first.id)
      const sessions = Array.from({ length: 5 }, () => talk(1))
      await Promise.all(sessions.map(session => store.sessions.put(session)))
      using whole = follow(store, { cursor })
      await whole.until(() => whole.changes.length >= 5)
      const changes = [...whole.changes]
      for (const [i, change] of changes.entries()) {
        const rest = new Set(changes.slice(i + 1).map(({ session }) => session.id))
        using resumed = follow(store, { cursor: change.cursor })
        const last = talk(1)
        await store.sessions.put(last)
        rest.add(last.id)
        await resumed.until(({ session }) => {
          rest.delete(session.id)
          return rest.size === 0
        })
      }
    },

    async 'a cursor of a session that was deleted since leaves out nothing that came after it'({ store }) {
      const first = talk(1)
      let cursor: string
      {
        using follower = follow(store)
        await store.sessions.put(first)
        cursor = (await follower.until(({ session }) => session.id === first.id)).cursor
      }
      await store.sessions.delete(first.id)
      const next = talk(1)
      await store.sessions.put(next)
      using again = follow(store, { cursor })
      await again.until(({ session }) => session.id === next.id)
    },

    async 'a listener that throws is reported and goes on being told'({ store }) {
      const told = new Set<string>()
      const both = Promise.withResolvers<void>()
      const warned = once(process, 'warning')
      using _ = store.sessions.subscribe(({ session }) => {
        if (told.add(session.id).size === 2) both.resolve()
        throw new Error('a listener of the conformance suite')
      })
      using follower = follow(store)
      for (const session of [talk(1), talk(1)]) {
        await store.sessions.put(session)
        await follower.until(change => change.session.id === session.id)
      }
      assert.match(String((await warned)[0]), /a listener of the conformance suite/)
      // Two subscribers are told in no particular order.
      await both.promise
    },

    async 'a disposed subscription is told nothing more, also from within its listener'({ store }) {
      let told = 0
      const first = Promise.withResolvers<void>()
      const subscription = store.sessions.subscribe(() => {
        told++
        first.resolve()
        subscription[Symbol.dispose]()
      })
      using follower = follow(store)
      const sessions = [talk(1), talk(1), talk(1)]
      await Promise.all(sessions.map(session => store.sessions.put(session)))
      for (const { id } of sessions) await follower.until(({ session }) => session.id === id)
      await first.promise
      assert.equal(told, 1)
      subscription[Symbol.dispose]()
    },

    async 'closing the store ends its subscriptions'({ store, other }) {
      const second = await other()
      let told = 0
      store.sessions.subscribe(() => {
        told++
      })
      await store.close()
      if (second !== store) await second.sessions.put(talk(1))
      assert.equal(told, 0)
    },
  })
}

interface Following extends Disposable {
  readonly changes: readonly SessionChange[]
  /** The first change, told already or yet to come, that fits. */
  until(fits: (change: SessionChange) => boolean): Promise<SessionChange>
}

function follow(store: Store, options?: SubscribeOptions): Following {
  const changes: SessionChange[] = []
  const waiting = new Set<() => void>()
  const subscription = store.sessions.subscribe(change => {
    changes.push(change)
    for (const look of waiting) look()
  }, options)
  // A subscription alone need not keep a process alive; waiting for one in a test must.
  const alive = setInterval(() => {}, 1000)
  return {
    changes,
    async until(fits) {
      for (let next = 0; ; ) {
        for (; next < changes.length; next++) {
          const change = changes[next] as SessionChange
          if (fits(change)) return change
        }
        await new Promise<void>(resolve => {
          waiting.add(resolve)
        })
        waiting.clear()
      }
    },
    [Symbol.dispose]() {
      clearInterval(alive)
      subscription[Symbol.dispose]()
    },
  }
}
