import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import type { Json, JsonObject } from '../../src/base/json.ts'
import { withoutFence } from '../../src/run/output.ts'
import { localBackend } from '../../src/sandbox/drivers/local/driver.ts'
import type { Sandbox } from '../../src/sandbox/spec.ts'
import type { ToolOutcome } from '../../src/session/chunk.ts'
import { type BuiltinName, builtinTools } from '../../src/tool/builtin/builtin-tools.ts'
import { claimOf } from '../../src/tool/schedule.ts'
import type { Tool } from '../../src/tool/spec.ts'
import { outcomeOf } from './make.ts'

const folder = mkdtempSync(join(tmpdir(), 'openrath-builtin-'))
const sandbox: Sandbox = await localBackend().open(folder)
afterAll(async () => {
  await sandbox.close()
  rmSync(folder, { recursive: true, force: true })
})
beforeEach(() => {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder)
})

const builtin = (name: BuiltinName): Tool => builtinTools([name])[0] as Tool
const run = (name: BuiltinName, args: Json): Promise<ToolOutcome> =>
  outcomeOf(builtin(name), args, { sandbox: async () => sandbox })

async function value(name: BuiltinName, args: Json): Promise<Json> {
  const outcome = await run(name, args)
  return outcome.kind === 'value' ? outcome.value : expect.fail(JSON.stringify(outcome))
}

async function failure(name: BuiltinName, args: Json): Promise<string> {
  const outcome = await run(name, args)
  return outcome.kind === 'error' ? outcome.message : expect.fail(JSON.stringify(outcome))
}

const put = (path: string, text: string | Uint8Array) => writeFileSync(join(folder, path), text)
const get = (path: string) => readFileSync(join(folder, path), 'utf8')

describe('run_shell_command', () => {
  test('gives the exit code and both streams, in the folder asked for', async () => {
    mkdirSync(join(folder, 'in'))
    const report = await value('run_shell_command', { cmd: 'pwd; echo no >&2; exit 4', cwd: 'in' })
    expect(report).toEqual({
      exitCode: 4,
      stdout: `${folder}/in\n`,
      stderr: 'no\n',
    })
  })

  test('a timeout is seconds, and a result that says so', async () => {
    const cmd = 'echo on; sleep 1000'
    // On a busy machine a shell may need longer than that to start.
    for (let timeout = 0.3, stdout: unknown = ''; stdout !== 'on\n'; timeout *= 2) {
      const report = (await value('run_shell_command', { cmd, timeout })) as JsonObject
      expect(report).toMatchObject({ exitCode: null, timedOut: true, signal: 'SIGKILL' })
      stdout = report.stdout
    }
  })

  test('much output is cut and flagged, and several lines are one script', async () => {
    const cmd = 'for i in 1 2 3; do\n  echo line $i\ndone\nyes | head -c 3000000'
    const { stdout, truncated } = (await value('run_shell_command', { cmd })) as JsonObject
    expect(truncated).toBe(true)
    expect(String(stdout)).toMatch(/^line 1\nline 2\nline 3\ny\n/)
    expect(String(stdout).length).toBeLessThan(1.1 * 1024 * 1024)
  })

  test('a folder outside is a failure that the model can read', async () => {
    expect(await failure('run_shell_command', { cmd: 'ls', cwd: '..' })).toMatch(
      /^".." leads outside the workspace/,
    )
  })

  test('a cancelled call leaves no process behind', async () => {
    const abort = new AbortController()
    const running = outcomeOf(
      builtin('run_shell_command'),
      { cmd: "setsid sh -c 'echo $$ > up; exec sleep 1000' & sleep 1000" },
      { sandbox: async () => sandbox, signal: abort.signal },
    )
    await expect.poll(() => get('up').trim()).not.toBe('')
    const pid = get('up').trim()
    abort.abort()
    expect(await running).toMatchObject({ kind: 'error', error: 'cancelled' })
    // One that has ended may wait to be collected, as a zombie.
    const gone = `case "$(ps -o stat= -p ${pid})" in ''|Z*) ;; *) exit 1; esac`
    await expect.poll(async () => (await sandbox.exec(gone).result).exitCode).toBe(0)
  })
})

describe('read_workspace_file', () => {
  test('gives the text, whole or some of its lines', async () => {
    put('a.txt', 'one\ntwo\nthree\n')
    const read = (args: JsonObject = {}) => value('read_workspace_file', { path: 'a.txt', ...args })
    expect(await read()).toBe('one\ntwo\nthree\n')
    expect(await read({ from: 2 })).toBe('two\nthree\n')
    expect(await read({ from: 2, to: 2 })).toBe('two\n')
    expect(await read({ to: 1 })).toBe('one\n')
    expect(await read({ from: 3, to: 99 })).toBe('three\n')
    expect(await failure('read_workspace_file', { path: 'a.txt', from: 4 })).toContain('has 3 lines')
    expect(await failure('read_workspace_file', { path: 'a.txt', from: 3, to: 2 })).toContain('before')
  })

  test('an image is shown as one, whatever it is called', async () => {
    const png = Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 1, 2])
    put('picture', png)
    expect(await run('read_workspace_file', { path: 'picture' })).toEqual({
      kind: 'value',
      value: { path: 'picture', mediaType: 'image/png', bytes: 11 },
      content: [{ type: 'image', mediaType: 'image/png', data: Buffer.from(png).toString('base64') }],
    })
  })

  test('a text with a NUL in it is a text', async () => {
    put('zero', 'twelve or more letters, \0 and more\n')
    expect(await run('read_workspace_file', { path: 'zero' })).toEqual({
      kind: 'value',
      value: 'twelve or more letters, \0 and more\n',
    })
  })

  test('what is no text is refused with another way to look at it', async () => {
    put('wide', new TextEncoder().encode('w\0i\0d\0e\0'))
    put('latin', Uint8Array.of(0xfc, 0x62))
    for (const path of ['wide', 'latin']) {
      expect(await failure('read_workspace_file', { path })).toMatch(/is not a text file.*xxd/)
    }
    put('large', 'x\n'.repeat(1_000_000))
    expect(await failure('read_workspace_file', { path: 'large' })).toMatch(/1000000 lines: give from and to/)
    expect(await failure('read_workspace_file', { path: 'none' })).toBe(
      'There is no "none" in the workspace.',
    )
    expect(await failure('read_workspace_file', { path: '.' })).toContain('folder')
    expect(await failure('read_workspace_file', { path: '/etc/passwd' })).toContain('outside the workspace')
  })
})

test('write_workspace_file writes the whole file and says whether it is new', async () => {
  const args = { path: 'a/b.txt', content: 'Größe\n' }
  expect(await value('write_workspace_file', args)).toEqual({ path: 'a/b.txt', bytes: 8, created: true })
  expect(get('a/b.txt')).toBe('Größe\n')
  expect(await value('write_workspace_file', args)).toMatchObject({ created: false })
  expect(await failure('write_workspace_file', { path: '../x', content: '' })).toContain('outside')
})

describe('edit_workspace_file', () => {
  const code = 'function one() {\n  return 1\n}\n\nfunction two() {\n  return 2\n}\n'

  test('replaces the one place where the text stands, to the letter', async () => {
    put('code.js', code)
    const edit = { path: 'code.js', old: '  return 1\n', new: '  // $& $1\n' }
    expect(await value('edit_workspace_file', edit)).toEqual({ path: 'code.js', replaced: 1, line: 2 })
    expect(get('code.js')).toBe(code.replace('  return 1', () => '  // $& $1'))
  })

  test('a text that stands there twice is refused with the lines, unless all are meant', async () => {
    put('code.js', code)
    const edit = { path: 'code.js', old: 'return', new: 'yield' }
    expect(await failure('edit_workspace_file', edit)).toMatch(/2 times, at lines 2, 6; nothing was changed/)
    expect(get('code.js')).toBe(code)
    expect(await value('edit_workspace_file', { ...edit, all: true })).toMatchObject({ replaced: 2 })
    expect(get('code.js')).toBe(code.replaceAll('return', 'yield'))
  })

  test('a text that is not there is refused with the nearest place', async () => {
    put('code.js', code)
    const edit = (old: string) => failure('edit_workspace_file', { path: 'code.js', old, new: 'x' })
    expect(await edit('function two() {\n    return 2\n}')).toMatch(
      /but for white space\. The file has:\n5: function two\(\) \{\n6: {3}return 2\n7: \}$/,
    )
    expect(await edit('function twoo() {\n  return 22')).toMatch(
      /nearest place in the file is:\n5: function two/,
    )
    expect(await edit('nothing like it at all')).toContain('Read the file and try again')
    put('code.js', code.replaceAll('\n', '\r\n'))
    expect(await edit('return 1\n}')).toContain('end in \\r\\n')
    expect(await failure('edit_workspace_file', { path: 'code.js', old: 'a', new: 'a' })).toContain(
      'the same',
    )
  })

  test('keeps the byte order mark, the line ends and the mode', async () => {
    await sandbox.files.write('odd.sh', '\ufeffone\r\ntwo\r\n', { mode: 0o750 })
    await value('edit_workspace_file', { path: 'odd.sh', old: 'two', new: '2' })
    expect(get('odd.sh')).toBe('\ufeffone\r\n2\r\n')
    expect((await sandbox.files.stat('odd.sh'))?.mode).toBe(0o750)
  })
})

test('list_workspace_files goes as deep as it is told, and not into node_modules', async () => {
  for (const path of ['src/deep', 'node_modules/x']) mkdirSync(join(folder, path), { recursive: true })
  for (const path of ['b.txt', 'src/main.ts', 'src/deep/x.ts', 'node_modules/x/i.js']) put(path, '')
  const list = async (args: JsonObject) => ((await value('list_workspace_files', args)) as JsonObject).entries
  expect(await list({})).toEqual(['b.txt', 'node_modules/', 'src/'])
  expect(await list({ depth: 3 })).toEqual([
    ...['b.txt', 'node_modules/', 'src/', 'src/deep/', 'src/deep/x.ts', 'src/main.ts'],
  ])
  expect(await list({ path: 'node_modules', depth: 2 })).toEqual(['x/', 'x/i.js'])
  expect(await failure('list_workspace_files', { path: 'none' })).toContain('none')
  for (let i = 0; i < 1001; i++) put(`src/deep/${i}`, '')
  expect(await value('list_workspace_files', { depth: 9 })).toMatchObject({ truncated: true })
})

test('search_workspace finds lines, and workspace_path_exists says what is there', async () => {
  put('a.ts', 'let x = 1\nlet y = 2\n')
  put('b.md', 'let there be\n')
  expect(await value('search_workspace', { query: 'let', glob: '*.ts' })).toEqual({
    matches: [
      { path: 'a.ts', line: 1, text: 'let x = 1' },
      { path: 'a.ts', line: 2, text: 'let y = 2' },
    ],
  })
  expect(await value('search_workspace', { query: 'y = \\d$', regex: true })).toMatchObject({
    matches: [{ line: 2 }],
  })
  expect(await value('search_workspace', { query: 'let', limit: 1 })).toMatchObject({ truncated: true })
  expect(await failure('search_workspace', { query: '(', regex: true })).toContain(
    'Invalid regular expression',
  )
  expect(await value('workspace_path_exists', { path: 'a.ts' })).toEqual({ exists: true, kind: 'file' })
  expect(await value('workspace_path_exists', { path: 'nope' })).toEqual({ exists: false })
  expect(await failure('workspace_path_exists', { path: '../..' })).toContain('outside')
})

describe('run_code', () => {
  const code = (language: string | undefined, program: string, more: JsonObject = {}) =>
    value('run_code', { code: program, ...(language && { language }), ...more }) as Promise<JsonObject>

  test('runs every language in the workspace and leaves no file there', async () => {
    put('data.txt', 'data')
    const python = "import os, sys\nprint(open('data.txt').read(), os.getcwd())\nsys.exit(2)"
    expect(await code(undefined, python)).toMatchObject({ exitCode: 2, stdout: `data ${folder}\n` })
    const javascript = "const fs = require('node:fs'); console.log(fs.readFileSync('data.txt', 'utf8'))"
    expect(await code('javascript', javascript)).toMatchObject({ exitCode: 0, stdout: 'data\n' })
    const typescript =
      "import { readFileSync } from 'node:fs'\nconst text: string = readFileSync('data.txt', 'utf8')\nconsole.log(await text)"
    expect(await code('typescript', typescript)).toMatchObject({ exitCode: 0, stdout: 'data\n', stderr: '' })
    expect(await code('bash', 'cat\n[[ -f data.txt ]] && cat data.txt')).toMatchObject({ stdout: 'data' })
    expect(await sandbox.files.list('.')).toEqual([{ name: 'data.txt', kind: 'file' }])
  })

  test('an error of the program is a result, and an endless one is timed out', async () => {
    const failed = await code('python', 'x = 1\nraise ValueError("bad")')
    expect(failed).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('ValueError: bad') })
    expect(await code('javascript', 'while (true);', { timeout: 0.5 })).toMatchObject({ timedOut: true })
    expect(await failure('run_code', { code: 'x', language: 'cobol' })).toContain('language')
  })

  test('works from a file where a sandbox has no input, and removes it', async () => {
    const { cwd, id, files, backend } = sandbox
    const without: Sandbox = {
      ...{ id, cwd, files, backend, capabilities: { ...sandbox.capabilities, stdin: false } },
      exec: (command, options) => sandbox.exec(command, options),
      close: async () => {},
      async [Symbol.asyncDispose]() {},
    }
    const outcome = await outcomeOf(
      builtin('run_code'),
      { code: 'print(1)' },
      { sandbox: async () => without },
    )
    expect(outcome).toMatchObject({ kind: 'value', value: { exitCode: 0, stdout: '1\n' } })
    expect(await files.list('.')).toEqual([])
  })
})

describe('what calls wait for', () => {
  const claim = (name: BuiltinName, args: Json) => claimOf(builtin(name), args)

  test('one file is one resource by any of its names, and a change is seen by lists and searches', () => {
    const paths = ['a.txt', './a.txt', 'b/../a.txt']
    const claims = paths.map(path => claim('read_workspace_file', { path }).resources)
    expect(claims).toEqual([['file:a.txt'], ['file:a.txt'], ['file:a.txt']])
    const changed = claim('write_workspace_file', { path: './a.txt', content: '' })
    expect(changed).toEqual({ resources: ['file:a.txt', 'workspace:files'], alone: false })
    for (const name of ['list_workspace_files', 'search_workspace'] as const) {
      expect(claim(name, { query: 'x' }).resources).toEqual(['workspace:files'])
    }
    expect(claim('read_workspace_file', { path: `${folder}/a.txt` }).resources).toContain('workspace:files')
  })

  test('commands and code run alone', () => {
    expect(claim('run_shell_command', { cmd: 'x' })).toEqual({ resources: [], alone: true })
    expect(claim('run_code', { code: 'x' })).toEqual({ resources: [], alone: true })
  })
})

describe('what a model writes does not stop the process', () => {
  const quick = async (work: () => unknown) => {
    const spent = process.cpuUsage()
    const ended = await work()
    expect(process.cpuUsage(spent).user / 1000).toBeLessThan(10_000)
    return ended
  }

  test('in globs, texts to edit, paths and expressions', async () => {
    put('a'.repeat(250), 'x')
    put('lines', 'a\n'.repeat(19_000))
    const search = (args: JsonObject) => run('search_workspace', { query: 'x', ...args })
    expect(await quick(() => search({ glob: '*a*a*a*a*a*a*a*a*b' }))).toMatchObject({
      value: { matches: [] },
    })
    for (const old of [`a${'\n'.repeat(300_000)}b`, `${'a\n'.repeat(9000)}b`]) {
      expect(await quick(() => failure('edit_workspace_file', { path: 'lines', old, new: '' }))).toContain(
        'is not in lines',
      )
    }
    const path = `a${'/'.repeat(500_000)}b`
    expect(await quick(() => failure('workspace_path_exists', { path }))).toContain('at most 4096 characters')
    for (const query of ['(?:a|a)*'.repeat(1000), 'a'.repeat(2_000_000)]) {
      expect(await quick(() => search({ query, regex: true }))).toMatchObject({ kind: 'error' })
    }
  })

  test('a search hears that it is cancelled while its expression is slow in every file', async () => {
    for (let i = 0; i < 400; i++) put(`f${i}`, `${'a'.repeat(22)}!`)
    const controller = new AbortController()
    setTimeout(() => controller.abort(new Error('enough')), 50)
    const spent = process.cpuUsage()
    const query = { text: '^(?:(?:a|a)+)+$', regex: true, signal: controller.signal }
    await expect(sandbox.files.search(query)).rejects.toThrow()
    expect(process.cpuUsage(spent).user / 1000).toBeLessThan(10_000)
  })

  test('in answers with a fence', async () => {
    const hostile = [
      `\`\`\`${'\n'.repeat(100_000)}`,
      `\`\`\`json\n${'` '.repeat(100_000)}`,
      `${'\n'.repeat(50_000)}x`,
    ]
    for (const text of hostile) await quick(() => withoutFence(text))
    expect(withoutFence(' ```json\n{"a":1}\n``` ')).toBe('{"a":1}')
    expect(withoutFence('```\n1\n```')).toBe('1')
    expect(withoutFence('```ts\n1\n```')).toBe('```ts\n1\n```')
    expect(withoutFence('```')).toBe('```')
    expect(withoutFence('{"a":"```"}')).toBe('{"a":"```"}')
  })
})
