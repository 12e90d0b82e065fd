import { expect, test } from 'vitest'
import { indexWords, queryWords, snippetOf } from '../../src/store/words.ts'

test('words are what stands between everything that is neither letter nor digit', () => {
  expect(queryWords('foo_bar-baz.qux(42) "AND" x')).toEqual(['foo', 'bar', 'baz', 'qux', '42', 'and', 'x'])
  expect(queryWords(' ,;*"()^{}- ')).toEqual([])
})

test('case, width, ligatures and European accents do not tell words apart', () => {
  for (const [one, other] of [
    ['CAFÉ', 'cafe'],
    ['cafe\u0301', 'café'],
    ['ｆｕｌｌ', 'full'],
    ['ﬁne', 'fine'],
    ['Ά', 'α'],
    ['한국', '한국'.normalize('NFD')],
  ] as const) {
    expect(queryWords(one)).toEqual(queryWords(other))
  }
})

test('every word of a query is among the words of a text that holds it', () => {
  const text = '我爱机器学习 and สวัสดี हिन्दी カタカナ 𠮷野家 e\u0323\u0302'
  const indexed = new Set(indexWords(text).split(' '))
  for (const part of ['机器', '学', '爱机器学习', 'สวัส', 'हिन्दी', 'カナ', '𠮷野', '𠮷', 'and', 'ệ']) {
    for (const word of queryWords(part)) expect(indexed.has(word), `${part}: ${word}`).toBe(true)
  }
  expect(queryWords('学机').every(word => indexed.has(word))).toBe(false)
})

test('a word longer than any word is told apart by its beginning', () => {
  const [word] = queryWords('a'.repeat(500))
  expect(word).toBe('a'.repeat(64))
  expect(indexWords('a'.repeat(90))).toBe(word)
})

test('a snippet shows the first match on one line, and says where it left something out', () => {
  const text = `${'before '.repeat(50)}\n\tthe   needle\n${'after '.repeat(50)}`
  const snippet = snippetOf(text, ['needle'])
  expect(snippet).toMatch(/^….*the needle after.*…$/)
  expect(snippet.length).toBeLessThanOrEqual(162)
  expect(snippetOf('a needle', ['needle'])).toBe('a needle')
  expect(snippetOf('nothing of it', ['needle'])).toBe('nothing of it')
  expect(snippetOf('É'.repeat(300), ['e']).isWellFormed()).toBe(true)
  expect(snippetOf('😀'.repeat(300), ['x']).isWellFormed()).toBe(true)
})
