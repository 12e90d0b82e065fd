import { readdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Session } from '../../src/session/session.ts'
import { greeter, Project } from './make.ts'

test('a file that is there stays as it is when its export fails, and a link to it stays a link', () => {
  const project = new Project({ 'kept.jsonl': 'precious' })
  const id = project.keep(Session.fromUserMessage('hi'))
  symlinkSync('kept.jsonl', join(project.folder, 'link.jsonl'))
  project.write(
    'runs.ts',
    `import { openStore } from 'openrath/store'
await using store = await openStore('sqlite:.openrath/rath.db')
await Promise.all(Array.from({ length: 1000 }, (_, i) => store.runs.create({ id: \`run-\${i}\` })))
`,
  )
  expect(project.program(process.execPath, 'runs.ts').status).toBe(0)
  const { status, stderr } = project.rath('export', '-o', 'kept.jsonl')
  expect(status).toBe(1)
  expect(stderr).toContain('1000 runs or more')
  expect(project.read('kept.jsonl')).toBe('precious')
  expect(project.rath('export', id, '-o', 'link.jsonl').status).toBe(0)
  expect(project.rath('verify', 'kept.jsonl').status).toBe(0)
  expect(readdirSync(project.folder).filter(name => name.endsWith('.part'))).toEqual([])
})

test('what is exported can be verified from the file alone, and imported elsewhere', () => {
  const project = new Project({ 'greeter.ts': greeter })
  project.rath('run', 'greeter.ts', 'hi')
  expect(project.rath('export', 'last', '-o', 'run.jsonl').stderr).toContain('rath verify run.jsonl')
  expect(project.rath('verify', 'run.jsonl')).toMatchObject({ status: 0, stderr: '' })
  expect(project.json<{ ok: boolean; runs: number }>(['verify', 'run.jsonl'])).toMatchObject({
    ok: true,
    runs: 1,
  })
  expect(project.rath('import', 'run.jsonl', '--store', 'sqlite:other.db').stdout).toMatch(
    /^3 sessions and 1 run /,
  )
  const there = ['--store', 'sqlite:other.db']
  // Whoever imports a run says which code is run for it.
  expect(project.rath('replay', 'last', ...there)).toMatchObject({ status: 2 })
  expect(project.rath('replay', 'last', ...there, '--file', 'greeter.ts').stdout).toContain('same: run ')
  expect(project.rath('import', 'run.jsonl', ...there).stdout).toContain('1 run there already')
  expect(project.rath('export').stdout.split('\n').length).toBeGreaterThan(5)
})

test('a changed byte is found and named, and such a file is not imported', () => {
  const project = new Project()
  const id = project.keep(Session.fromUserMessage('The door is teal.'))
  project.rath('export', id, '-o', 'good.jsonl')
  project.write('bad.jsonl', project.read('good.jsonl').replace('teal', 'tael'))
  const { status, stdout } = project.rath('verify', 'bad.jsonl')
  expect(status).toBe(1)
  expect(stdout).toContain(id)
  expect(stdout).toContain('chunk 0')
  expect(project.rath('import', 'bad.jsonl', '--store', 'sqlite:other.db').status).toBe(1)
  expect(project.rath('ls', '--store', 'sqlite:other.db').stderr).toContain('there is no store')
  expect(project.rath('verify', id).stdout).toMatch(/^ok: 1 chunk of session /)
})

test('a signature is made with a key of yours and checked against the keys you trust', () => {
  const project = new Project()
  project.keep(Session.fromUserMessage('hi'))
  expect(project.rath('export', '--sign', '-o', 'x.jsonl').stderr).toContain('There is no key')
  const made = project.json<{ folder: string; keys: { publicKey: string }[] }>(['keys', '--new'])
  project.write('mine.pem', made.keys[0]?.publicKey as string)
  project.write(
    'other.pem',
    project.json<typeof made>(['keys', '--new', 'other']).keys[0]?.publicKey as string,
  )
  expect(project.json<typeof made>(['keys']).keys).toHaveLength(2)
  expect(JSON.stringify(project.json(['keys']))).not.toContain('PRIVATE')
  expect(project.rath('export', '--sign', '-o', 'signed.jsonl').status).toBe(0)
  expect(project.rath('verify', 'signed.jsonl', '--key', 'mine.pem').status).toBe(0)
  expect(project.rath('verify', 'signed.jsonl', '--key', 'other.pem').status).toBe(1)
})

test('a session is exported for other programs', () => {
  const project = new Project({ 'greeter.ts': greeter })
  project.rath('run', 'greeter.ts', 'hi')
  const as = (format: string) => JSON.parse(project.rath('export', 'last', '--format', format).stdout)
  expect(as('openai')).toEqual([
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: 'Hello.' },
  ])
  expect(as('ui').map((message: { role: string }) => message.role)).toEqual(['user', 'assistant'])
  expect(JSON.stringify(as('atif'))).toContain('Greet.')
  expect(project.rath('export', 'last', '--format', 'preference')).toMatchObject({ status: 0, stdout: '' })
  expect(project.rath('export', '--format', 'openai').status).toBe(2)
})

test('a dossier of a run is a page, Markdown or data', () => {
  const project = new Project({ 'greeter.ts': greeter })
  project.rath('run', 'greeter.ts', 'hi')
  expect(project.rath('dossier', 'last', '-o', 'run.html')).toMatchObject({ status: 0, stdout: '' })
  expect(project.read('run.html')).toMatch(/^<!doctype html>/)
  expect(project.read('run.html')).toContain('Hello.')
  expect(project.rath('dossier', 'last', '--md').stdout).toContain('Hello.')
  const { environment } = JSON.parse(project.rath('dossier', 'last', '--json').stdout)
  expect(environment.node).toBe(process.version)
  expect(project.rath('dossier', 'last', '--md', '--json').status).toBe(2)
})

test('a session file of OpenRath Python is imported, and a file that is not there is said in one line', () => {
  const records = [
    {
      record_type: 'header',
      schema_version: 1,
      id: '6f1c2a34-0000-4000-8000-000000000001',
      created_at: '2026-01-01T00:00:00+00:00',
    },
    { record_type: 'chunk', kind: 'user', payload: { content: 'Is the door open?' } },
  ]
  const project = new Project({
    'python.jsonl': `${records.map(record => JSON.stringify(record)).join('\n')}\n`,
  })
  const { status, stderr } = project.rath('import', 'python.jsonl')
  expect(status, stderr).toBe(0)
  expect(project.rath('show', '6f1c2a34').stdout).toContain('Is the door open?')
  const missing = project.rath('import', 'nothing.jsonl')
  expect(missing.status).toBe(1)
  expect(missing.stderr).toMatch(/^rath: ENOENT: .*nothing\.jsonl'\n$/)
})
