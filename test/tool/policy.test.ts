import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { z } from 'zod'
import type { Json } from '../../src/base/json.ts'
import { Session } from '../../src/session/session.ts'
import { matchesGlob, valuesAt } from '../../src/tool/policy/match.ts'
import { checkPolicy, narrow, type Policy, policy } from '../../src/tool/policy/policy.ts'
import type { CommandRule, PolicyRules } from '../../src/tool/policy/rules.ts'
import { tool } from '../../src/tool/tool.ts'
import { refusal } from '../session/make.ts'
import { outcomeOf, result } from './make.ts'

const session = Session.fromUserMessage('Go.')

const verdict = async (rules: PolicyRules | Policy, tool: string, args: Json = {}) =>
  (await checkPolicy('layers' in rules ? rules : policy(rules), { tool, args }, { session })).kind

test('tools are allowed and denied by name and glob; a denial wins', async () => {
  const rules: PolicyRules = { allow: ['read_*', 'list'], deny: ['read_secret*'] }
  expect(await verdict(rules, 'read_file')).toBe('allow')
  expect(await verdict(rules, 'list')).toBe('allow')
  expect(await verdict(rules, 'list_all')).toBe('deny')
  expect(await verdict(rules, 'read_secrets')).toBe('deny')
  expect(await verdict({}, 'anything')).toBe('allow')
  expect(await verdict({ allow: [] }, 'anything')).toBe('deny')
})

test('arguments are matched by path: an allow needs all of them, a deny any', async () => {
  const rules: PolicyRules = {
    allow: [{ tool: 'fetch', when: { 'urls[*]': /^https:\/\/docs\./g } }],
    deny: [
      { tool: 'fetch', when: { 'urls[*]': '*internal*' } },
      { tool: 'fetch', when: { depth: (n: Json) => Number(n) > 3 } },
    ],
  }
  const fetch = (args: Json) => verdict(rules, 'fetch', args)
  for (let i = 0; i < 3; i++)
    expect(await fetch({ urls: ['https://docs.a', 'https://docs.b'] })).toBe('allow')
  expect(await fetch({ urls: ['https://docs.a', 'https://evil'] })).toBe('deny')
  expect(await fetch({ urls: ['https://docs.internal'] })).toBe('deny')
  expect(await fetch({ urls: ['https://docs.a'], depth: 4 })).toBe('deny')
  expect(await fetch({ urls: [] })).toBe('deny')
  expect(await fetch({})).toBe('deny')
})

test('rules see the arguments as written and as the schema made them', async () => {
  const read = tool({
    name: 'read',
    description: '',
    input: z.object({
      path: z.string().trim().default('/etc/passwd'),
      mode: z.string().toLowerCase().optional(),
      at: z
        .string()
        .transform(text => new Date(text))
        .optional(),
    }),
    run: ({ path }) => path,
  })
  const rules = policy({
    allow: [
      { tool: 'read', when: { at: '2030*' } },
      { tool: 'read', when: { path: '*' } },
    ],
    deny: [{ tool: 'read', when: { mode: 'raw' } }],
    paths: [{ tool: 'read', roots: ['.'] }],
  })
  const kind = async (args: Json) => (await outcomeOf(read, args, { policy: rules })).kind
  expect(await kind({ path: 'a' })).toBe('value')
  expect(await kind({ path: 'a', at: '2030-01-01' })).toBe('value')
  expect(await kind({})).toBe('denied')
  expect(await kind({ path: ' /etc/passwd' })).toBe('denied')
  expect(await kind({ path: 'a', mode: 'RAW' })).toBe('denied')
})

test('rules that are changed after the policy was made change nothing', async () => {
  const commands = [{ tool: 'sh', allow: ['ls'] }]
  const rules = { deny: ['delete'], commands }
  const made = policy(rules)
  rules.deny.length = 0
  commands[0]?.allow.push('rm')
  expect(await verdict(made, 'delete')).toBe('deny')
  expect(await verdict(made, 'sh', { cmd: 'rm x' })).toBe('deny')
})

test('a condition that could never hold is refused when the policy is made', async () => {
  for (const when of [
    { url: ['a', 'b'] },
    { url: undefined },
    { url: { glob: 'a' } },
    { 'files[].path': 'a' },
    { 'a["b"]': 'a' },
    ['url'],
  ]) {
    const rules = { deny: [{ tool: 'fetch', when }] } as unknown as PolicyRules
    expect(() => policy(rules), JSON.stringify(when)).toThrow('deny[0]')
  }
  const fine = { 'files[*].path': 'a', 'a.b[0]': 1, c: null, d: /x/, '*': () => true }
  expect(policy({ deny: [{ tool: 'fetch', when: fine }] }).layers).toHaveLength(1)
})

test('a rule that throws has not let the call through', async () => {
  const rules: PolicyRules = {
    deny: [
      {
        tool: '*',
        when: {
          a: () => {
            throw new Error('oops')
          },
        },
      },
    ],
  }
  expect(await checkPolicy(policy(rules), { tool: 't', args: { a: 1 } }, { session })).toEqual({
    kind: 'deny',
    reason: 'a rule failed: oops',
  })
  expect(await verdict(rules, 't', {})).toBe('allow')
})

test('calls are counted over the history and the running turn; refused ones do not count', async () => {
  const history = session.append(
    result('1', 'search'),
    result('2', 'search', { kind: 'denied', reason: 'no' }),
    result('3', 'search', { kind: 'error', error: 'invalid-arguments', message: '' }),
    result('4', 'search', { kind: 'error', error: 'threw', message: '' }),
    result('5', 'other'),
  )
  const most = (count: number) => policy({ calls: [{ tool: 'sea*', most: count }] })
  const check = (count: number, from: Session, before: number) =>
    checkPolicy(
      most(count),
      { tool: 'search', args: {} },
      { session: from, before: Array.from({ length: before }, () => ({ tool: 'search', args: {} })) },
    )
  expect((await check(3, history, 0)).kind).toBe('allow')
  expect((await check(3, history, 1)).kind).toBe('deny')
  expect((await check(2, history.fork('branch'), 0)).kind).toBe('deny')
})

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'openrath-policy-')))
afterAll(() => rmSync(folder, { recursive: true }))

test('paths stay inside their roots, links followed', async () => {
  const root = join(folder, 'root')
  mkdirSync(join(root, 'sub/deep'), { recursive: true })
  mkdirSync(join(folder, 'outside/inner'), { recursive: true })
  mkdirSync(join(folder, 'root-next'))
  writeFileSync(join(folder, 'outside/secret'), '')
  symlinkSync('../outside', join(root, 'out'))
  symlinkSync('sub', join(root, 'in'))
  symlinkSync(join(folder, 'outside/not-yet'), join(root, 'dangling'))
  symlinkSync('../outside/inner', join(root, 'inner'))
  symlinkSync('loop', join(root, 'loop'))
  symlinkSync(root, join(folder, 'root-link'))
  const rules: PolicyRules = {
    paths: [{ tool: '*', argument: ['path', 'files[*].name'], roots: [root], base: root }],
  }
  const inside = [
    'a',
    './a',
    'sub/a',
    'sub/../a',
    'in/deep/new',
    root,
    `${root}/x/y/z`,
    'missing/../a',
    '.',
    'in/..',
  ]
  for (const path of inside) expect(await verdict(rules, 't', { path }), path).toBe('allow')
  const outside = [
    '..',
    '../outside/secret',
    '/etc/passwd',
    'out/secret',
    'out',
    'in/../../outside',
    'dangling',
    'dangling/x',
    'inner/../secret',
    'loop/x',
    `${root}-next/a`,
    'a\0b',
    'missing/../../outside',
    'sub/deep/../../../outside/secret',
  ]
  for (const path of outside) expect(await verdict(rules, 't', { path }), path).toBe('deny')
  expect(await verdict(rules, 't', { files: [{ name: 'a' }, { name: '../x' }] })).toBe('deny')
  expect(await verdict(rules, 't', { path: 3 })).toBe('deny')
  expect(await verdict(rules, 't', {})).toBe('allow')
  const link = join(folder, 'root-link')
  const linked: PolicyRules = { paths: [{ tool: '*', roots: [link], base: link }] }
  expect(await verdict(linked, 't', { path: join(root, 'a') })).toBe('allow')
  expect(await verdict(linked, 't', { path: 'sub/a' })).toBe('allow')
})

test('a file system that will not say where a path leads has not let it through', async () => {
  const denied = () => Promise.reject(Object.assign(new Error('EACCES'), { code: 'EACCES' }))
  const files = async () => ({ folder: '/', realpath: denied, readlink: denied })
  const rules = policy({ paths: [{ tool: '*', roots: ['/r'] }] })
  expect(await checkPolicy(rules, { tool: 't', args: { path: 'a' } }, { session, files })).toMatchObject({
    kind: 'deny',
  })
})

test('every command of a line must be allowed, and none may be denied', async () => {
  const check = (rule: Omit<CommandRule, 'tool'>, cmd: string) =>
    verdict({ commands: [{ tool: 'sh', ...rule }] }, 'sh', { cmd })
  const allow = ['ls', 'git status', 'git log', 'npm run *', 'env', './build']
  for (const line of [
    'ls -la',
    'git status -s',
    'ls | ls',
    'npm run test',
    'env ls',
    './build',
    'ls 2>/dev/null 2>&1',
    'for f in *.md; do ls "$f"; done',
    'i=0; ls $i $((1 + 2))',
  ]) {
    expect(await check({ allow }, line), line).toBe('allow')
  }
  for (const line of [
    'rm x',
    'ls; rm x',
    'ls $(rm x)',
    'git push',
    'git $x',
    'git',
    './ls',
    '/bin/ls',
    'env rm x',
    'ls > file',
    'ls < /dev/tcp/evil/80',
    'PATH=. ls',
    'for PATH in .; do ls; done',
    'for file in *; do ls "$file"; done',
    'A=1 ls',
    'env LD_PRELOAD=x ls',
    'ls() { :; }; rm',
    'i=0; ls $((i++))',
    'ls | while read -r PATH; do ls; done',
    'cd src && ./build',
    'ls "',
  ]) {
    expect(await check({ allow }, line), line).toBe('deny')
  }
  const deny = ['rm', 'git push', 'curl']
  for (const line of ['ls', 'git pull', 'echo rm', 'X=1 ls > y'])
    expect(await check({ deny }, line), line).toBe('allow')
  for (const line of [
    'rm x',
    '/bin/rm x',
    '\\rm x',
    'ls && sudo rm x',
    'sh -c "ls; rm x"',
    'git push --force',
    'git $x',
    'echo $(curl evil)',
    '$x',
    'X=1 nohup rm &',
    'find . -exec rm {} +',
    'ls | xargs rm',
  ]) {
    expect(await check({ deny }, line), line).toBe('deny')
  }
  expect(await check({ allow: [({ name, args }) => name === 'rm' && !args.includes('-r')] }, 'rm a')).toBe(
    'allow',
  )
  expect(await check({ allow: ['ls'], variables: ['CI', 'NODE_*'] }, 'CI=1 NODE_ENV=x ls')).toBe('allow')
  for (const [variables, line, given] of [
    [['*'], 'anything=1 ls', 'allow'],
    [['*'], 'PATH=. ls', 'deny'],
    [['S*'], 'SECONDS=1; ls', 'deny'],
    [['*'], 'LD_PRELOAD=./x.so ls', 'deny'],
    [['NODE_*'], 'NODE_OPTIONS=--require=./x.js ls', 'deny'],
    [['PATH'], 'PATH=. ls', 'allow'],
  ] as const) {
    expect(await check({ allow: ['ls'], variables }, line), line).toBe(given)
  }
  const redirecting = async (cmd: string, cwd?: string) => {
    const rules = policy({
      commands: [{ tool: 'sh', allow: ['ls', 'cd', 'env', 'find', 'sh'], redirects: ['root'] }],
    })
    const args = cwd === undefined ? { cmd } : { cmd, cwd }
    return (await checkPolicy(rules, { tool: 'sh', args }, { session: session.to('local', folder) })).kind
  }
  for (const line of [`ls > ${folder}/root/list`, 'ls > root/list 2> root/sub/err', 'ls < root/list']) {
    expect(await redirecting(line), line).toBe('allow')
  }
  for (const line of [
    'ls > list',
    'ls > root/out/list',
    'ls > $x',
    'cd root; ls > root/x',
    'env -C /etc ls > root/x',
    'find / -maxdepth 0 -execdir sh -c "ls > root/x" \\;',
  ]) {
    expect(await redirecting(line), line).toBe('deny')
  }
  expect(await redirecting('ls > list', 'root')).toBe('allow')
  expect(await redirecting('ls > root/list', '/etc')).toBe('deny')
  expect(await verdict({ commands: [{ tool: 'sh', allow }] }, 'sh', { cmd: ['ls'] })).toBe('deny')
})

test('relative roots and paths start at the workspace, so that a policy means what the tool does', async () => {
  const rules = policy({ paths: [{ tool: '*', roots: ['./root', 'docs'] }] })
  const check = async (placed: Session, path: string) =>
    (await checkPolicy(rules, { tool: 't', args: { path } }, { session: placed })).kind
  const placed = session.to('local', folder)
  for (const path of ['root/a', './docs/b', 'root', join(folder, 'root/a')]) {
    expect(await check(placed, path), path).toBe('allow')
  }
  for (const path of ['a', 'root-next/a', '../a', 'root/out/a', '/root/a']) {
    expect(await check(placed, path), path).toBe('deny')
  }
  expect(await check(session, join(process.cwd(), 'docs/x'))).toBe('allow')
})

const rulesOver = fc.record(
  {
    allow: fc.array(fc.constantFrom('a', 'b', '*', 'c*'), { maxLength: 2 }),
    deny: fc.array(fc.constantFrom('a', 'b', 'c?'), { maxLength: 2 }),
    approval: fc.array(fc.constantFrom('a', 'b', '*'), { maxLength: 1 }),
    calls: fc.array(fc.record({ tool: fc.constantFrom('a', '*'), most: fc.nat(1) }), { maxLength: 1 }),
  },
  { requiredKeys: [] },
)

test('joined policies deny what either denies and ask what either asks, and never give anything back', async () => {
  const rank = { allow: 0, ask: 1, deny: 2 }
  await fc.assert(
    fc.asyncProperty(rulesOver, rulesOver, fc.constantFrom('a', 'b', 'cc', 'd'), async (one, other, tool) => {
      const [first, second] = [policy(one), policy(other)]
      const strict = Math.max(rank[await verdict(first, tool)], rank[await verdict(second, tool)])
      expect(rank[await verdict(narrow(first, second), tool)]).toBe(strict)
      expect(rank[await verdict(narrow(second, first), tool)]).toBe(strict)
      expect(narrow(first, first)).toEqual(first)
    }),
  )
})

test('a misspelt rule is refused, since it would allow silently', () => {
  const wrong = {
    alow: ['a'],
    deny: 'rm',
    paths: [{ tool: '*' }],
    calls: [{ tool: 'a', max: 3 }],
    commands: [{ allow: [] }],
  }
  expect(refusal(() => policy(wrong as never)).data.paths).toEqual([
    'alow',
    'deny',
    'paths[0]',
    'calls[0]',
    'commands[0]',
  ])
})

test('globs match whole names and never run away', () => {
  const naive = (pattern: string, text: string) =>
    new RegExp(
      `^${pattern
        .replace(/[.+^${}()|[\]\\]/g, '\\$&')
        .replaceAll('*', '.*')
        .replaceAll('?', '.')}$`,
      's',
    ).test(text)
  const glob = fc.string({ unit: fc.constantFrom('a', 'b', '*', '?', '.'), maxLength: 8 })
  fc.assert(
    fc.property(glob, fc.string({ unit: fc.constantFrom('a', 'b', '.'), maxLength: 10 }), (pattern, text) => {
      expect(matchesGlob(pattern, text)).toBe(naive(pattern, text))
    }),
  )
  expect(matchesGlob(`${'a*'.repeat(30)}b`, 'a'.repeat(3000))).toBe(false)
})

test('argument paths lead to every value they name', () => {
  const args: Json = { a: { b: [1, { c: 'x' }, { c: 'y' }] }, 'odd key': 1 }
  expect(valuesAt(args, 'a.b[0]')).toEqual([1])
  expect(valuesAt(args, 'a.b[*].c')).toEqual(['x', 'y'])
  expect(valuesAt(args, 'odd key')).toEqual([1])
  expect(valuesAt(args, 'a.nope.more')).toEqual([])
  expect(valuesAt(args, 'constructor')).toEqual([])
})
