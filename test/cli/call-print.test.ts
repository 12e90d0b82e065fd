import fc from 'fast-check'
import { expect, test } from 'vitest'
import { canonicalJson, type Json } from '../../src/base/json.ts'
import { callLines, offScreen, type ShownCall } from '../../src/cli/call-print.ts'
import { Output } from '../../src/cli/output.ts'
import { Progress } from '../../src/cli/progress.ts'
import { oneVisibleLine } from '../../src/cli/text.ts'

const output = (rows?: number) =>
  new Output({
    stdout: { isTTY: false, columns: 80, rows } as never,
    stderr: { isTTY: false } as never,
    env: {},
  })
const shown = (call: ShownCall) => callLines(call, output())

test('the tool and every argument are shown, whatever they are called', () => {
  const args = { to: 'attacker', amount: 99999, cmd: 'git status', path: 'a', content: 'b', code: '1' }
  expect(shown({ tool: 'transfer_money', args })).toBe(`transfer_money
  to: "attacker"
  amount: 99999
  cmd: "git status"
  path: "a"
  content: "b"
  code: "1"`)
  // A tool that is only called like a built-in one, and a built-in one with an argument that it does not have.
  const more = { cmd: 'git status', to: 'attacker' }
  expect(shown({ tool: 'run_shell_command', args: more })).toBe(
    'run_shell_command\n  cmd: "git status"\n  to: "attacker"',
  )
  expect(shown({ tool: 'run_shell_command', args: more, builtin: true })).toBe(
    'run_shell_command\n  $ git status\n  to: "attacker"',
  )
  expect(shown({ tool: 'ping', args: {} })).toBe('ping\n  without arguments')
})

test('text cannot pass for another argument, or hide', () => {
  const cmd = 'ls\n  cwd: "safe"\r\u001b[2Krm x \u202eetirw\u202c \u2066\u200b\u3164\u00a0\u2800'
  expect(shown({ tool: 'run_shell_command', args: { cmd }, builtin: true })).toBe(`run_shell_command
  cmd (2 lines, ${cmd.length} characters):
  │ ls
  │   cwd: "safe"<U+000D><U+001B>[2Krm x <U+202E>etirw<U+202C> <U+2066><U+200B><U+3164><U+00A0><U+2800>`)
  expect(shown({ tool: 't', args: { 'a\nb: 1': 'x', '\u202e': '<U+202E>' } })).toBe(
    't\n  "a\\nb: 1": "x"\n  "\\u202e": "<U+202E>"',
  )
})

test('a write is shown as a change of the file, an edit as a change of its text, each with all that it has', () => {
  const write = { path: 'a.txt', content: 'one\ntwo\nTHREE\n', mode: 7 }
  const call = { tool: 'write_workspace_file', args: write, builtin: true }
  expect(shown({ ...call, before: 'one\ntwo\nthree\n' })).toBe(`write_workspace_file
  path: "a.txt"
  content (3 lines, 14 characters), as a change of the file as it is now:
  │ @@ -1,3 +1,3 @@
  │  one
  │  two
  │ -three
  │ +THREE
  mode: 7`)
  expect(shown(call)).toContain('content (3 lines, 14 characters):\n  │ one\n  │ two\n  │ THREE')
  const edit = { path: 'a.txt', old: 'one\ntwo', new: 'one\n2', all: true }
  expect(shown({ tool: 'edit_workspace_file', args: edit, builtin: true })).toBe(`edit_workspace_file
  path: "a.txt"
  old (2 lines, 7 characters) and new (2 lines, 5 characters), as a change:
  │ @@ -1,2 +1,2 @@
  │  one
  │ -two
  │ \\ No newline at end of file
  │ +2
  │ \\ No newline at end of file
  all: true`)
})

test('a call that does not fit the screen says so right above the question, with the size of each argument', () => {
  const args = { path: 'a', content: 'x\n'.repeat(200) }
  const call = { tool: 'write_workspace_file', args }
  const lines = shown(call)
  expect(offScreen(lines, call, output(24))).toMatch(
    /^↑ 18\d lines of this call to write_workspace_file are above the screen \(path 1 line, 1 character, content 200 lines, 400 characters\)/,
  )
  expect(offScreen(lines, call, output(300))).toBe(undefined)
  expect(offScreen(shown({ tool: 't', args: { a: 'y'.repeat(3000) } }), call, output(24))).toContain(
    'above the screen',
  )
})

test('texts that take a diff for ever are shown whole', () => {
  const text = (seed: number) =>
    Array.from({ length: 20_000 }, (_, i) => String((i * seed) % 9973)).join('\n')
  const spent = process.cpuUsage()
  const view = shown({
    tool: 'edit_workspace_file',
    args: { path: 'a', old: text(7), new: text(11) },
    builtin: true,
  })
  expect(process.cpuUsage(spent).user / 1000).toBeLessThan(10_000)
  expect(view).toContain('new (20,000 lines')
})

const text = fc.string({
  unit: fc.constantFrom(
    'a',
    'b',
    ' ',
    '\n',
    '\n',
    '\r',
    '"',
    '<',
    'U',
    '+',
    '202E',
    '>',
    '\u202e',
    '\\',
    '│',
    ':',
    '-',
    '@',
  ),
  maxLength: 12,
})
const value: fc.Arbitrary<Json> = fc.oneof(
  text,
  text,
  fc.integer({ min: 0, max: 3 }),
  fc.boolean(),
  fc.constant(null),
  fc.array(text, { maxLength: 2 }),
)
const call = fc.record({
  tool: fc.constantFrom(
    'run_shell_command',
    'write_workspace_file',
    'edit_workspace_file',
    'run_code',
    'other',
  ),
  args: fc.dictionary(fc.constantFrom('cmd', 'path', 'content', 'old', 'new', 'code', 'x', 'a\n  b'), value, {
    maxKeys: 4,
  }) as fc.Arbitrary<Json>,
  builtin: fc.boolean(),
})

test('calls that differ in the tool or in any argument look different, so that a digest covers what was shown', () => {
  const seen = new Map<string, string>()
  const property = fc.property(
    call,
    fc.string({ unit: fc.constantFrom('a', '\n', ' '), maxLength: 4 }),
    (one, more) => {
      const { args } = one
      const near = Object.fromEntries(
        Object.entries(args as object).map(([key, own]) => [key, typeof own === 'string' ? own + more : own]),
      )
      for (const variant of [one, { ...one, args: near as Json }]) {
        const view = `${variant.builtin}${shown(variant)}`
        const what = canonicalJson([variant.tool, variant.args])
        expect(seen.get(view) ?? what, view).toBe(what)
        seen.set(view, what)
        expect(view).not.toMatch(/[\p{Cf}\r]/u)
      }
    },
  )
  fc.assert(property, { numRuns: 3000 })
})

test('a question is one line, and marks that pile up are spelt out', () => {
  expect(oneVisibleLine('May I?\n  ls\nAllow it?')).toBe('May I?<U+000A>  ls<U+000A>Allow it?')
  expect(oneVisibleLine(`a${'\u0338'.repeat(5)}b e\u0301`)).toBe(
    'a\u0338\u0338\u0338<U+0338><U+0338>b e\u0301',
  )
})

test('what other branches do while a person reads a question is told after it', () => {
  let said = ''
  const stderr = {
    isTTY: false,
    write: (text: string) => {
      said += text
    },
  }
  using progress = new Progress(new Output({ stdout: {} as never, stderr: stderr as never, env: {} }))
  progress.line('before')
  progress.hold()
  progress.line('meanwhile')
  expect(said).toBe('before\n')
  progress.release()
  progress.line('after')
  expect(said).toBe('before\nmeanwhile\nafter\n')
})
