import { expect, test } from 'vitest'
import { Session } from '../../src/session/session.ts'
import { inPrivateMounts, mountProblem } from '../support/mounts.ts'
import { entry, Project } from './make.ts'

/** Two branches of one question, merged, in a store. */
async function debate() {
  const project = new Project()
  const asked = Session.fromUserMessage('Which colour for the door?')
  const calm = asked
    .fork('calm')
    .append({ kind: 'assistant', text: 'Teal.', usage: { inputTokens: 5, outputTokens: 2 } })
  const bold = asked.fork('bold').append({ kind: 'assistant', text: 'Amber\u001b[2J, of course.' })
  const merged = await calm.merge(bold)
  for (const session of [asked, calm, bold, merged]) project.keep(session)
  return { project, asked, calm, bold, merged }
}

test('a store on a disk that cannot be written to is looked into', context => {
  const problem = mountProblem()
  if (problem) return context.skip(problem)
  const project = new Project()
  const id = project.keep(Session.fromUserMessage('hi'))
  const script = 'mount --bind "$1" "$1"; mount -o remount,ro,bind "$1"; cd "$1"; exec "$2" "$3" ls -q'
  const { output } = inPrivateMounts(script, project.folder, process.execPath, entry)
  expect(output).toBe(`${id}\n`)
})

test('ls shows the newest sessions and their last words, searches, and gives ids for scripts', async () => {
  const { project, merged, bold } = await debate()
  const { stdout } = project.rath('ls', '-n', '2')
  expect(stdout.split('\n')).toHaveLength(4)
  expect(stdout).toMatch(new RegExp(`^SESSION .*\n${merged.id} .* concat of calm, bold\n${bold.id} .* Amber`))
  expect(project.rath('ls', '-q', '-n', '1').stdout).toBe(`${merged.id}\n`)
  expect(project.rath('ls', '--search', 'teal', '--json').stdout).toContain('Teal.')
  expect(project.rath('ls', '--operation', 'merge', '-q').stdout).toBe(`${merged.id}\n`)
  expect(project.json<{ sessions: object[]; more: boolean }>(['ls', '-n', '2'])).toMatchObject({ more: true })
})

test('what models say cannot take over the terminal', async () => {
  const { project, bold } = await debate()
  for (const args of [['ls'], ['show', bold.id], ['show', bold.id, '--full'], ['show', bold.id, '-c', '1']]) {
    const { stdout } = project.rath(...args)
    expect(stdout, args.join(' ')).toContain('Amber')
    expect(stdout, args.join(' ')).not.toContain('\u001b')
  }
})

test('show prints a session, one chunk of it, or JSON', async () => {
  const { project, merged } = await debate()
  const { stdout } = project.rath('show', merged.id)
  expect(stdout).toMatch(/^Session .* \(4 chunks, made by merge, .*, 7 tokens\)\nfrom /)
  expect(stdout).toContain('   1 assistant   Teal.')
  const { id, chunks } = project.json<{ id: string; chunks: { id: string }[] }>(['show', merged.id])
  expect(id).toBe(merged.id)
  expect(chunks[3]?.id).toBe(merged.head)
  expect(project.rath('show', merged.id, '-c', '1').stdout).toContain(chunks[1]?.id as string)
  expect(project.rath('show', merged.id, '-c', '9').stderr).toBe(
    `rath: session ${merged.id} has no chunk 9; it has 4, counted from 0.\n`,
  )
})

test('a name that is nearly an id suggests the nearest ones', async () => {
  const { project, merged } = await debate()
  const mistyped = `${merged.id.slice(0, -3)}zzz`
  const { status, stderr } = project.rath('show', mistyped)
  expect(status).toBe(2)
  expect(stderr).toContain('There is no session and no run')
  expect(stderr).toContain(merged.id)
  expect(project.rath('show', merged.id.slice(0, -2)).status).toBe(0)
  const { error } = JSON.parse(project.rath('diff', mistyped, merged.id, '--json').stderr)
  expect(error.data.nearest).toContain(merged.id)
})

test('graph draws a session with all that it is connected with', async () => {
  const { project, calm, asked, merged } = await debate()
  const other = Session.fromUserMessage('Unrelated.')
  project.keep(other)
  const { nodes, edges } = project.json<{ nodes: { id: string }[]; edges: object[] }>(['graph', calm.id])
  const ids = nodes.map(node => node.id)
  expect(ids).toContain(asked.id)
  expect(ids).toContain(merged.id)
  expect(ids).not.toContain(other.id)
  // The forks themselves were never kept; what was appended to them hangs on what they were forked from.
  expect(edges).toContainEqual({ from: asked.id, to: calm.id })
  expect(edges).toContainEqual({ from: calm.id, to: merged.id })
  expect(project.rath('graph', calm.id).stdout.split('\n')[0]).toContain(merged.id.slice(-8))
  expect(project.rath('graph', '--format', 'dot').stdout).toMatch(/^digraph sessions \{\n(.*\n)+\}\n$/)
  expect(project.rath('graph', '--format', 'mermaid').stdout).toMatch(/^flowchart TD\n/)
})

const review = `import { Agent, Parallel, Sequential } from 'openrath'
import { scripted } from 'openrath/testing'

const agent = name => new Agent('Say it.', { name, model: scripted([name]), builtins: false })
const critics = new Parallel({ style: agent('style'), facts: agent('facts') })
export default new Sequential(agent('writer'), critics, agent('editor'))
`

test('graph of a run draws every session of it, its branches and their merge', () => {
  const project = new Project({ 'review.ts': review })
  project.rath('run', 'review.ts', 'Go.')
  project.rath('run', 'review.ts', 'Go again.')
  const { nodes, edges } = project.json<{
    nodes: { id: string; lineage: { by?: string; label?: string; operation: string } }[]
    edges: { from: string; to: string }[]
  }>(['graph', 'last'])
  const names = new Map(
    nodes.map(({ id, lineage: { by, label, operation } }) => [id, by ?? label ?? operation]),
  )
  expect(edges.map(({ from, to }) => `${names.get(from)} > ${names.get(to)}`).sort()).toEqual([
    'Sequential/1 > Sequential/editor',
    'Sequential/1/facts > Sequential/1',
    'Sequential/1/style > Sequential/1',
    'Sequential/editor > Sequential',
    'Sequential/writer > facts',
    'Sequential/writer > style',
    'create > Sequential/writer',
    'facts > Sequential/1/facts',
    'style > Sequential/1/style',
  ])
  const lines = project.rath('graph', 'last').stdout.trimEnd().split('\n')
  expect(lines[0]).toMatch(/^● \w{8} Sequential Sequential$/)
  expect(lines).toContain('├─┐')
  expect(lines).toContain('├─┘')
  expect(lines).toHaveLength(nodes.length + 2)
})

test('diff shows what two sessions share, and what each said and spent since', async () => {
  const { project, calm, bold, asked } = await debate()
  const { stdout } = project.rath('diff', calm.id, bold.id)
  expect(stdout).toContain(asked.head?.slice(0, 12) as string)
  expect(stdout).toMatch(/Teal\.[\s\S]*Amber/)
  const { shared, ours, theirs } = project.json<{ shared: number; ours: object; theirs: object }>([
    'diff',
    calm.id,
    bold.id,
  ])
  expect(shared).toBe(1)
  expect(ours).toMatchObject({ session: calm.id, chunks: [{ kind: 'assistant' }], usage: { totalTokens: 7 } })
  expect(theirs).toMatchObject({ session: bold.id, usage: { totalTokens: 0 } })
})
