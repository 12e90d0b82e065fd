import fc from 'fast-check'
import { expect, test } from 'vitest'
import { globMatcher } from '../../src/sandbox/glob.ts'
import { OutputKeeper } from '../../src/sandbox/output.ts'

const text = (bytes: Uint8Array) => new TextDecoder('utf-8', { fatal: true }).decode(bytes)

test('what is kept is the beginning and the end, however the pieces fall', () => {
  const pieces = fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 20 })
  fc.assert(
    fc.property(pieces, fc.nat(60), (given, limit) => {
      // No continuation bytes, so that nothing is trimmed for the sake of a character.
      const plain = given.map(piece => piece.map(byte => byte & 0x7f))
      const keeper = new OutputKeeper(limit)
      for (const piece of plain) keeper.add(piece)
      const whole = Buffer.concat(plain)
      expect(keeper.truncated).toBe(whole.length > limit)
      const [head, tail] = [Math.ceil(limit / 2), Math.floor(limit / 2)]
      const note = Buffer.from(`\n[… ${whole.length - limit} bytes are left out here …]\n`)
      const expected = keeper.truncated
        ? Buffer.concat([whole.subarray(0, head), note, whole.subarray(whole.length - tail)])
        : whole
      expect(Buffer.from(keeper.bytes()).equals(expected)).toBe(true)
    }),
  )
})

test('a character is kept whole or not at all', () => {
  for (let limit = 0; limit < 40; limit++) {
    const keeper = new OutputKeeper(limit)
    for (const byte of new TextEncoder().encode('aé€🎈'.repeat(10))) keeper.add(Uint8Array.of(byte))
    expect(text(keeper.bytes())).toMatch(/^[aé€🎈]*\n\[… \d+ bytes are left out here …\]\n[aé€🎈]*$/u)
  }
})

test('a glob fits what shells and editors would let it fit', () => {
  const fits = (glob: string, path: string) => globMatcher(glob)(path)
  const yes: [string, string][] = [
    ['*.ts', 'a.ts'],
    ['*.ts', 'x/y/a.ts'],
    ['./src/*.ts', 'src/a.ts'],
    ['src/**', 'src/a/b'],
    ['**/b', 'b'],
    ['a/**/b', 'a/b'],
    ['a/**/b', 'a/x/y/b'],
    ['*.{ts,tsx}', 'a.tsx'],
    ['[!a]?c', 'xbc'],
    ['a+(b).$x', 'a+(b).$x'],
    ['[', '['],
  ]
  const no: [string, string][] = [
    ['*.ts', 'a.tsx'],
    ['src/*.ts', 'src/x/a.ts'],
    ['src/*.ts', 'lib/src/a.ts'],
    ['a?c', 'a/c'],
    ['[!a]', 'a'],
    ['a.c', 'abc'],
  ]
  for (const [glob, path] of yes) expect(fits(glob, path), `${glob} ${path}`).toBe(true)
  for (const [glob, path] of no) expect(fits(glob, path), `${glob} ${path}`).toBe(false)
})

test('a glob fits what an expression made of it would fit, and takes no longer than its length times that of the path', () => {
  // What globs were before; it takes exponential time.
  const patternOf = (glob: string): string => {
    let pattern = ''
    for (let i = 0; i < glob.length; i++) {
      const char = glob[i] as string
      const stars = /^\*+/.exec(glob.slice(i))?.[0].length ?? 0
      const end = char === '[' || char === '{' ? glob.indexOf(char === '[' ? ']' : '}', i + 2) : -1
      if (stars > 1) {
        i += stars - 1
        if (glob[i + 1] === '/') i++
        pattern += glob[i] === '/' ? '(?:.*/)?' : '.*'
      } else if (stars === 1) pattern += '[^/]*'
      else if (char === '?') pattern += '[^/]'
      else if (end >= 0 && char === '[') {
        const inside = glob.slice(i + 1, end)
        pattern += `(?!/)[${inside.replace(/^!/, '^').replace(/[\\\]]/g, '\\$&')}]`
        i = end
      } else if (end >= 0) {
        pattern += `(?:${glob
          .slice(i + 1, end)
          .split(',')
          .map(patternOf)
          .join('|')})`
        i = end
      } else pattern += `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`
    }
    return pattern
  }
  const piece = fc.constantFrom(
    'a',
    'b',
    '/',
    '*',
    '**',
    '**/',
    '?',
    '[ab]',
    '[!a]',
    '[a-c]',
    '{a,b*}',
    '{,ab}',
    '{',
    ']',
    '.',
  )
  const glob = fc.array(piece, { minLength: 1, maxLength: 6 }).map(pieces => pieces.join(''))
  const path = fc.string({ unit: fc.constantFrom('a', 'b', 'c', '/', '.'), maxLength: 8 })
  fc.assert(
    fc.property(glob, path, (given, tried) => {
      const relative = given.replace(/^\.?\//, '')
      const whole = `^${relative.includes('/') ? '' : '(?:.*/)?'}${patternOf(relative)}$`
      expect(globMatcher(given)(tried), `${given} ${tried}`).toBe(new RegExp(whole, 's').test(tried))
    }),
    { numRuns: 3000 },
  )
  const spent = process.cpuUsage()
  for (const hostile of [
    '*a*a*a*a*a*b',
    `${'**/'.repeat(100)}b`,
    `${'{a,*}'.repeat(90)}b`,
    `${'*a'.repeat(249)}b`,
    `${'{,a}'.repeat(120)}b`,
  ]) {
    expect(globMatcher(hostile)('a'.repeat(255)), hostile).toBe(false)
    expect(globMatcher(hostile)('a/'.repeat(2000)), hostile).toBe(false)
  }
  expect(process.cpuUsage(spent).user / 1000).toBeLessThan(20_000)
})
