import { existsSync, readdirSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Session } from '../../src/session/session.ts'
import { Project } from './make.ts'

interface Finding {
  readonly what: string
  readonly state: string
  readonly found: string
  readonly fix?: string
}

test('doctor says what works and what to fix, and never a key', () => {
  const project = new Project()
  const key = 'sk-0123456789abcdef'
  const { status, stdout } = project.run({ args: ['doctor', '--json'], env: { OPENAI_API_KEY: key } })
  expect(stdout).not.toContain(key)
  const { findings } = JSON.parse(stdout) as { findings: Finding[] }
  const of = (what: string) => findings.find(finding => finding.what === what)
  expect(status).toBe(0)
  expect(of('node')).toMatchObject({ state: 'ok' })
  expect(of('key openai')).toMatchObject({ state: 'ok', found: 'OPENAI_API_KEY is set' })
  expect(of('key anthropic')).toMatchObject({ state: 'missing' })
  expect(of('default model')?.fix).toContain('OPENAI_DEFAULT_MODEL')
  expect(of('sandbox local')).toMatchObject({ state: 'ok' })
  expect(of('sandbox opensandbox')).toMatchObject({ state: 'missing' })
  expect(of('branches of files')).toMatchObject({ state: 'ok' })
  expect(of('memory local')).toMatchObject({ state: 'ok' })
  expect(of('store')?.found).toContain('made when something is first run')
  expect(existsSync(join(project.folder, '.openrath'))).toBe(false)
})

test('doctor exits 1 when the store cannot be used', () => {
  const project = new Project({
    '.openrath/rath.db': 'this is no database, and long enough to be taken for one',
  })
  const { status, stdout } = project.rath('doctor')
  expect(status).toBe(1)
  expect(stdout).toMatch(/✗ store /)
})

test('doctor tells the format of a store', () => {
  const project = new Project()
  project.keep(Session.fromUserMessage('hi'))
  expect(project.rath('doctor').stdout).toMatch(/✓ store +sqlite:.*rath\.db, format \d+, last session \d{4}-/)
})

test('init writes a project that runs without a key, and overwrites nothing', () => {
  const project = new Project()
  const { status, stdout } = project.rath('init', 'My Agents')
  expect(status).toBe(0)
  expect(stdout).toContain('npx rath run workflow.ts')
  expect(JSON.parse(project.read('My Agents/package.json'))).toMatchObject({
    name: 'my-agents',
    type: 'module',
  })
  project.link('My Agents')
  const ran = project.run({ args: ['run', 'workflow.ts', 'Why is the sky blue?'], cwd: 'My Agents' })
  expect(ran.status, ran.stderr).toBe(0)
  expect(ran.stdout).toBe('It leaves out why: short waves scatter more.\n')
  expect(project.run({ args: ['replay', 'last'], cwd: 'My Agents' }).status).toBe(0)

  project.write('My Agents/workflow.ts', 'mine')
  const again = project.rath('init', 'My Agents')
  expect(again.status).toBe(2)
  expect(again.stderr).toContain('nothing was written')
  expect(project.read('My Agents/workflow.ts')).toBe('mine')
})

const writer = `import { Agent } from 'openrath'
import { scripted } from 'openrath/testing'
export default new Agent('Write.', {
  name: 'writer',
  model: scripted(({ messages }) => {
    const last = messages.at(-1)
    if (last?.role === 'tool') return 'Written.'
    const content = last?.role === 'user' ? (last.content[0] as { text: string }).text : ''
    return { toolCalls: [{ name: 'write_workspace_file', args: { path: 'a.txt', content } }] }
  }),
})
`

test('gc frees what nothing reaches, keeps files that a session speaks of, and says so', () => {
  const project = new Project({ 'writer.ts': writer, 'work/.keep': '', 'there/.keep': '' })
  const write = (text: string) => project.rath('run', 'writer.ts', '--local', 'work', '--tag', text, text)
  expect(write('one').status).toBe(0)
  expect(write('two').status).toBe(0)
  const dry = project.json<{ dryRun: boolean; store: { chunks: number } }>([
    'gc',
    '--dry-run',
    '--older-than',
    '0s',
  ])
  expect(dry).toMatchObject({ dryRun: true, store: { chunks: 0 } })
  expect(project.rath('gc', '--dry-run', '--files').status).toBe(2)

  // What is young stays whoever needs it, so all of it is made old.
  const age = () => {
    const objects = join(project.home, 'workspaces/objects')
    for (const entry of readdirSync(objects, { recursive: true, withFileTypes: true })) {
      if (entry.isFile()) utimesSync(join(entry.parentPath, entry.name), 0, 0)
    }
  }
  const collect = (...also: string[]) => {
    age()
    return project.json<{ files: { trees: number; removed: number } }>(['gc', '--files', ...also]).files
  }
  const elsewhere = ['--store', 'sqlite:other.db']
  // The last state of a folder stays too, so that there has to be another behind the one that is watched.
  for (const text of ['three', 'four']) {
    const { status } = project.rath('run', 'writer.ts', '--local', 'there', ...elsewhere, '--tag', text, text)
    expect(status).toBe(0)
  }
  expect(collect('--also-store', 'sqlite:other.db').removed).toBe(0)
  expect(project.rath('blame', 'there/a.txt', '--session', 'three', ...elsewhere).stdout).toContain('three')
  expect(collect().removed).toBeGreaterThan(0)
  // Every state of the files that this store speaks of is still there to be looked into.
  expect(project.rath('blame', 'work/a.txt', '--session', 'one').stdout).toContain('one')
  expect(project.rath('bisect', 'two', '--', 'grep -q one a.txt')).toMatchObject({ status: 0 })
  // The other store has the files of its sessions in it.
  expect(project.rath('blame', 'there/a.txt', '--session', 'three', ...elsewhere).stdout).toContain('three')
})

test('gc forgets what placements began with once no store that it was told of speaks of them', () => {
  const project = new Project({ 'writer.ts': writer, 'work/.keep': '', 'there/.keep': '' })
  const elsewhere = ['--store', 'sqlite:other.db']
  expect(project.rath('run', 'writer.ts', '--local', 'work', 'one').status).toBe(0)
  const folder = join(project.home, 'workspaces/began')
  const [own] = readdirSync(folder)
  expect(project.rath('run', 'writer.ts', '--local', 'there', ...elsewhere, 'two').status).toBe(0)
  const other = readdirSync(folder).find(name => name !== own) as string
  const collect = (...also: string[]) =>
    project.json<{ files: { placements: number } }>(['gc', '--files', ...also]).files.placements

  // Those that are young stay.
  expect(collect()).toBe(0)
  for (const name of readdirSync(folder)) utimesSync(join(folder, name), 0, 0)
  expect(collect('--also-store', 'sqlite:other.db')).toBe(0)
  expect(readdirSync(folder).sort()).toEqual([own, other].sort())
  expect(collect()).toBe(1)
  expect(readdirSync(folder)).toEqual([own])
})

test('gc of files refuses a store that is not there instead of taking the files of the one that was meant', () => {
  const project = new Project({ 'writer.ts': writer, 'work/.keep': '' })
  expect(project.rath('run', 'writer.ts', '--local', 'work', 'one').status).toBe(0)
  const { status, stderr } = project.rath('gc', '--files', '--also-store', 'sqlite:tpyo.db')
  expect(status).toBe(2)
  expect(stderr).toContain('there is no store at tpyo.db')
  expect(existsSync(join(project.folder, 'tpyo.db'))).toBe(false)
  expect(project.rath('gc', '--files').stdout).toMatch(
    /^ +\d+ objects too young to be looked at left alone$/m,
  )
})

test('gc finds what killed processes left where there is no store, and makes none', () => {
  const project = new Project({
    'killed.ts':
      "import { localBackend } from 'openrath/sandbox'\nawait localBackend({ temporaryFolder: './tmp' }).open(undefined)\nprocess.kill(process.pid, 'SIGKILL')\n",
    'tmp/other': '',
  })
  project.program(process.execPath, 'killed.ts')
  const left = () => readdirSync(join(project.folder, 'tmp')).length
  expect(left()).toBe(2)
  const env = { TMPDIR: join(project.folder, 'tmp') }
  const gone = /^temporary +1 folder of ended programs, .+ gone$/m
  // It is younger than an hour, and in another folder it is somebody else's.
  expect(project.run({ args: ['gc'], env }).stdout).not.toMatch(gone)
  project.write('elsewhere/file', '')
  const old = ['gc', '--older-than', '0s']
  expect(project.run({ args: old, env, cwd: 'elsewhere' }).stdout).not.toMatch(gone)
  expect(left()).toBe(2)
  const dry = project.run({ args: [...old, '--dry-run'], env })
  expect(dry.stdout).toMatch(/^temporary +1 folder of ended programs, .+ would go$/m)
  expect(left()).toBe(2)
  const { status, stdout } = project.run({ args: old, env })
  expect(status).toBe(0)
  expect(stdout).toMatch(/^store +none here\nbranches +0 folders/)
  expect(stdout).toMatch(gone)
  expect(left()).toBe(1)
  project.program(process.execPath, 'killed.ts')
  expect(project.run({ args: [...old, '--machine'], env, cwd: 'elsewhere' }).stdout).toMatch(gone)
  expect(left()).toBe(1)
  expect(existsSync(join(project.folder, '.openrath'))).toBe(false)
  for (const args of [['--files'], ['--store', 'sqlite:none.db']]) {
    expect(project.rath('gc', ...args)).toMatchObject({ status: 2 })
  }
})

test('gc takes away what deleted sessions left in the store', () => {
  const project = new Project({
    'forget.ts':
      "import { openStore } from 'openrath/store'\nawait using store = await openStore()\nawait store.sessions.delete(process.argv[2] as string)\n",
  })
  const id = project.keep(Session.fromUserMessage('Forget me.'))
  project.keep(Session.fromUserMessage('Keep me.'))
  expect(project.program(process.execPath, 'forget.ts', id).status).toBe(0)
  const args = ['gc', '--older-than', '0s']
  expect(project.json<{ store: object }>([...args, '--dry-run']).store).toMatchObject({ chunks: 1 })
  expect(project.rath(...args).stdout).toMatch(/^store +1 chunk and \d+ blobs?, .* gone\n/)
  expect(project.json<{ store: object }>(args).store).toMatchObject({ chunks: 0 })
  expect(project.rath('ls').stdout).toContain('Keep me.')
})
