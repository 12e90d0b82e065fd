import { expect, test } from 'vitest'
import { graphLanes } from '../../src/evidence/graph-lanes.ts'
import { type GraphNode, sessionGraph } from '../../src/session/graph.ts'

/** Sessions named by one word each: `name: parent parent`. */
function graphOf(...lines: string[]) {
  return sessionGraph(
    lines.map((line, at): GraphNode => {
      const [id = '', parents = ''] = line.split(':')
      const operation = parents.trim() === '' ? 'create' : 'append'
      return { id, lineage: { parents: parents.split(' ').filter(Boolean), operation, at, extras: {} } }
    }),
  )
}

const drawn = (graph: ReturnType<typeof graphOf>, options = {}) =>
  graphLanes(graph, { caption: ({ id }) => id, ...options }).map(({ text }) => text)

test('forks part and merges join, the newest on top', () => {
  const graph = graphOf('root', 'a: root', 'b: root', 'c: root', 'm: a b', 'end: m')
  expect(drawn(graph)).toEqual(['● end', '● m', '├─┐', '│ │ ● c', '│ ● │ b', '● │ │ a', '├─┴─┘', '● root'])
  expect(drawn(graph, { ascii: true })).toEqual([
    '* end',
    '* m',
    '+-.',
    '| | * c',
    '| * | b',
    '* | | a',
    "+-'-'",
    '* root',
  ])
})

test('several roots, a lane that ends, and one that is used again', () => {
  expect(drawn(graphOf('a', 'b', 'c: b', 'd: a'))).toEqual(['● d', '│ ● c', '│ ● b', '● a'])
})

test('a line across passes over lanes that go on', () => {
  const graph = graphOf('a', 'b', 'c', 'x: a', 'y: b', 'm: x c', 'n: a m')
  for (const text of drawn(graph)) expect(text).toMatch(/^[●│├─┐┘┴┬┼┤┌└ ]+\w*$/)
})

test('lines are cut to the width, lanes beyond the limit are told, and captions cannot move the cursor', () => {
  const graph = graphOf('root', ...Array.from({ length: 30 }, (_, i) => `n${i}: root`))
  const rows = graphLanes(graph, {
    width: 40,
    lanes: 4,
    caption: ({ id }) => `${id}\n\u001b[2J ${'long '.repeat(20)}`,
  })
  expect(rows.filter(({ id }) => id !== undefined)).toHaveLength(31)
  for (const { text } of rows) {
    expect([...text].length).toBeLessThanOrEqual(40)
    expect(text).not.toContain('\u001b')
  }
  expect(rows.some(({ text }) => text.includes('…●'))).toBe(true)
})

test('10,000 sessions cost linear work, in a chain, as forks of one, and as a ladder of merges', () => {
  const size = 10_000
  const shapes = {
    chain: (i: number) => (i === 0 ? 'n0' : `n${i}: n${i - 1}`),
    star: (i: number) => (i === 0 ? 'n0' : `n${i}: n0`),
    ladder: (i: number) => (i < 2 ? `n${i}` : `n${i}: n${i - 1} n${i - 2}`),
  }
  for (const [name, shape] of Object.entries(shapes)) {
    let captions = 0
    const rows = graphLanes(graphOf(...Array.from({ length: size }, (_, i) => shape(i))), {
      caption: ({ id }) => {
        captions++
        return id
      },
    })
    expect(captions, name).toBe(size)
    expect(rows.length, name).toBeLessThanOrEqual(3 * size)
    const characters = rows.reduce((sum, { text }) => sum + text.length, 0)
    expect(characters, name).toBeLessThanOrEqual(80 * rows.length)
  }
})
