import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { mountFlags, mountProblem } from '../support/mounts.ts'
import { entry, Project } from './make.ts'

/** What a printed command must say. */
const says: Record<string, RegExp> = {
  replay: /^same: run \S+ ended as it did \(done\), with \d+ effects from the record\.$/m,
  blame: /FixIssue\/attempts\/careful \(careful\) scripted\/careful/,
  bisect: /^First fails: chunk \d+ \w+ on quick, edit_workspace_file by FixIssue\/attempts\/quick;/m,
  dossier: /^\| `quick` \| rejected \| Rejected by .*"no dash at the ends"/m,
  resume: /^All tests pass\.$/m,
  memory: /the quick attempt was rejected/,
}

test('the demo mends a repository without a key, tells it, and every command that it prints works', () => {
  const project = new Project()
  const env = { ...project.env, TMPDIR: project.folder }
  const { status, stdout, stderr } = project.run({ args: ['demo'], env })
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  expect(stdout).toContain('a script answers in its place')
  for (const line of [
    /^planner +Nobody has read the issue yet\. Next: researcher\.$/m,
    /^researcher +recalls: Titles got wrong slugs before/m,
    /^quick +edits src\/slug\.js$/m,
    /^tester on quick +runs .* --test --test-reporter=tap: exit code 1 after/m,
    /^validator on quick +rejects it: Exit code 1; these tests fail: .*"no dash at the ends"\.$/m,
    /^validator on careful +accepts it: All tests pass \(exit code 0\)\.$/m,
    /^validator on quick +remembers: .* rejected/m,
    /^attempts +brings the files of careful back to the folder; quick stays on the record\.$/m,
    /^\d.*s, [\d,]+ tokens \(of a script/m,
  ]) {
    expect(stdout).toMatch(line)
  }

  const [, folder = ''] = /^ {2}cd (.+)$/m.exec(stdout) ?? []
  expect(spawnSync(process.execPath, ['--test'], { cwd: folder, env }).status).toBe(0)
  expect(readFileSync(join(folder, 'src/slug.js'), 'utf8')).toContain("normalize('NFKD')")
  const [, page = ''] = /^The dossier.*: (.+)$/m.exec(stdout) ?? []
  expect(readFileSync(page, 'utf8')).toMatch(/^<!doctype html>[\s\S]*no dash at the ends/i)

  const commands = [...stdout.matchAll(/^ {2}(npx rath (\w+) .*)$/gm)]
  expect(commands.map(([, , name]) => name)).toEqual(Object.keys(says))
  for (const [, line = '', name = ''] of commands) {
    const ended = spawnSync('sh', ['-c', line], { cwd: folder, env, encoding: 'utf8' })
    expect({ line, status: ended.status, stdout: ended.stdout }).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(says[name] as RegExp),
    })
  }
})

test('what the README shows of the demo is what it prints', () => {
  const project = new Project()
  const { stdout } = project.run({ args: ['demo'], env: { TMPDIR: project.folder } })
  const readme = readFileSync(join(import.meta.dirname, '../../README.md'), 'utf8')
  const [, shown = ''] = /^```console\n(.*?)^```$/ms.exec(readme) ?? []
  // Times differ, and so does where Node is found.
  const same = (text: string) =>
    text.replace(/runs .* --test/g, 'runs node --test').replace(/after .*/g, 'after a while')
  const printed = same(stdout).split('\n')
  expect(shown.split('\n').length).toBeGreaterThan(10)
  expect(
    same(shown)
      .split('\n')
      .filter(line => !printed.includes(line)),
  ).toEqual([])
})

test('a demo that is killed on the way goes on in another process', async () => {
  const project = new Project()
  const env = { ...project.env, TMPDIR: project.folder }
  const child = spawn(process.execPath, [entry, 'demo'], { cwd: project.folder, env })
  let told = ''
  child.stdout.setEncoding('utf8').on('data', text => {
    told += text
    if (/^researcher +says/m.test(told)) child.kill('SIGKILL')
  })
  const [, signal] = await once(child, 'close')
  expect(signal).toBe('SIGKILL')
  const [, folder = ''] = /is in (.+)\.$/m.exec(told) ?? []
  const cwd = relative(project.folder, folder)
  expect(project.run({ args: ['resume', 'last'], cwd })).toMatchObject({
    status: 0,
    stdout: 'All tests pass.\n',
  })
  expect(project.run({ args: ['replay', 'last'], cwd }).stdout).toMatch(says.replay as RegExp)
  expect(readFileSync(join(folder, 'src/slug.js'), 'utf8')).toContain("normalize('NFKD')")
})

test('for a program, the demo prints JSON and tells its story on the other stream', () => {
  const project = new Project()
  const { status, stdout, stderr } = project.run({
    args: ['demo', '--json'],
    env: { TMPDIR: project.folder },
  })
  expect(status).toBe(0)
  expect(stderr).toMatch(/^validator on quick +rejects it/m)
  const { branches, dossier } = JSON.parse(stdout)
  expect(branches).toMatchObject([
    { branch: 'careful', verdict: 'accept' },
    { branch: 'quick', verdict: 'reject' },
  ])
  expect(existsSync(dossier)).toBe(true)
})

test('--open hands the dossier to the program of the system that opens pages', async ({ skip }) => {
  const problem = mountProblem()
  if (problem) console.log(`not tested: rath demo --open, because ${problem}`)
  if (problem) return skip(problem)
  const project = new Project()
  const opened = join(project.home, 'opened')
  // A pipe, so that reading waits for the program, which the demo does not.
  expect(project.program('mkfifo', opened).status).toBe(0)
  project.write('bin/xdg-open', `#!/bin/sh\nprintf %s "$1" > ${opened}\n`)
  chmodSync(join(project.folder, 'bin/xdg-open'), 0o755)
  const env = { ...project.env, TMPDIR: project.folder }
  // Only folders of the system are looked at: for the demo, and nobody else, the first of them is this one.
  const script = 'mount --bind bin /usr/local/sbin; exec "$@"'
  const command = [process.execPath, entry, 'demo', '--open', '--json']
  const args = [...mountFlags(), 'sh', '-ec', script, 'sh', ...command]
  const child = spawn('unshare', args, { cwd: project.folder, env })
  const told = Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  const reading = readFile(opened, 'utf8')
  const [stdout, stderr, [status]] = await told
  expect({ status, stderr: status === 0 ? '' : stderr }).toEqual({ status: 0, stderr: '' })
  expect(await reading).toBe(JSON.parse(stdout).dossier)
})

test('--live without a key says what is missing and makes nothing', () => {
  const project = new Project()
  const before = readdirSync(project.folder)
  const { status, stdout, stderr } = project.run({
    args: ['demo', '--live'],
    env: { TMPDIR: project.folder },
  })
  expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
  expect(stderr).toMatch(/No model was named\. Looked at:/)
  expect(readdirSync(project.folder)).toEqual(before)
  expect(existsSync(join(project.folder, '.openrath'))).toBe(false)
})
