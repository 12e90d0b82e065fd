import { runProgram } from './run.ts'

export interface Block {
  readonly language: string
  readonly text: string
}

/** The fenced code blocks of a Markdown page, in order. */
export function blocksOf(markdown: string): Block[] {
  return [...markdown.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language = '', text = '']) => ({
    language,
    text,
  }))
}

/**
 * Runs the `ts` blocks of a page as one program and returns, for each that a `text` block follows, what the page shows and
 * what the program printed there.
 */
export function runPage(markdown: string): { shown: string; printed: string }[] {
  const blocks = blocksOf(markdown)
  const programs = blocks.filter(block => block.language === 'ts')
  const { status, stdout, stderr } = runProgram(programs.map(block => block.text + mark).join('\n'))
  if (status !== 0) throw new Error(`a program of the page failed:\n${stderr}`)
  const printed = stdout.split(`${marker}\n`)
  return programs.flatMap((program, i) => {
    const next = blocks[blocks.indexOf(program) + 1]
    return next?.language === 'text' ? [{ shown: next.text, printed: printed[i] ?? '' }] : []
  })
}

const marker = '—— end of block ——'
const mark = `\nconsole.log(${JSON.stringify(marker)})\n`
