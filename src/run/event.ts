import type { Json } from '../base/json.ts'
import type { ModelDelta } from '../model/spec.ts'
import type { Chunk, ToolOutcome } from '../session/chunk.ts'
import type { ToolCallPart } from '../session/part.ts'

/** Where an event comes from. */
export interface EventSource {
  /** Producer path: the workflows and agents from the outermost call inwards, `Review/writer`. */
  readonly by: string
  /** The session that is being made. */
  readonly sessionId: string
}

/** Everything that can be followed while a run works, one stream for all of it. */
export type RunEvent = EventSource &
  (
    | { readonly type: 'run-start' }
    | ModelDelta
    | { readonly type: 'tool-call'; readonly call: ToolCallPart }
    | { readonly type: 'tool-progress'; readonly callId: string; readonly data: Json }
    | {
        readonly type: 'tool-result'
        readonly callId: string
        readonly tool: string
        readonly outcome: ToolOutcome
      }
    | {
        readonly type: 'retry'
        readonly attempt: number
        readonly waitMs: number
        readonly error: string
        readonly message: string
      }
    | {
        readonly type: 'memory-recall'
        readonly store: string
        readonly hits: number
        readonly error?: string
      }
    | {
        readonly type: 'approval-request'
        readonly approval: string
        readonly callId?: string
        readonly tool?: string
        readonly args?: Json
        readonly question?: string
      }
    | { readonly type: 'chunk'; readonly chunk: Chunk }
    | { readonly type: 'run-end'; readonly status: RunEnd; readonly error?: string }
  )

/** `waiting`: for a person, who approves or reviews; the run can be resumed. */
export type RunEnd = 'done' | 'failed' | 'cancelled' | 'waiting'

/** An event before it is known who emits it. */
export type EventBody = RunEvent extends infer E
  ? E extends RunEvent
    ? Omit<E, keyof EventSource>
    : never
  : never

export type EventListener = (event: RunEvent) => void

/**
 * Hands events to whoever listens, and to the stream of the run around this one. A listener that throws is reported and goes on
 * being told; one that is slow reads from its own queue. Nothing a listener does reaches the run.
 */
export class EventStream {
  readonly #outer: EventStream | undefined
  /** How many follow any stream of the run: while nobody does, no stream has to ask those around it. */
  readonly #run: { followers: number }
  /** Made for the first who listens: most streams inside a run are followed by nobody. */
  #listeners: Set<EventListener> | undefined
  #queues: Set<EventQueue> | undefined
  #ended = false

  constructor(outer?: EventStream) {
    this.#outer = outer
    this.#run = outer ? outer.#run : { followers: 0 }
  }

  /** Whether anybody would see an event now; deltas need not be made when not. */
  get observed(): boolean {
    if (this.#run.followers === 0) return false
    if (this.#listeners?.size || this.#queues?.size) return true
    return this.#outer?.observed ?? false
  }

  emit(event: RunEvent): void {
    for (const listener of this.#listeners ?? []) tell(listener, event)
    for (const queue of this.#queues ?? []) queue.push(event)
    this.#outer?.emit(event)
  }

  listen(listener: EventListener): Disposable {
    this.#listeners ??= new Set()
    if (!this.#listeners.has(listener)) this.#run.followers++
    this.#listeners.add(listener)
    return {
      [Symbol.dispose]: () => {
        if (this.#listeners?.delete(listener)) this.#run.followers--
      },
    }
  }

  /**
   * The events from now on, then whatever `settled` ends with: an iteration of a failed run throws at its end. Leaving the loop
   * early ends only the following, not the run.
   */
  iterate(settled: Promise<unknown>): AsyncIterableIterator<RunEvent> {
    const queue = new EventQueue(settled, () => {
      if (this.#queues?.delete(queue)) this.#run.followers--
    })
    if (this.#ended) {
      queue.end()
      return queue
    }
    this.#queues ??= new Set()
    this.#queues.add(queue)
    this.#run.followers++
    return queue
  }

  /** No event comes after this; every iteration finishes once it has read what it has. */
  end(): void {
    this.#ended = true
    this.#run.followers -= (this.#listeners?.size ?? 0) + (this.#queues?.size ?? 0)
    for (const queue of this.#queues ?? []) queue.end()
    this.#queues = undefined
    this.#listeners = undefined
  }
}

class EventQueue implements AsyncIterableIterator<RunEvent> {
  readonly #settled: Promise<unknown>
  readonly #leave: () => void
  #events: RunEvent[] = []
  #next = 0
  #ended = false
  #left = false
  #waiting: ((result: Next | Promise<Next>) => void)[] = []

  constructor(settled: Promise<unknown>, leave: () => void) {
    this.#settled = settled
    this.#leave = leave
  }

  push(event: RunEvent): void {
    const waiting = this.#waiting.shift()
    if (waiting) waiting({ value: event, done: false })
    else this.#events.push(event)
  }

  end(): void {
    this.#ended = true
    for (const waiting of this.#waiting.splice(0)) waiting(this.#done())
  }

  next(): Promise<Next> {
    if (this.#next < this.#events.length) {
      const value = this.#events[this.#next++] as RunEvent
      if (this.#next * 2 >= this.#events.length) this.#drop(this.#next)
      return Promise.resolve({ value, done: false })
    }
    if (this.#ended) return this.#done()
    return new Promise(resolve => this.#waiting.push(resolve))
  }

  return(): Promise<Next> {
    this.#drop(this.#events.length)
    this.#left = true
    this.#leave()
    this.end()
    return this.#done()
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /** Lets go of the first so many: whoever is always behind must not hold on to all that was ever told. */
  #drop(count: number): void {
    this.#events = this.#events.slice(count)
    this.#next = 0
  }

  /** The end, told once: a failure is thrown by the first call that meets it. */
  #done(): Promise<Next> {
    const end: Next = { value: undefined, done: true }
    if (this.#left) return Promise.resolve(end)
    this.#left = true
    return this.#settled.then(() => end)
  }
}

type Next = IteratorResult<RunEvent, undefined>

function tell(listener: EventListener, event: RunEvent): void {
  try {
    const returned = listener(event) as unknown
    // An async listener is not waited for, but its failure is not lost either.
    if (returned instanceof Promise) returned.catch(error => report(error, listener))
  } catch (error) {
    report(error, listener)
  }
}

/** What was said about a listener: one that throws at every delta says the same a thousand times. */
const reported = new WeakMap<EventListener, Set<string>>()

function report(error: unknown, listener: EventListener): void {
  const text = error instanceof Error ? error.message : String(error)
  const said = reported.get(listener) ?? new Set()
  if (said.has(text)) return
  reported.set(listener, said.add(text))
  process.emitWarning(`openrath: an event listener threw: ${text}`, 'OpenRathWarning')
}
