import { expect, test } from 'vitest'
import { wordsOf } from '../../src/memory/words.ts'

const terms = (text: string) => [...wordsOf(text).terms]

test('forms of an English word are one word, and stop words are none', () => {
  expect(terms('The children went swimming')).toEqual(terms('a child is going to swim'))
  expect(terms('painted, painting, paints')).toEqual(['paint', 'paint', 'paint'])
  expect(terms("what did you do, and why wasn't I there?")).toEqual([])
  expect(terms("Caroline's")).toEqual(terms('Caroline'))
})

test('case, width and accents are set aside', () => {
  expect(terms('CAFÉ Ｃａｆｅ́ café')).toEqual(['cafe', 'cafe', 'cafe'])
  expect(terms('Straße')).toEqual(terms('STRASSE'))
})

test('scripts without spaces give characters and pairs, and other scripts between them stay whole', () => {
  expect(terms('绿茶')).toEqual(['绿', '茶', '绿茶'])
  expect(terms('用v8跑')).toEqual(['用', 'v8', '跑'])
  expect(terms('カレー')).toEqual(['カ', 'レ', 'カレ', 'ー', 'レー'])
  expect(terms('ถนน')).toContain('ถน')
  expect(terms('𠮷野家')).toEqual(['𠮷', '野', '𠮷野', '家', '野家'])
})

test('an identifier is found whole and by its parts', () => {
  expect(terms('parseHttpHeader')).toEqual(['parsehttpheader', 'pars', 'http', 'header'])
  expect(terms('MAX_RETRY_COUNT')).toEqual(['max_retry_count', 'max', 'retri', 'count'])
  expect(terms('XMLParser')).toEqual(['xmlparser', 'xml', 'parser'])
  expect(terms('config.json')).toEqual(['config.json', 'config', 'json'])
})

test('versions, addresses and numbers', () => {
  expect(terms('v1.3')).toEqual(['1.3'])
  expect(terms('1.3')).toEqual(terms('V1.3'))
  expect(terms('v1.2')).not.toEqual(terms('v1.3'))
  expect(terms('2.0.0-beta.1')).toEqual(['2.0.0-beta.1'])
  expect(terms('ada@example.org')[0]).toBe('ada@example.org')
  expect(terms('https://docs.example.org/page')).toContain('docs.example.org')
  expect(terms('3.14 and 2,500')).toEqual(['3.14', '2', '500'])
})

test('Russian is found by its stems', () => {
  expect(terms('встречу')).toEqual(terms('встреча'))
})

test('any text ends: broken pairs, long keys, nothing', () => {
  expect(terms('')).toEqual([])
  expect(terms('\ud800 !?… \u0000')).toEqual([])
  expect(terms('x'.repeat(100_000))).toEqual(['x'.repeat(64)])
})

test('the words alone are in the order of the text, for whoever looks at neighbours', () => {
  expect(wordsOf('the billing service 失败 parseHeader').sequence).toEqual([
    'bill',
    'servic',
    'pars',
    'header',
  ])
})

test('texts that were made to be hard to divide take no longer than others', () => {
  const most = 200_000
  const hard = [`x@${'a.'.repeat(most)}a@b`, `a.${'a'.repeat(most)}'b.c`, `a${'.a1'.repeat(most)}'b.c`]
  for (const text of hard) expect(wordsOf(text).terms.length).toBeGreaterThan(0)
})
