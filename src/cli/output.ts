import { styleText } from 'node:util'
import { plain, safeJson } from './text.ts'

/** Where a command prints: the streams of a process. */
export interface Streams {
  readonly stdout: NodeJS.WriteStream
  readonly stderr: NodeJS.WriteStream
  readonly env: Readonly<Record<string, string | undefined>>
}

type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan'

/**
 * Results go to stdout, everything said about them to stderr. Colour only on a terminal, and not with `NO_COLOR`. Whatever else would act on
 * a terminal is taken out: names and ids may come from others, too.
 */
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
    this.raw(this.#safe(text.endsWith('\n') ? text : `${text}\n`, this.stdout))
  }

  json(value: unknown): void {
    this.print(safeJson(value, 2) ?? '')
  }

  /** Text that is a file: as it is. */
  raw(text: string): void {
    this.stdout.write(text)
  }

  /** Something about the work, for whoever sits in front of it. */
  tell(text: string): void {
    this.stderr.write(this.#safe(`${text}\n`, this.stderr))
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

  #safe(text: string, stream: NodeJS.WriteStream): string {
    if (!this.hasColour(stream)) return plain(text)
    return text
      .split(painted)
      .map((part, i) => (i % 2 === 1 ? part : plain(part)))
      .join('')
  }
}

/** The codes that `paint` writes. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is kept.
const painted = /(\u001b\[(?:[12]|22|3[1236]|39)m)/

const usualWidth = 120
