import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { policy } from '../../src/tool/policy/policy.ts'
import { agentWith, ask } from './make.ts'

const folder = mkdtempSync(join(tmpdir(), 'openrath-policy-'))
mkdirSync(join(folder, 'src'))
mkdirSync(join(folder, 'private'))
writeFileSync(join(folder, 'src', 'open.txt'), 'open')
writeFileSync(join(folder, 'private', 'secret.txt'), 'secret')
symlinkSync('../private', join(folder, 'src', 'link'))
afterAll(() => rmSync(folder, { recursive: true }))

describe('a path rule', () => {
  const rules = policy({ paths: [{ tool: 'read_workspace_file', roots: ['./src'] }] })

  for (const [how, spec] of [
    ['by path', folder],
    ['by spec', { path: folder }],
  ] as const) {
    it(`holds in the workspace of the session, placed ${how}, links followed`, async () => {
      const read = (path: string) => ({ name: 'read_workspace_file', args: { path } })
      const { agent } = agentWith(
        [{ toolCalls: [read('src/open.txt'), read('src/link/secret.txt')] }, 'done'],
        {
          builtins: ['read_workspace_file'],
          policy: rules,
        },
      )
      const out = await agent(ask().to('local', spec))
      const kinds = out.chunks.flatMap(chunk => (chunk.kind === 'tool-result' ? [chunk.outcome.kind] : []))
      expect(kinds).toEqual(['value', 'denied'])
    })
  }
  it('holds for a link that a call before it in the turn has made', async () => {
    const { agent } = agentWith(
      [
        {
          toolCalls: [
            { name: 'run_shell_command', args: { cmd: 'ln -s ../private src/late' } },
            { name: 'write_workspace_file', args: { path: 'src/late/x.txt', content: 'out' } },
          ],
        },
        'done',
      ],
      { builtins: true, policy: policy({ paths: [{ tool: '*_workspace_file', roots: ['./src'] }] }) },
    )
    const out = await agent(ask().to('local', folder))
    const ends = out.chunks.flatMap(chunk => {
      if (chunk.kind === 'tool-result') return [chunk.outcome.kind]
      return chunk.kind === 'approval' ? [`${chunk.verdict} by ${chunk.decidedBy}`] : []
    })
    expect(ends).toEqual(['value', 'rejected by policy', 'denied'])
    expect(existsSync(join(folder, 'private', 'x.txt'))).toBe(false)
  })

  it('sees the folder that a list or a search takes when it is given none', async () => {
    const { agent } = agentWith(
      [
        {
          toolCalls: [
            { name: 'search_workspace', args: { query: 'secret' } },
            { name: 'list_workspace_files', args: { depth: 3 } },
            { name: 'search_workspace', args: { query: 'open', path: 'src' } },
          ],
        },
        'done',
      ],
      { builtins: true, policy: policy({ paths: [{ tool: '*', roots: ['./src'] }] }) },
    )
    const out = await agent(ask().to('local', folder))
    const kinds = out.chunks.flatMap(chunk => (chunk.kind === 'tool-result' ? [chunk.outcome.kind] : []))
    expect(kinds).toEqual(['denied', 'denied', 'value'])
  })
})

it('is refused when it was not made with policy()', async () => {
  const rules = { deny: ['run_command'] } as never
  const { agent } = agentWith(['done'], { policy: rules })
  expect(() => agent(ask())).toThrow(/is no policy; make one of the rules: policy\(\{ deny/)
  const { agent: own } = agentWith(['done'], { policy: policy({ deny: ['x'] }) })
  expect(() => own(ask(), { policy: rules })).toThrow(/is no policy/)
})

describe('a list of commands', () => {
  it('is about programs of the machine: one of that name in the workspace does not run, though PATH leads there', async () => {
    const place = mkdtempSync(join(tmpdir(), 'openrath-path-'))
    const bins = [join(place, 'bin'), join(place, 'node_modules', '.bin')]
    for (const bin of bins) {
      mkdirSync(bin, { recursive: true })
      writeFileSync(join(bin, 'ls'), `#!/bin/sh\necho planted\n`, { mode: 0o755 })
    }
    const env = { PATH: [...bins, '.', '', process.env.PATH].join(':') }
    const run = async (rules?: ReturnType<typeof policy>) => {
      const { agent } = agentWith(
        [{ toolCalls: [{ name: 'run_shell_command', args: { cmd: 'ls' } }] }, 'done'],
        {
          builtins: ['run_shell_command'],
          ...(rules && { policy: rules }),
        },
      )
      const out = await agent(ask().to('local', { path: place, env }))
      const result = out.chunks.find(chunk => chunk.kind === 'tool-result')
      return (result as { outcome?: { value?: { stdout?: string } } }).outcome?.value?.stdout
    }
    try {
      expect(await run()).toBe('planted\n')
      const listed = (tool: string) => policy({ commands: [{ tool, allow: ['ls'] }] })
      expect(await run(listed('run_shell_command'))).toBe('bin\nnode_modules\n')
      expect(await run(listed('other'))).toBe('planted\n')
    } finally {
      rmSync(place, { recursive: true })
    }
  })
})
