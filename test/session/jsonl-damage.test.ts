import { describe, expect, it } from 'vitest'
import { RathError } from '../../src/base/errors.ts'
import { Session } from '../../src/session/session.ts'
import type { VerificationProblem } from '../../src/session/verify.ts'
import { calls, result, user } from './make.ts'

const session = Session.create('empty', undefined, { at: 1 })
  .fork('a')
  .append(user('é 😀 \u2028 \ud800'), calls('c1'), result('c1', { n: [1.5, null] }))
  .detach({ at: 1, by: 'ann' })
const text = session.toJSONL()
const bytes = Buffer.from(text)

interface Outcome {
  readonly read?: Session
  readonly refused?: RathError
  readonly damage: readonly VerificationProblem[]
}

function read(content: string): Outcome {
  const damage: VerificationProblem[] = []
  try {
    return { read: Session.fromJSONL(content, { onDamage: problem => damage.push(problem) }), damage }
  } catch (error) {
    if (error instanceof RathError) return { refused: error, damage }
    throw error
  }
}

describe('a file cut off at any byte', () => {
  const firstLine = bytes.indexOf('\n')

  it('is read as far as its whole lines go, and says so twice', () => {
    for (let end = firstLine; end < bytes.length - 1; end++) {
      const cut = bytes.subarray(0, end)
      const { read: survived, damage } = read(cut.toString('utf8'))
      const whole = cut.toString('utf8').split('\n')
      // A last line may be whole without its line feed.
      if (!isJson(whole.at(-1) as string)) whole.pop()
      expect(survived?.length).toBe(whole.length - 1)
      expect(survived?.head).toBe(survived?.length ? session.chunks.at(survived.length - 1)?.id : undefined)
      expect(damage).toHaveLength(1)
      expect(survived?.verify()).toMatchObject({ ok: false, problem: damage[0] })
    }
  })

  it('names the line it breaks off in, or that the end is missing', () => {
    const lines = text.split('\n')
    expect(read(`${lines.slice(0, 2).join('\n')}\n${lines[2]?.slice(0, 20)}`).damage[0]?.reason).toBe(
      'the file breaks off in line 3; everything before it was read',
    )
    expect(read(`${lines.slice(0, 3).join('\n')}\n`).damage[0]?.reason).toContain('the end record is missing')
  })

  it('goes on where it was cut: what was read can be appended to and written whole', () => {
    const { read: survived } = read(text.slice(0, text.indexOf('"tool-result"')))
    const whole = (survived as Session).append(result('c1', { n: [1.5, null] }))
    expect(whole.head).toBe(session.head)
    expect(Session.fromJSONL(whole.toJSONL()).verify().ok).toBe(true)
  })

  it('is refused when not even its first line is whole', () => {
    for (let end = 0; end < firstLine; end++) {
      expect(read(bytes.subarray(0, end).toString('utf8')).refused?.code).toBe('format-malformed')
    }
  })

  it('is whole without its last line feed', () => {
    expect(read(text.trimEnd())).toMatchObject({ damage: [] })
  })
})

describe('a file with one byte changed', () => {
  /** What reads as the very same records: the case of an escape, and white space at a line’s end. */
  const isHarmless = (content: string) => {
    const { read: same } = read(content)
    return same?.toJSONL() === text && content.trimEnd().toLowerCase() === text.trimEnd().toLowerCase()
  }

  it.each([
    ['its lowest bit', (byte: number) => byte ^ 1],
    ['its case bit', (byte: number) => byte ^ 0x20],
    ['its highest bit', (byte: number) => byte ^ 0x80],
    ['a zero', () => 0x30],
    ['a space', () => 0x20],
    ['a quote', () => 0x22],
    ['a line feed', () => 0x0a],
  ])('by %s is found at every place', (_, change) => {
    for (let i = 0; i < bytes.length; i++) {
      const changed = Buffer.from(bytes)
      changed[i] = change(bytes[i] as number)
      const content = changed.toString('utf8')
      if (content === text) continue
      const { read: accepted } = read(content)
      const found = accepted === undefined || !accepted.verify().ok
      if (!found && !isHarmless(content))
        expect.fail(`byte ${i} was changed and nobody saw it: ${content.split('\n')}`)
    }
  })

  it('is reported where the record around the chunks was changed', () => {
    const reasons = [
      text.replace('"by":"ann"', '"by":"bob"'),
      text.replace('"branch":"a"', '"branch":"b"'),
      text.replace('"length":3', '"length":4'),
      text.replace(/"session":"(.)/, (_, first) => `"session":"${first === '0' ? 1 : 0}`),
    ].map(content => read(content).damage[0]?.reason)
    expect(reasons).toEqual([
      'line 1: the session record was altered',
      'line 1: the session record was altered',
      'line 5: the end record was altered',
      'line 5: the end record was altered',
    ])
  })
})

describe('a file with whole lines changed', () => {
  const lines = text.trimEnd().split('\n')
  const problem = (changed: string[]) => read(`${changed.join('\n')}\n`).read?.verify()

  it('is found out when a chunk is missing, doubled or moved', () => {
    expect(problem(lines.toSpliced(3, 1))).toMatchObject({
      ok: false,
      problem: { reason: expect.stringContaining('ended with 3') },
    })
    expect(problem(lines.toSpliced(2, 1))).toMatchObject({ ok: false, checked: 1, problem: { index: 1 } })
    expect(problem(lines.toSpliced(2, 0, lines[2] as string))).toMatchObject({
      ok: false,
      problem: { index: 2 },
    })
    const [opening, first, second, third, end] = lines as [string, string, string, string, string]
    expect(problem([opening, second, first, third, end])).toMatchObject({
      ok: false,
      checked: 0,
      problem: { index: 0 },
    })
  })

  it('is found out when the end belongs to another session', () => {
    const other = Session.create('empty').toJSONL().trimEnd().split('\n')[1] as string
    expect(problem([...lines.slice(0, -1), other])?.problem?.reason).toContain('names another session')
  })
})

function isJson(line: string): boolean {
  try {
    JSON.parse(line)
    return true
  } catch {
    return false
  }
}
