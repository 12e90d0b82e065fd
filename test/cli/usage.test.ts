import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { commands } from '../../src/cli/program.ts'
import { Session } from '../../src/session/session.ts'
import { entry, Project, visible } from './make.ts'

test('the package brings the command under both names', () => {
  const { bin } = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8'))
  expect(bin).toEqual({ rath: 'dist/cli/main.js', openrath: 'dist/cli/main.js' })
  expect(readFileSync(entry, 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/)
})

test('wrong usage exits 2 with one line that says what was meant', () => {
  const project = new Project()
  const lines: [string[], string][] = [
    [[], 'rath: say what to do: rath COMMAND. See rath --help\n'],
    [['shwo'], "rath: unknown command 'shwo' (Did you mean show?) See rath --help\n"],
    [['help', 'shwo'], "rath: unknown command 'shwo'. See rath --help\n"],
    [['ls', '--jsn'], "rath: unknown option '--jsn' (Did you mean --json?) See rath ls --help\n"],
    [
      ['ls', '-n', 'many'],
      "rath: option '-n, --limit <count>' argument 'many' is invalid. It must be a whole number from 1. See rath ls --help\n",
    ],
    [['show'], "rath: missing required argument 'name'. See rath show --help\n"],
    [
      ['ls', 'things'],
      "rath: command-argument value 'things' is invalid for argument 'what'. Allowed choices are sessions, runs. See rath ls --help\n",
    ],
    [
      ['memory'],
      'rath: say what to do: rath memory list, find, read, forget or tree. See rath memory --help\n',
    ],
  ]
  for (const [args, line] of lines) {
    const { status, stdout, stderr } = project.rath(...args)
    expect({ status, stdout, stderr }, args.join(' ')).toEqual({ status: 2, stdout: '', stderr: line })
  }
})

test('a store that is not there is said to be so, and not made', () => {
  const project = new Project()
  const { status, stderr } = project.rath('ls')
  expect(status).toBe(2)
  expect(stderr).toContain('there is no store at .openrath/rath.db yet')
  expect(project.rath('ls').stderr).toBe(stderr)
})

test('every command has help with examples, prints JSON too, and is in the list of all', () => {
  const project = new Project()
  const all = project.rath('--help')
  expect(all.status).toBe(0)
  /** A conversation, a script for a shell, a file of JSON lines; and one that has parts. */
  const speaksOtherwise = ['chat', 'completion', 'export', 'memory']
  for (const name of Object.keys(commands)) {
    expect(all.stdout).toMatch(new RegExp(`^  ${name} +\\S`, 'm'))
    const { status, stdout, stderr } = project.rath(name, '--help')
    expect({ status, stderr }, name).toEqual({ status: 0, stderr: '' })
    expect(stdout, name).toMatch(new RegExp(`Examples:\n  .*rath ${name}`))
    expect(stdout.includes('--json'), name).toBe(!speaksOtherwise.includes(name))
  }
  expect(project.rath('help', 'ls').stdout).toBe(project.rath('ls', '--help').stdout)
  for (const part of ['list', 'find', 'read', 'forget', 'tree']) {
    expect(project.rath('memory', part, '--help').stdout, part).toContain('--json')
  }
})

test('the page about the command lists every one', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/cli.md'), 'utf8')
  for (const name of Object.keys(commands)) expect(page).toMatch(new RegExp(`^\\| .*\`rath ${name}\\b`, 'm'))
})

test('an error of a command with --json is JSON on standard error', () => {
  const project = new Project()
  project.keep(Session.fromUserMessage('hi'))
  const { status, stdout, stderr } = project.rath('show', 'nothing', '--json')
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
  expect(JSON.parse(stderr).error).toMatchObject({ code: 'unknown-session', data: { nearest: [] } })
})

test('colour is for terminals: none in a pipe, none with NO_COLOR', () => {
  const project = new Project()
  expect(project.rath('doctor').stdout).not.toContain('\u001b[')
  const { screen } = project.terminal(['doctor'], [])
  expect(screen).toContain('\u001b[32m✓')
  expect(visible(screen)).toContain('✓ node')
  expect(project.terminal(['doctor'], [], { NO_COLOR: '1' }).screen).not.toContain('\u001b[')
})

test('the completion scripts know every command and its options, and their shells take them', () => {
  const project = new Project()
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { status, stdout } = project.rath('completion', shell)
    expect(status).toBe(0)
    for (const name of Object.keys(commands)) expect(stdout, `${shell}: ${name}`).toContain(name)
    expect(stdout).toContain('needs-review')
    expect(stdout).toContain('older-than')
  }
  project.write('rath.bash', project.rath('completion', 'bash').stdout)
  const ask = `source ./rath.bash; COMP_WORDS=(rath ls --st); COMP_CWORD=2; _rath; echo "\${COMPREPLY[@]}"; COMP_WORDS=(rath ls --status wa); COMP_CWORD=3; _rath; echo "\${COMPREPLY[@]}"; COMP_WORDS=(rath memory f); COMP_CWORD=2; _rath; echo "\${COMPREPLY[@]}"`
  expect(project.program('bash', '-c', ask).stdout).toBe('--status --store\nwaiting\nfind forget\n')
})

test('a command loads only what it needs: listing sessions loads no model, no sandbox and no flow', () => {
  const project = new Project()
  project.keep(Session.fromUserMessage('hi'))
  project.write(
    'trace.mjs',
    `import { registerHooks } from 'node:module'
registerHooks({
  load(url, context, next) {
    if (url.startsWith('file:')) process.stderr.write(url + '\\n')
    return next(url, context)
  },
})`,
  )
  const { status, stderr } = project.program(process.execPath, '--import', './trace.mjs', entry, 'ls')
  expect(status).toBe(0)
  const loaded = stderr.split('\n').filter(line => line.startsWith('file:'))
  expect(loaded.some(url => url.includes('/commander/'))).toBe(true)
  expect(
    loaded.filter(url => /@ai-sdk|\/flow\/|\/sandbox\/drivers\/|modelcontextprotocol|dockerode/.test(url)),
  ).toEqual([])
})
