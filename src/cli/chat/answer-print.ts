import type { RunEvent } from '../../run/event.ts'
import type { Output } from '../output.ts'
import type { Progress } from '../progress.ts'
import { duration, oneLine, plain } from '../text.ts'

/** Prints an answer while it is made: its text as it comes, and a line for each tool. Between them the spinner turns. */
export class AnswerPrinter {
  readonly #output: Output
  readonly #progress: Progress
  #isInLine = false

  constructor(output: Output, progress: Progress) {
    this.#output = output
    this.#progress = progress
  }

  readonly onEvent = (event: RunEvent): void => {
    this.#progress.follow(event)
    switch (event.type) {
      case 'text-delta':
        this.#progress.stop()
        this.#output.stdout.write(plain(event.text))
        this.#isInLine = !event.text.endsWith('\n')
        break
      case 'tool-call':
        this.#line('cyan', `→ ${event.call.name} ${JSON.stringify(event.call.args)}`)
        break
      case 'tool-result': {
        const { kind } = event.outcome
        if (kind === 'value') this.#line('dim', `← ${event.tool} ${shown(event.outcome.value)}`)
        else
          this.#line(
            'yellow',
            `← ${event.tool} ${kind}: ${kind === 'denied' ? event.outcome.reason : event.outcome.message}`,
          )
        break
      }
      case 'retry':
        this.#line('yellow', `tries again in ${duration(event.waitMs)}: ${event.message}`)
    }
  }

  /** Ends a line that is not ended and takes the spinner away, for a question or for good. */
  pause(): void {
    this.#progress.stop()
    if (this.#isInLine) this.#output.stdout.write('\n')
    this.#isInLine = false
  }

  resume(): void {
    this.#progress.start()
  }

  #line(style: 'cyan' | 'dim' | 'yellow', text: string): void {
    this.pause()
    const width = Math.max(40, this.#output.width(this.#output.stdout) - 2)
    this.#output.print(this.#output.paint(style, oneLine(text, width)))
    this.resume()
  }
}

function shown(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
