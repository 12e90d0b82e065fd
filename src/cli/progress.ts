import type { RunEvent } from '../run/event.ts'
import type { Chunk } from '../session/chunk.ts'
import type { Output } from './output.ts'
import { count, duration, oneLine } from './text.ts'

const frames = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
const interval = 100

export interface ProgressOptions {
  /** Nothing is said. */
  readonly quiet?: boolean
  readonly now?: () => number
  /** What the spinner says until something else happens. */
  readonly doing?: string
}

/** Turns the spinner of a terminal while something is done. */
export async function whileWorking<T>(
  output: Output,
  doing: string,
  work: (progress: Progress) => Promise<T>,
): Promise<T> {
  using progress = new Progress(output, { doing })
  return await work(progress)
}

/** What a long piece of work is at: a line for each thing that happens, and on a terminal a spinner with time and tokens below them. */
export class Progress implements Disposable {
  readonly #output: Output
  readonly #quiet: boolean
  readonly #now: () => number
  readonly #began: number
  #timer: NodeJS.Timeout | undefined
  /** Unknown until a model has answered: not all work asks one. */
  #tokens: number | undefined
  #doing: string
  #frame = 0
  #isShown = false
  #held: string[] | undefined

  constructor(output: Output, { quiet = false, now = Date.now, doing = '' }: ProgressOptions = {}) {
    this.#doing = doing
    this.#output = output
    this.#quiet = quiet
    this.#now = now
    this.#began = now()
    this.start()
  }

  readonly onEvent = (event: RunEvent): void => {
    this.follow(event)
    const text = happened(event)
    if (text) this.#say(event.by, text)
  }

  /** Only the spinner says it, for whoever prints lines of their own. */
  follow(event: RunEvent): void {
    if (event.type === 'chunk' && event.chunk.kind === 'assistant') {
      this.#tokens = (this.#tokens ?? 0) + (event.chunk.usage?.totalTokens ?? 0)
    }
    this.#doing = doing(event) ?? this.#doing
  }

  /** A line above the spinner. */
  line(text: string): void {
    if (this.#held) {
      this.#held.push(text)
      return
    }
    this.#clear()
    if (!this.#quiet) this.#output.tell(text)
    this.#draw()
  }

  /** Draws the spinner where there is a terminal. */
  start(): void {
    if (this.#quiet || !this.#output.stderr.isTTY || this.#timer) return
    this.#timer = setInterval(() => this.#turn(), interval)
    // The spinner alone keeps nothing alive.
    this.#timer.unref()
  }

  /** Keeps everything back while a person reads a question: what other branches do must not push it off the screen. */
  hold(): void {
    this.stop()
    this.#held ??= []
  }

  /** Says what was kept back, and goes on. */
  release(): void {
    const held = this.#held ?? []
    this.#held = undefined
    for (const text of held) this.line(text)
    this.start()
  }

  /** Takes the spinner away, for good or for a while. */
  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#clear()
  }

  [Symbol.dispose](): void {
    this.stop()
  }

  #say(by: string, text: string): void {
    const width = Math.max(40, this.#output.width(this.#output.stderr) - by.length - 2)
    this.line(`${this.#output.paint('dim', by, this.#output.stderr)} ${oneLine(text, width)}`)
  }

  #turn(): void {
    this.#frame = (this.#frame + 1) % frames.length
    this.#clear()
    this.#draw()
  }

  #draw(): void {
    if (this.#timer === undefined) return
    const facts = [
      duration(this.#now() - this.#began),
      this.#tokens !== undefined && count(this.#tokens, 'token'),
      this.#doing,
    ]
    const room = this.#output.width(this.#output.stderr) - 3
    this.#output.stderr.write(`${frames[this.#frame]} ${oneLine(facts.filter(Boolean).join(', '), room)}`)
    this.#isShown = true
  }

  #clear(): void {
    if (!this.#isShown) return
    this.#output.stderr.write('\r\u001b[K')
    this.#isShown = false
  }
}

/** What is going on now, for the spinner. */
function doing(event: RunEvent): string | undefined {
  if (event.type === 'text-delta') return `${event.by} writes`
  if (event.type === 'reasoning-delta') return `${event.by} thinks`
  if (event.type === 'tool-result') return `${event.by} goes on`
  return event.type === 'tool-call' ? `${event.by} uses ${event.call.name}` : undefined
}

/** The last answer of the outermost agent is the result, which is printed anyway. */
function isOnTheWay(chunk: Chunk, by: string): boolean {
  if (chunk.kind !== 'assistant') return false
  return by.includes('/') || chunk.content.some(({ type }) => type === 'tool-call')
}

/** What has happened, for a line of its own. */
function happened(event: RunEvent): string | undefined {
  switch (event.type) {
    case 'tool-call':
      return `→ ${event.call.name} ${JSON.stringify(event.call.args)}`
    case 'tool-result':
      return `← ${event.tool}${event.outcome.kind === 'value' ? '' : ` ${event.outcome.kind}`}`
    case 'retry':
      return `tries again in ${duration(event.waitMs)}: ${event.message}`
    case 'approval-request':
      return `? ${event.question ?? event.tool ?? event.approval}`
    case 'chunk':
      return isOnTheWay(event.chunk, event.by) ? event.chunk.text : undefined
    default:
      return undefined
  }
}
