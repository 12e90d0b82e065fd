import { styleText } from 'node:util'

/** Where a command prints: the streams of a process. */
export interface Streams {
  readonly stdout: NodeJS.WriteStream
  readonly stderr: NodeJS.WriteStream
  readonly env: Readonly<Record<string, string | undefined>>
}

type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan'

/** Results go to stdout, everything said about them to stderr. Colour only on a terminal, and not with `NO_COLOR`. */
export class Output {
  readonly stdout: NodeJS.WriteStream
  readonly stderr: NodeJS.WriteStream
  readonly #noColour: boolean

  constructor({ stdout, stderr, env }: Streams) {
    this.stdout = stdout
    this.stderr = stderr
    this.#noColour = Boolean(env.NO_COLOR) || env.TERM === 'dumb'
  }

  /** A result, with a line break behind it. */
  print(text: string): void {
    this.stdout.write(text.endsWith('\n') ? text : `${text}\n`)
  }

  json(value: unknown): void {
    this.print(JSON.stringify(value, null, 2))
  }

  /** Something about the work, for whoever sits in front of it. */
  tell(text: string): void {
    this.stderr.write(`${text}\n`)
  }

  /** Coloured where it will be seen as colour. */
  paint(style: Style, text: string, stream: NodeJS.WriteStream = this.stdout): string {
    return this.hasColour(stream) ? styleText(style, text, { validateStream: false }) : text
  }

  /** Columns of a terminal; one that does not say counts as wide. */
  width(stream: NodeJS.WriteStream = this.stdout): number {
    return stream.columns || usualWidth
  }

  hasColour(stream: NodeJS.WriteStream): boolean {
    return stream.isTTY === true && !this.#noColour
  }
}

const usualWidth = 120
