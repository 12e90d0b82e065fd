import type { RunEvent } from '../../run/event.ts'
import type { Chunk } from '../../session/chunk.ts'
import type { Output } from '../output.ts'
import { count, duration, oneLine, plain } from '../text.ts'

/** Tells a run of the demo while it happens: a line for each thing that somebody did, with who did it and on which branch. */
export class DemoStory {
  readonly #output: Output

  constructor(output: Output) {
    this.#output = output
  }

  readonly onEvent = (event: RunEvent): void => {
    if (event.type === 'chunk') this.chunk(event.chunk)
  }

  chunk(chunk: Chunk): void {
    const told = this.#told(chunk)
    if (told === undefined) return
    const name = chunk.by?.split('/').at(-1) ?? ''
    this.#line(
      chunk.branch === undefined || chunk.branch === name ? name : `${name} on ${chunk.branch}`,
      told,
    )
    if (chunk.kind === 'tool-result') for (const { patch = '' } of chunk.files ?? []) this.patch(patch)
  }

  heading(text: string): void {
    this.#output.print(`\n${this.#output.paint('bold', text)}`)
  }

  /** The lines that were taken away and those that came. */
  patch(patch: string): void {
    for (const line of plain(patch).split('\n')) {
      if (/^[-+](?![-+]{2})/.test(line))
        this.#line('', this.#output.paint(line.startsWith('+') ? 'green' : 'red', line))
    }
  }

  #line(who: string, text: string): void {
    this.#output.print(`${this.#output.paint('dim', who.padEnd(nameWidth))} ${text}`)
  }

  #told(chunk: Chunk): string | undefined {
    switch (chunk.kind) {
      case 'route':
        return `${oneLine(chunk.reason ?? '', longestSaying)} Next: ${chunk.choice ?? 'nobody'}.`
      case 'assistant':
        return chunk.text === '' ? undefined : `says: ${oneLine(chunk.text, longestSaying)}`
      case 'tool-result':
        return toolStory(chunk)
      case 'memory':
        return memoryStory(chunk)
      case 'verdict':
        return chunk.verdict === 'accept'
          ? this.#output.paint('green', `accepts it: ${oneLine(chunk.reason ?? '', longestSaying)}`)
          : this.#output.paint('red', `rejects it: ${oneLine(chunk.reason ?? '', longestSaying)}`)
      case 'merge': {
        const [taken, ...left] = chunk.branches.map(({ branch }) => branch)
        return `brings the files of ${taken} back to the folder; ${left.join(', ')} stays on the record.`
      }
      default:
        return undefined
    }
  }
}

const nameWidth = 20
const longestSaying = 300

const verbs: Readonly<Record<string, string>> = {
  read_workspace_file: 'reads',
  edit_workspace_file: 'edits',
  write_workspace_file: 'writes',
  list_workspace_files: 'lists',
}

function toolStory({ tool, args, outcome, durationMs = 0 }: Chunk<'tool-result'>): string {
  const { path = '', cmd } = (args ?? {}) as { path?: string; cmd?: string }
  if (outcome.kind !== 'value') return `${tool} ${oneLine(cmd ?? path)}: ${outcome.kind}`
  if (cmd === undefined) return `${verbs[tool] ?? tool} ${oneLine(path)}`
  const { exitCode } = outcome.value as { exitCode?: number }
  return `runs ${oneLine(cmd)}: exit code ${exitCode} after ${duration(durationMs)}`
}

function memoryStory({ op, hits = [], entries = [], extras }: Chunk<'memory'>): string | undefined {
  if (op === 'remember') return `remembers: ${oneLine(String(extras?.text ?? ''), longestSaying)}`
  if (op === 'commit')
    return `commits what the branches learned: ${count(entries.length, 'entry', 'entries')} in memory`
  if (op !== 'recall') return undefined
  return hits.length === 0
    ? 'recalls nothing'
    : `recalls: ${oneLine(hits.map(({ text }) => text).join(' '), longestSaying)}`
}
