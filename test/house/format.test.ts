import { createHash } from 'node:crypto'
import { type Chunk, Session } from 'openrath'
import { describe, expect, test } from 'vitest'
import { blocksOf } from './pages.ts'
import { run } from './run.ts'
import { read } from './tree.ts'

describe('the worked example of the session format', () => {
  const example = read('docs/format/example.jsonl')

  test('is shown whole on the page, and is what scripts/format-example.ts prints', () => {
    const shown = blocksOf(read('docs/format/session.md')).find(block => block.language === 'jsonl')
    expect(shown?.text).toBe(example)
    expect(run(process.execPath, 'scripts/format-example.ts').stdout).toBe(example)
  })

  test('is a file that the library vouches for and writes the same', () => {
    const session = Session.fromJSONL(example)
    expect(session.verify()).toEqual({ ok: true, checked: 5 })
    expect(recordsOf(session.toJSONL())).toEqual(recordsOf(example))
  })

  test('is found out when any one of its lines is changed', () => {
    const lines = example.trimEnd().split('\n')
    for (const [i, line] of lines.entries()) {
      const changed = line.replace(
        /"(at|length)":(\d+)/,
        (_, name, number) => `"${name}":${Number(number) + 1}`,
      )
      expect(changed).not.toBe(line)
      const { ok } = Session.fromJSONL(`${lines.with(i, changed).join('\n')}\n`).verify()
      expect(ok, `line ${i + 1}`).toBe(false)
    }
  })
})

test('ids and states of every kind of chunk are what the specification says', async () => {
  const session = await everyKind()
  const kinds = new Set(session.chunks.map(chunk => chunk.kind))
  expect(kinds.size).toBe(13)

  let id: string | null = null
  for (const record of recordsOf(session.toJSONL()).filter(({ type }) => type === 'chunk')) {
    id = hash([id, record.chunk])
    expect(id).toBe(record.id)
  }
  const states = specifiedStates(session.chunks.slice())
  expect(session.chunks.map(chunk => chunk.state)).toEqual(states)
  expect(session.state).toBe(states.at(-1))
  expect(session.fork('next').state).toBe(hash({ before: states.at(-1), branch: 'next' }))
  expect(Session.create('empty').state).toBe(hash({ perceived: null }))
})

/** The page's definition of state, written down a second time without the library. */
function specifiedStates(chunks: readonly Chunk[]): string[] {
  const states: string[] = []
  const seen: boolean[] = []
  let turn: string[] = []
  const part = ({ extras: _, ...rest }: Record<string, unknown>) => {
    const { id: __, ...call } = rest
    return rest.type === 'tool-call' ? call : rest
  }
  const perceived = (chunk: Chunk): unknown => {
    const { kind } = chunk
    switch (kind) {
      case 'system':
      case 'user':
      case 'assistant': {
        const parts = chunk.content as unknown as Record<string, unknown>[]
        if (kind !== 'system')
          turn = parts.filter(({ type }) => type === 'tool-call').map(({ id }) => String(id))
        return { kind, content: parts.map(part) }
      }
      case 'tool-result': {
        const { tool, args = null } = chunk
        const outcome: Record<string, unknown> = { ...chunk.outcome }
        if (Array.isArray(outcome.content)) outcome.content = outcome.content.map(part)
        return { kind, call: turn.indexOf(chunk.callId), tool, args, outcome }
      }
      case 'memory':
        return chunk.injected ? { kind, injected: chunk.injected } : undefined
      case 'compress': {
        const indexes = chunk.replaced.map(id =>
          chunks.findIndex(other => other.id === id || other.origin === id),
        )
        const place = states[Math.min(...indexes) - 1] ?? null
        const newestFirst = indexes.toSorted((a, b) => b - a).filter(i => seen[i])
        return { kind, summary: chunk.summary, place, replaced: newestFirst.map(i => states[i]) }
      }
      default:
        return undefined
    }
  }
  const labels = ({ branch = '' }: Chunk) =>
    branch
      .split('/')
      .filter(name => !name.startsWith('#'))
      .join('/')
  let branch = ''
  for (const chunk of chunks) {
    const last = states.at(-1) ?? hash({ perceived: null })
    const before = branch === labels(chunk) ? last : hash({ before: last, branch: labels(chunk) })
    const what = perceived(chunk)
    states.push(what === undefined ? before : hash({ before, perceived: what }))
    seen.push(what !== undefined)
    branch = labels(chunk)
  }
  return states
}

async function everyKind(): Promise<Session> {
  const extras = { provider: { cache: true } }
  const tree = 'ab'.repeat(32)
  const start = Session.fromAgentPrompt('Be brief.')
    .user([
      { type: 'text', text: 'lone \ud800, line \u2028', extras },
      { type: 'image', mediaType: 'image/png', url: 'https://example.org/a.png' },
    ])
    .append(
      { kind: 'placement', backend: 'local', spec: './', workspace: { path: '/tmp/a', tree, extras } },
      { kind: 'memory', op: 'recall', store: 'notes', query: 'q', injected: 'You like tea.' },
      { kind: 'memory', op: 'remember', store: 'notes', entries: ['e1'] },
      { kind: 'route', candidates: [{ name: 'a' }], choice: 'a', reason: 'fits' },
      { kind: 'error', error: 'overloaded', message: 'Try later.', retry: 'after' },
    )
  const worked = start.fork('worker').append(
    {
      kind: 'assistant',
      reasoning: 'Both.',
      toolCalls: [
        { id: 'x', name: 'read', args: { b: 1, a: 1e21 } },
        { id: 'y', name: 'read', args: 'not json' },
      ],
    },
    { kind: 'approval', approval: 'p1', callId: 'y', verdict: 'approved' },
    {
      kind: 'tool-result',
      callId: 'y',
      tool: 'read',
      args: 'not json',
      outcome: { kind: 'denied', reason: 'no' },
    },
    {
      kind: 'tool-result',
      callId: 'x',
      tool: 'read',
      outcome: { kind: 'value', value: -0, content: [{ type: 'text', text: 'zero', extras }] },
      tree,
      durationMs: 12.5,
    },
    {
      kind: 'tool-result',
      callId: 'gone',
      tool: 'read',
      outcome: { kind: 'error', error: 'threw', message: 'Oh.' },
    },
    { kind: 'assistant', text: 'Done.', by: 'Worker', model: 'm', usage: { inputTokens: 1 }, extras },
  )
  const judged = start.fork().append({ kind: 'verdict', verdict: 'accept', subject: 'worker' })
  const merged = await worked.merge(judged)
  const replaced = [1, 5, 7, 8].map(index => merged.chunks.at(index)?.id as string)
  return merged.append(
    { kind: 'note', name: 'mine', data: [1, null] },
    { kind: 'compress', summary: 'Read two files.', replaced },
    { kind: 'user', text: 'Go on.' },
  )
}

function recordsOf(file: string) {
  return file
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line))
}

function hash(value: unknown): string {
  return createHash('sha256').update(canonical(value)).digest('hex')
}

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  const members = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join(',')}}`
}
