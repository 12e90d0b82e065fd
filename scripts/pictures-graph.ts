import { Session, sessionGraph } from '../src/session/index.ts'

/** A graph of sessions as SVG: one question, three branches, two of them merged, one left out. Drawn from real lineages. */
export async function graphPicture(): Promise<string> {
  const asked = Session.fromUserMessage('A tagline?')
  const forks = asked.forks(['bold', 'calm', 'plain'])
  const said = ['Agents, traced.', 'You can trace agents.', 'Software.'].map(
    (text, i) => forks[i]?.append({ kind: 'assistant', text }) as Session,
  )
  const [bold, calm] = said as [Session, Session]
  const merged = await bold.merge(calm)
  const chosen = merged.append({ kind: 'assistant', text: 'The first.' })
  return draw([asked, ...forks, ...said, merged, chosen])
}

interface Place {
  readonly session: Session
  readonly x: number
  readonly y: number
}

const [column, row, left, top] = [150, 84, 70, 60]
const lanes = ['bold', 'calm', 'plain']

function draw(sessions: readonly Session[]): string {
  const { edges } = sessionGraph(sessions)
  const depth = new Map<string, number>()
  for (const { id, lineage } of sessions)
    depth.set(id, Math.max(-1, ...lineage.parents.map(parent => depth.get(parent) ?? 0)) + 1)
  const places = new Map(sessions.map(session => [session.id, placeOf(session, depth.get(session.id) ?? 0)]))
  const lines = edges.map(({ from, to }) => line(places.get(from) as Place, places.get(to) as Place))
  const nodes = [...places.values()].map(node)
  const [width, height] = [left * 2 + column * Math.max(...depth.values()), top * 2 + row * 2]
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" font-family="ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="12">
<title>A session graph</title>
<rect width="100%" height="100%" fill="#fbfaf7"/>
${[...lines, ...nodes].join('\n')}
</svg>
`
}

function placeOf(session: Session, depth: number): Place {
  const lane = lanes.indexOf(session.branch)
  return { session, x: left + column * depth, y: top + row * (lane < 0 ? 1 : lane) }
}

function line(from: Place, to: Place): string {
  const middle = (from.x + to.x) / 2
  return `<path d="M${from.x} ${from.y} C${middle} ${from.y} ${middle} ${to.y} ${to.x} ${to.y}" fill="none" stroke="#b9b4a7" stroke-width="2"/>`
}

function node({ session, x, y }: Place): string {
  const { operation, label } = session.lineage
  const last = session.chunks.at(-1)
  const said = last?.kind === 'assistant' || last?.kind === 'user' ? last.text : ''
  const isFork = operation === 'fork'
  const colour = operation === 'merge' ? '#97331f' : isFork ? '#fbfaf7' : '#1f5f63'
  const text =
    isFork || operation === 'merge'
      ? ''
      : `<text x="${x}" y="${y - 16}" text-anchor="middle" fill="#22252a">${said}</text>\n`
  return `<circle cx="${x}" cy="${y}" r="7" fill="${colour}" stroke="${operation === 'merge' ? '#97331f' : '#1f5f63'}" stroke-width="2"/>
${text}<text x="${x}" y="${y + 24}" text-anchor="middle" fill="#5a5f67">${[operation, label].filter(Boolean).join(' ')}</text>`
}
