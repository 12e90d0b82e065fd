import type { RunEvent } from '../run/event.ts'
import type { Chunk, FileChange } from '../session/chunk.ts'
import type { Output } from './output.ts'
import { count, duration, oneLine } from './text.ts'

/** Tells a run of the demo while it happens: a line for each thing that somebody did, with who did it and on which branch. */
export class DemoStory {
  readonly #output: Output

  constructor(output: Output) {
    this.#output = output
  }

  readonly onEvent = (event: RunEvent): void => {
    if (event.type === 'chunk') this.chunk(event.chunk, event.by)
  }

  chunk(chunk: Chunk, by = chunk.by ?? ''): void {
    const told = this.#told(chunk)
    if (told === undefined) return
    const who = [by.split('/').at(-1), chunk.branch !== by.split('/').at(-1) && chunk.branch]
    this.#line(who.filter(Boolean).join(' on '), told)
    if (chunk.kind === 'tool-result') for (const file of chunk.files ?? []) this.#patch(file)
  }

  heading(text: string): void {
    this.#output.print(`\n${this.#output.paint('bold', text)}`)
  }

  #line(who: string, text: string): void {
    const room = this.#output.width() - nameWidth - 1
    this.#output.print(
      `${this.#output.paint('cyan', who.padEnd(nameWidth))} ${this.#output.hasColour(this.#output.stdout) ? oneLine(text, room) : text}`,
    )
  }

  #patch({ patch = '' }: FileChange): void {
    const lines = patch.split('\n').filter(line => /^[-+](?![-+]{2})/.test(line))
    for (const line of lines) this.#line('', this.#output.paint(line.startsWith('+') ? 'green' : 'red', line))
  }

  #told(chunk: Chunk): string | undefined {
    switch (chunk.kind) {
      case 'route':
        return `${chunk.reason ?? ''} → ${chunk.choice ?? 'nobody: done'}`
      case 'assistant':
        return chunk.text === '' ? undefined : `says: ${chunk.text}`
      case 'tool-result':
        return toolStory(chunk)
      case 'memory':
        return memoryStory(chunk)
      case 'verdict':
        return chunk.verdict === 'accept'
          ? this.#output.paint('green', `accepts ${chunk.subject}: ${chunk.reason}`)
          : this.#output.paint('red', `rejects ${chunk.subject}: ${chunk.reason}`)
      case 'merge': {
        const [taken, ...left] = chunk.branches.map(({ branch }) => branch)
        return `${taken} is merged back into the folder; ${left.join(', ')} stays on the record`
      }
      default:
        return undefined
    }
  }
}

const nameWidth = 17

function toolStory({ tool, args, outcome, durationMs = 0 }: Chunk<'tool-result'>): string {
  const { path, cmd } = (args ?? {}) as { path?: string; cmd?: string }
  const verb = { read_workspace_file: 'reads', edit_workspace_file: 'edits', write_workspace_file: 'writes' }
  if (outcome.kind !== 'value') return `${tool} ${path ?? cmd ?? ''}: ${outcome.kind}`
  if (cmd !== undefined) {
    const { exitCode } = outcome.value as { exitCode?: number }
    return `runs ${cmd}: exit code ${exitCode} after ${duration(durationMs)}`
  }
  return `${verb[tool as keyof typeof verb] ?? tool} ${path ?? ''}`
}

function memoryStory({ op, hits = [], entries = [], extras }: Chunk<'memory'>): string | undefined {
  if (op === 'remember') return `remembers: ${String(extras?.text ?? '')}`
  if (op === 'commit') return `commits ${count(entries.length, 'entry', 'entries')} to memory`
  if (op !== 'recall') return undefined
  return hits.length === 0 ? 'recalls nothing' : `recalls: ${hits.map(({ text }) => text).join(' ')}`
}
