import type { RunEvent } from '../../run/event.ts'
import type { Output } from '../output.ts'
import { duration, oneLine, plain } from '../text.ts'

/** Prints an answer while it is made: its text as it comes, and a line for each tool. */
export class AnswerPrinter {
  readonly #output: Output
  #isInLine = false

  constructor(output: Output) {
    this.#output = output
  }

  readonly onEvent = (event: RunEvent): void => {
    switch (event.type) {
      case 'text-delta':
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

  /** Ends a line that is not ended. */
  end(): void {
    if (this.#isInLine) this.#output.stdout.write('\n')
    this.#isInLine = false
  }

  #line(style: 'cyan' | 'dim' | 'yellow', text: string): void {
    this.end()
    const width = Math.max(40, this.#output.width(this.#output.stdout) - 2)
    this.#output.print(this.#output.paint(style, oneLine(text, width)))
  }
}

function shown(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
