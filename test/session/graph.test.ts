import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type GraphNode, sessionGraph } from '../../src/session/graph.ts'
import { Session } from '../../src/session/session.ts'
import { refusal } from './make.ts'

const node = (id: string, parents: readonly string[], more: object = {}): GraphNode => ({
  id,
  lineage: { parents, operation: 'append', at: 0, extras: {}, ...more },
})

describe('a session graph', () => {
  it('is made of sessions, and shows how each came from others', async () => {
    const start = Session.fromUserMessage('go')
    const [a, b] = start.forks(['a', 'b'])
    const merged = await a.merge(b)
    const graph = sessionGraph([merged, b, a, start])
    expect(graph.nodes.map(each => each.id)).toEqual([start.id, b.id, a.id, merged.id])
    expect(graph.edges).toEqual([
      { from: start.id, to: b.id },
      { from: start.id, to: a.id },
      { from: a.id, to: merged.id },
      { from: b.id, to: merged.id },
    ])
    expect(graph.ancestors(merged.id)).toEqual([a.id, b.id, start.id])
    expect(graph.descendants(start.id)).toEqual([b.id, a.id, merged.id])
    expect(graph.commonAncestor(a.id, b.id)).toBe(start.id)
    expect(graph.commonAncestor(a.id, merged.id)).toBe(a.id)
    expect(JSON.parse(JSON.stringify(graph)).nodes).toHaveLength(4)
  })

  it('refuses a missing parent by name', () => {
    const error = refusal(() => sessionGraph([node('a', []), node('b', ['a', 'gone'])]))
    expect(error.code).toBe('graph-incomplete')
    expect(error.message).toContain('gone (parent of b)')
    expect(error.message).toContain('detach()')
    expect(error.data.missing).toEqual(['gone'])
  })

  it.each([
    ['itself', [node('a', ['a'])], ['a']],
    ['each other', [node('r', []), node('a', ['r', 'b']), node('b', ['a'])], ['a', 'b']],
    [
      'each other, however much hangs behind',
      [node('x', ['y']), node('y', ['c']), node('c', ['d']), node('d', ['c'])],
      ['c', 'd'],
    ],
  ])('refuses sessions that come from %s, and names only those', (_, nodes, names) => {
    const error = refusal(() => sessionGraph(nodes))
    expect(error.code).toBe('graph-cycle')
    expect([...(error.data.sessions as string[])].sort()).toEqual(names)
  })

  it('refuses a session that it does not hold', () => {
    const graph = sessionGraph([node('a', [])])
    for (const ask of [
      () => graph.ancestors('b'),
      () => graph.descendants('b'),
      () => graph.commonAncestor('a', 'b'),
    ]) {
      expect(refusal(ask)).toMatchObject({
        code: 'unknown-session',
        message: 'Session "b" is not in this graph.',
      })
    }
  })

  it('has no common ancestor for unrelated sessions, and may be empty', () => {
    expect(sessionGraph([node('a', []), node('b', [])]).commonAncestor('a', 'b')).toBeUndefined()
    expect(sessionGraph([]).nodes).toEqual([])
  })
})

describe('on any graph', () => {
  /** Each node has some earlier ones as parents, repetitions included. */
  const anyGraph = fc
    .array(fc.array(fc.nat(), { maxLength: 3 }), { minLength: 1, maxLength: 12 })
    .map(rows =>
      rows.map((parents, i) => node(`n${i}`, i === 0 ? [] : parents.map(parent => `n${parent % i}`))),
    )

  function naiveAncestors(nodes: readonly GraphNode[], id: string): Set<string> {
    const parents = nodes.find(each => each.id === id)?.lineage.parents ?? []
    return new Set(parents.flatMap(parent => [parent, ...naiveAncestors(nodes, parent)]))
  }

  it('ancestors, descendants and common ancestors are those of a naive model', () => {
    fc.assert(
      fc.property(anyGraph, fc.nat(), fc.nat(), (nodes, i, j) => {
        const graph = sessionGraph(nodes.toReversed())
        const [a, b] = [i, j].map(n => `n${n % nodes.length}`) as [string, string]
        const above = (id: string) => naiveAncestors(nodes, id)
        expect(new Set(graph.ancestors(a))).toEqual(above(a))
        expect(graph.ancestors(a)).toHaveLength(above(a).size)
        expect(new Set(graph.descendants(a))).toEqual(
          new Set(nodes.map(n => n.id).filter(id => above(id).has(a))),
        )
        const common = [...above(a).add(a)].filter(id => above(b).add(b).has(id))
        const lowest = common.filter(id => !common.some(other => above(other).has(id)))
        if (lowest.length === 0) expect(graph.commonAncestor(a, b)).toBeUndefined()
        else expect(lowest).toContain(graph.commonAncestor(a, b))
      }),
    )
  })

  it('parents come before children', () => {
    fc.assert(
      fc.property(anyGraph, nodes => {
        const order = sessionGraph(nodes.toReversed()).nodes.map(each => each.id)
        for (const { from, to } of sessionGraph(nodes).edges)
          expect(order.indexOf(from)).toBeLessThan(order.indexOf(to))
      }),
    )
  })
})

describe('a large graph', () => {
  it('may be a chain of 30,000', () => {
    const chain = Array.from({ length: 30_000 }, (_, i) => node(`n${i}`, i === 0 ? [] : [`n${i - 1}`]))
    const graph = sessionGraph(chain.toReversed())
    expect(graph.ancestors('n29999')).toHaveLength(29_999)
    expect(graph.descendants('n0').at(-1)).toBe('n29999')
    expect(graph.commonAncestor('n29999', 'n15000')).toBe('n15000')
    const ring = [node('n0', ['n29999']), ...chain.slice(1)]
    expect(refusal(() => sessionGraph(ring)).code).toBe('graph-cycle')
  })

  it('may be a ladder of 1,000 diamonds, which has 2^1000 paths', () => {
    const ladder = [node('t0', [])]
    for (let i = 0; i < 1000; i++) {
      ladder.push(node(`l${i}`, [`t${i}`]), node(`r${i}`, [`t${i}`]), node(`t${i + 1}`, [`l${i}`, `r${i}`]))
    }
    const graph = sessionGraph(ladder)
    expect(graph.ancestors('t1000')).toHaveLength(3000)
    expect(graph.commonAncestor('l999', 'r999')).toBe('t999')
    expect(graph.toDot().split('\n')).toHaveLength(3001 + 4000 + 3)
  })
})

describe('a drawing of a graph', () => {
  const nodes = [
    node('0198aaaa-1', [], { operation: 'create' }),
    node('0198bbbb-2', ['0198aaaa-1'], {
      operation: 'fork',
      label: 'say "hi"\nand [go] \\n',
      by: 'Review/writer',
    }),
    node('0198cccc-3', ['0198aaaa-1', '0198bbbb-2', '0198bbbb-2'], { operation: 'merge' }),
  ]

  it('is safe Mermaid, whatever the labels hold', () => {
    expect(sessionGraph(nodes).toMermaid()).toBe(`flowchart TD
  s0["98aaaa-1 create"]
  s1["98bbbb-2 fork say #quot;hi#quot; and [go] \\n Review/writer"]
  s2["98cccc-3 merge"]
  s0 --> s1
  s0 --> s2
  s1 --> s2
`)
    const html = node('0198dddd-4', [], { operation: 'fork', label: '<img src=x onerror=go()> #1 & `b`' })
    expect(sessionGraph([html]).toMermaid()).toContain(
      '["98dddd-4 fork #lt;img src=x onerror=go()#gt; #35;1 #amp; #96;b#96;"]',
    )
  })

  it('is safe DOT, whatever the labels hold', () => {
    expect(sessionGraph(nodes).toDot()).toBe(`digraph sessions {
  s0 [label="98aaaa-1 create"];
  s1 [label="98bbbb-2 fork say \\"hi\\"\\nand [go] \\\\n Review/writer"];
  s2 [label="98cccc-3 merge"];
  s0 -> s1;
  s0 -> s2;
  s1 -> s2;
}
`)
  })
})
