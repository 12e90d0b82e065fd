import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { torture } from '../support/torture.ts'
import { attacks, honest } from './shell-attacks.ts'
import { refusalOf, ShellLab } from './shell-lab.ts'

const lab = new ShellLab()
afterAll(() => lab[Symbol.dispose]())

for (const [way, lines] of Object.entries(attacks)) {
  test(`an allow-list is not walked around by ${way}`, async () => {
    const passed: string[] = []
    for (const line of lines) if ((await refusalOf(line)) === undefined) passed.push(line)
    expect(passed).toEqual([])
  })
}

test('lines that do nothing but what is allowed pass, and do nothing else in any shell', async () => {
  for (const line of honest) {
    expect(await refusalOf(line), line).toBe(undefined)
    expect(await lab.attack(line), line).toEqual([])
  }
})

test('without a policy the attacks succeed, in at least one of the shells of this machine', async t => {
  if (lab.shells.length < 3) return t.skip(`only ${lab.shells.map(String).join(', ') || 'no shell'} is here`)
  const every = torture({ short: 4, full: 1 })
  const lines = Object.values(attacks)
    .flat()
    .filter((_, i) => i % every === 0)
  const harmless: string[] = []
  for (const line of lines) if ((await lab.attack(line)).length === 0) harmless.push(line)
  // The others need another version of bash, or another shell; they are refused all the same.
  if (every === 1)
    console.log(`${lines.length} attacks, without effect here:`, JSON.stringify(harmless, null, 1))
  expect(harmless.length).toBeLessThan(lines.length / 4)
})

test('no line that an allow-list lets pass runs anything else, in any shell of this machine', async t => {
  if (lab.shells.length === 0) return t.skip('no shell is here')
  let passed = 0
  const property = fc.asyncProperty(line, async text => {
    if ((await refusalOf(text)) !== undefined) return
    passed++
    expect(await lab.attack(text), JSON.stringify(text)).toEqual([])
  })
  const numRuns = torture({ short: 200, full: 5000 })
  await fc.assert(property, { numRuns, endOnFailure: true })
  // A fuzzer whose lines are all refused would find nothing.
  expect(passed).toBeGreaterThan(numRuns / 50)
})

const one = <T>(...choices: readonly T[]) => fc.constantFrom(...choices)

const name = one(
  'x',
  'y',
  'a',
  'PATH',
  'IFS',
  'ENV',
  'PS4',
  'a[x]',
  'a[$(evil)]',
  '1',
  '@',
  'HOME',
  'OPTIND',
  '_',
  'f',
)
const quoted = (texts: fc.Arbitrary<string>) =>
  fc.tuple(texts, one('', '', "'", '"', '\\', "$'", '$"')).map(([text, mark]) => {
    if (mark === '\\') return `\\${text}`
    return `${mark}${text}${mark.slice(-1)}`
  })

/** A grammar of what shells do with text: mostly names and expansions where they hurt. */
const { line: grammar } = fc.letrec<Record<'word' | 'expansion' | 'command' | 'line', string>>(tie => ({
  word: fc.oneof(
    {
      weight: 3,
      arbitrary: quoted(
        one(
          'x',
          '.',
          'sub',
          '-v',
          '-p',
          '-n',
          '-r',
          '-a',
          '-x',
          '--',
          '-c',
          '1',
          'PATH',
          'PATH=.',
          'evil',
          './evil',
        ),
      ),
    },
    { weight: 2, arbitrary: quoted(tie('expansion')) },
    quoted(fc.tuple(name, one('=', ':=', '+='), one('.', '1', 'x', 'evil')).map(parts => parts.join(''))),
    one(
      '*',
      '?',
      '[a-z]*',
      '{a,b}',
      '~',
      '-eq',
      '-lt',
      '=',
      '!=',
      ']',
      '!',
      '(',
      ')',
      '%n',
      '123%n',
      '%s',
      '{}',
      ';',
      '\\;',
      '+',
      '#',
      '\\',
    ),
    one("'$(evil)'", "'a[$(evil)]'", "'`evil`'", '"`evil`"', '$(evil)', '<(evil)', '$((evil))'),
    fc.tuple(tie('word'), tie('word')).map(([one, other]) => one + other),
  ),
  expansion: fc.oneof(
    name.map(text => `$${text}`),
    name.map(text => `$\{${text}}`),
    fc
      .tuple(
        name,
        one(':-', '-', ':=', '=', ':+', '#', '%%', '/', '@P', '@E', '^', ':', ':0:', '[', '!'),
        tie('word'),
      )
      .map(([text, operator, word]) => `$\{${text}${operator}${word}}`),
    name.map(text => `$\{!${text}}`),
    name.map(text => `$\{#${text}}`),
    fc.tuple(name, one('', '=1', '+1', '++', '[0]', '?1:2')).map(([text, rest]) => `$((${text}${rest}))`),
    fc
      .tuple(one(1, 2, 3), one('+', '*', '<<', '='))
      .map(([number, operator]) => `$((${number}${operator}${number}))`),
    tie('line').map(text => `$(${text})`),
    tie('line').map(text => `\`${text}\``),
    one('$$', '$?', '$!', '$@', '$*', '$#', '$-', '$_', '$', '$[1]', '$' + '{ evil; }'),
  ),
  command: fc.oneof(
    {
      weight: 4,
      arbitrary: fc
        .tuple(one('ls', 'cat', 'echo', 'ls', 'true', ':'), tie('word'))
        .map(words => words.join(' ')),
    },
    {
      weight: 4,
      arbitrary: fc
        .tuple(
          one(
            'read',
            'read -r',
            'export',
            'readonly',
            'unset',
            'printf',
            'test',
            '[',
            'set',
            'set --',
            'getopts',
            'declare',
            'wait',
            'let',
            'cd',
            'eval',
            'command',
            'exec',
            'trap',
            'env',
            'sh -c',
            'xargs',
            'shift',
            'local',
            'mapfile -t',
            'alias',
            'jobs',
            'type',
            'find',
          ),
          fc.array(tie('word'), { maxLength: 3 }),
          one('', '', ' ]', ' EXIT', ' ls'),
        )
        .map(([builtin, words, end]) => `${builtin} ${words.join(' ')}${end}`),
    },
    fc.tuple(name, tie('word')).map(([text, word]) => `${text}=${word}`),
    fc.tuple(name, tie('word'), tie('command')).map(([text, word, command]) => `${text}=${word} ${command}`),
    fc
      .tuple(name, tie('word'), tie('line'))
      .map(([text, word, body]) => `for ${text} in ${word}; do ${body}; done`),
    fc.tuple(tie('command'), tie('line')).map(([test, body]) => `if ${test}; then ${body}; fi`),
    fc.tuple(name, tie('line')).map(([text, body]) => `echo . | while read ${text}; do ${body}; done`),
    fc
      .tuple(tie('word'), tie('word'), tie('line'))
      .map(([word, pattern, body]) => `case ${word} in ${pattern}) ${body};; esac`),
    fc
      .tuple(tie('command'), one('E', "'E'", '"E"', '\\E', 'E""'), tie('word'))
      .map(([command, end, text]) => `${command} <<${end}\n${text}\nE\n`),
    tie('line').map(body => `( ${body} )`),
    tie('line').map(body => `{ ${body}; }`),
    fc
      .tuple(
        tie('command'),
        one('> /dev/null', '2>&1', '< /dev/null', '>&2', '&> /dev/null', '<<< x', '3<&-'),
      )
      .map(words => words.join(' ')),
    fc
      .tuple(tie('word'), one('', ' -eq ', ' = ', ' =~ ', ' || ', ' > '), tie('word'))
      .map(words => `[[ ${words.join('')} ]]`),
    one(
      'ls',
      'ls',
      'ls; ls',
      './build',
      'evil',
      'function f { evil; }',
      'ls() { evil; }',
      '((PATH=1))',
      'select x in 1; do ls; break; done',
    ),
  ),
  line: fc
    .array(
      fc.tuple(tie('command'), one('; ', ' && ', ' || ', ' | ', '\n', ' & ', ' ; ', ' |& ', ' #\n', ' \\\n')),
      { minLength: 1, maxLength: 3 },
    )
    .map(parts =>
      parts.map(([command, end], i) => (i === parts.length - 1 ? command : command + end)).join(''),
    ),
}))

const seeds = [...Object.values(attacks).flat(), ...honest]
const tokens = [...new Set(seeds.flatMap(text => text.match(/[\w.]+|\$[({\w]*|\s|./gs) ?? []))]

/** A known attack, or an honest line, with a few of its tokens changed, doubled or taken out. */
const mutated = fc
  .tuple(
    fc.constantFrom(...seeds),
    fc.array(fc.tuple(fc.nat(), fc.constantFrom(...tokens), one('replace', 'insert', 'drop', 'swap')), {
      maxLength: 4,
    }),
  )
  .map(([seed, changes]) => {
    const parts: string[] = seed.match(/[\w.]+|\$[({\w]*|\s|./gs) ?? []
    for (const [at, token, change] of changes) {
      const i = at % (parts.length + 1)
      if (change === 'swap') parts.splice(i, 2, ...parts.slice(i, i + 2).reverse())
      else parts.splice(i, change === 'insert' ? 0 : 1, ...(change === 'drop' ? [] : [token]))
    }
    return parts.join('')
  })

const line = fc.oneof(
  { weight: 2, arbitrary: grammar as fc.Arbitrary<string> },
  { weight: 2, arbitrary: mutated },
  {
    weight: 1,
    arbitrary: fc.tuple(mutated, one('; ', '\n', ' | ', ' && '), mutated).map(parts => parts.join('')),
  },
)
