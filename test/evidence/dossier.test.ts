import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sha256 } from '../../src/base/digest.ts'
import type { Dossier, Statement } from '../../src/evidence/dossier/dossier.ts'
import { dossierOf, dossierOfSessions } from '../../src/evidence/dossier/dossier-of.ts'
import { dossierMarkdown } from '../../src/evidence/dossier/markdown.ts'
import { Session } from '../../src/session/session.ts'
import { openStore } from '../../src/store/open.ts'
import { dossierOfStory, longSession, story } from './dossier-make.ts'

const about = ({ statements }: Dossier, what: string): Statement[] =>
  statements.filter(statement => statement.about === what)

describe('the task of a dossier', () => {
  const branch = (session: Session, name: string) =>
    session
      .fork(name)
      .user(`Item ${name}.`)
      .append({ kind: 'assistant', text: `${name} is done.` })
  const taskOf = async (session: Session) => {
    const { task, subject } = await dossierOfSessions([session])
    return [subject.title, ...task.map(({ text }) => text)]
  }

  it('is what was asked for, and not the first of the items that it was split into', async () => {
    const root = Session.fromUserMessage('Do all.')
    expect(await taskOf(await branch(root, 'a').merge(branch(root, 'b')))).toEqual(['Do all.', 'Do all.'])
  })

  it('is what was asked on the branch that it tells of, or on its branches when nothing else was', async () => {
    expect(await taskOf(branch(Session.fromUserMessage('Do all.'), 'a'))).toEqual([
      'Item a.',
      'Do all.',
      'Item a.',
    ])
    const empty = Session.create('empty')
    expect(await taskOf(await branch(empty, 'a').merge(branch(empty, 'b')))).toEqual(['Item a.', 'Item a.'])
  })
})

describe('the dossier of a run', () => {
  let made: Awaited<ReturnType<typeof story>>
  let dossier: Dossier
  beforeAll(async () => {
    made = await story()
    dossier = await dossierOfStory(made.store, made.run)
  })
  afterAll(() => made[Symbol.asyncDispose]())

  it('is JSON that says what it is, what was asked, and what came of it', () => {
    expect(JSON.parse(JSON.stringify(dossier))).toEqual(dossier)
    expect(dossier).toMatchObject({
      format: 'openrath/dossier',
      version: 1,
      environment: { openrath: '0.1.0' },
    })
    expect(dossier.subject).toMatchObject({ kind: 'run', id: made.run, status: 'done', workflow: 'Mend' })
    expect(dossier.task.map(({ text }) => text)).toEqual([
      'Mend slug.js so that test.js passes, then publish it.\n\nDo not change the test.',
    ])
    expect(dossier.answer?.text).toContain('Version 1.0.1 is published.')
  })

  it('has every chunk of every branch once, each in the session it was made for', () => {
    expect(new Set(dossier.steps.map(({ chunk }) => chunk)).size).toBe(dossier.steps.length)
    expect(dossier.steps.map(({ n }) => n)).toEqual(dossier.steps.map((_, i) => i + 1))
    const names = dossier.steps.map(({ branch }) => dossier.branches[branch]?.name)
    const count = (name: string) => names.filter(other => other === name).length
    expect([count('trunk'), count('careful'), count('quick')]).toEqual([9, 7, 6])
    const callers = new Set(dossier.steps.filter(({ kind }) => kind === 'assistant').map(({ by }) => by))
    expect([...callers]).toEqual(['Mend/writers/careful', 'Mend/writers/quick', 'Mend/publisher'])
  })

  it('says of every branch whether it was adopted, and why', () => {
    const found = Object.fromEntries(dossier.branches.map(branch => [branch.name, branch]))
    expect(found.careful).toMatchObject({ status: 'adopted', steps: 7, stepsInFinal: 7 })
    expect(found.careful?.reason).toBe('Accepted by Mend/writers: careful was picked.')
    expect(found.quick).toMatchObject({ status: 'rejected', steps: 6, stepsInFinal: 0 })
    expect(found.quick?.reason).toMatch(
      /^Left out of the merge in step \d+ \(policy ours, by Mend\/writers\)\. Instead: careful was picked\./,
    )
    expect(found.trunk?.status).toBe('adopted')
  })

  it('draws the graph from forks and merges: each session after those it went on from', () => {
    const name = (id: string) => dossier.sessions.find(node => node.id === id)
    const parallel = dossier.sessions.find(({ operation, steps }) => operation === 'Parallel' && steps > 0)
    const merged = parallel?.after.map(id => dossier.branches[name(id)?.branch ?? -1]?.name)
    expect(merged).toEqual(['careful', 'quick'])
    const rank = new Map(dossier.sessions.map(({ id }, i) => [id, i]))
    for (const { id, after } of dossier.sessions)
      for (const before of after) expect(rank.get(before)).toBeLessThan(rank.get(id) as number)
    expect(dossier.sessions.filter(({ isFinal }) => isFinal)).toHaveLength(1)
  })

  it('shows tools with arguments, exit codes and where they ran', () => {
    const commands = dossier.steps.flatMap(({ tool }) => (tool?.name === 'run_shell_command' ? [tool] : []))
    expect(commands.map(({ exitCode }) => exitCode)).toEqual([1, 0, 1])
    expect(commands[0]?.args).toEqual([{ name: 'cmd', value: { text: 'node test.js' } }])
    expect(commands[0]?.stderr?.text).toContain('got -two  words')
    expect(commands[0]?.ranOn).toMatch(/^local \//)
    expect(dossier.tools.find(({ name }) => name === 'run_shell_command')).toMatchObject({
      calls: 3,
      nonZero: 2,
    })
    expect(dossier.tools.find(({ name }) => name === 'publish')).toMatchObject({
      effect: 'external',
      calls: 1,
    })
  })

  it('says who approved what, when and why', () => {
    expect(dossier.approvals).toMatchObject([
      { tool: 'publish', verdict: 'approved', decidedBy: 'ada', reason: 'The diff is small.' },
    ])
    expect(dossier.approvals[0]?.decidedAt).toBeGreaterThan(0)
  })

  it('lists failures with their attempts', () => {
    expect(dossier.failures).toMatchObject([
      { what: 'command', error: 'exit 1' },
      { what: 'model', error: 'model-rate-limited', attempt: 1, retry: 'after' },
      { what: 'command', error: 'exit 1' },
    ])
  })

  it('adds up tokens and cost by agent and by model, each chunk once', () => {
    const { spending } = dossier
    expect(spending.total).toEqual(made.result.usage)
    expect(spending.agents.map(({ name, answers }) => [name, answers])).toEqual([
      ['Mend/writers/careful', 4],
      ['Mend/writers/quick', 3],
      ['Mend/publisher', 2],
    ])
    expect(spending.models).toHaveLength(3)
    expect(dossier.prompts.map(({ text }) => text?.text)[0]).toMatch(/^You are careful\./)
  })

  it('has the final patch from the recorded patches, and from the trees when they are at hand', async () => {
    expect(dossier.patch).toMatchObject({
      source: 'recorded',
      files: [{ path: 'slug.js', change: 'modified' }],
    })
    expect(about(dossier, 'files').map(({ proven }) => proven)).toEqual([false])
    const whole = await dossierOfStory(made.store, made.run, { workspaces: made.workspaces })
    expect(whole.patch).toMatchObject({ source: 'trees', files: [{ path: 'slug.js', change: 'modified' }] })
    expect(whole.patch.files[0]?.patch?.text).toContain('+exports.slug = text => text.trim()')
    expect(whole.patch.files[0]?.patch?.text).not.toContain('split')
    expect(about(whole, 'files').map(({ proven }) => proven)).toEqual([true])
  })

  it('says what the record does not prove, from what is in it', () => {
    expect(about(dossier, 'sandbox')[0]?.text).toMatch(/^5 calls ran on local, which is no wall/)
    expect(about(dossier, 'effects')[0]?.text).toContain('publish (1 call)')
    expect(about(dossier, 'redacted')[0]?.text).toContain('DEPLOY_TOKEN')
    expect(about(dossier, 'signature')).toMatchObject([{ proven: false }])
    expect(about(dossier, 'digests')).toMatchObject([{ proven: true }])
    expect(JSON.stringify(dossier)).not.toContain('tok-1234567890')
  })

  it('trusts a signature as far as it was checked', async () => {
    const signature = { fingerprint: 'f'.repeat(64), at: 1, by: 'ada', valid: true, trusted: false }
    const signed = await dossierOfStory(made.store, made.run, {
      signatures: [signature, { ...signature, valid: false }],
    })
    expect(about(signed, 'signature').map(({ proven }) => proven)).toEqual([true, false])
    expect(about(signed, 'signature')[0]?.text).toContain('Whose key that is, is not known here.')
  })

  it('is the same for the session that the run led to, but for what only the journal knows', async () => {
    const other = await dossierOfStory(made.store, made.result.id)
    expect(other.steps).toEqual(dossier.steps)
    expect(other.branches).toEqual(dossier.branches)
    expect(other.subject).toMatchObject({ kind: 'session', id: made.result.id })
    expect(other.tools.some(({ effect }) => effect !== undefined)).toBe(false)
  })

  it('leaves out a later run on the same input', async () => {
    const input = await made.store.sessions.get((await made.store.runs.get(made.run)).input as string)
    const later = input.fork({ label: 'later', at: Date.now() + 60_000 }).user('again')
    await made.store.sessions.put(later)
    const again = await dossierOfStory(made.store, made.run)
    expect(again.branches.map(({ name }) => name)).toEqual(dossier.branches.map(({ name }) => name))
  })

  it('reads as Markdown', () => {
    const text = dossierMarkdown(dossier)
    expect(text).toContain('# Mend slug.js so that test.js passes, then publish it.')
    expect(text).toContain('| `quick` | rejected |')
    expect(text).toContain('**approved** `publish` by ada')
    expect(text).toMatch(/```diff\n--- a\/slug\.js/)
  })
})

describe('a dossier of sessions alone', () => {
  it('takes verdicts by session, branch name or chunk, and the last one counts', async () => {
    const root = Session.fromUserMessage('go')
    const [a, b, c] = root
      .forks(['a', 'b', 'c'])
      .map(fork => fork.append({ kind: 'assistant', text: fork.branch })) as [Session, Session, Session]
    const merged = await a.merge([b, c])
    const final = merged.append(
      { kind: 'verdict', verdict: 'accept', subject: b.id },
      { kind: 'verdict', verdict: 'reject', subject: 'b', reason: 'it is wrong', score: 0.1 },
      { kind: 'verdict', verdict: 'accept', subject: c.head as string, reason: 'it is right' },
    )
    const { branches } = await dossierOfSessions([root, a, b, c, merged, final])
    const found = Object.fromEntries(branches.map(({ name, status, reason }) => [name, [status, reason]]))
    expect(found.a).toEqual(['adopted', 'Taken in by the merge in step 5 (policy concat).'])
    expect(found.b).toEqual([
      'rejected',
      'Rejected: it is wrong. Its steps are still part of the final history.',
    ])
    expect(found.c).toEqual(['adopted', 'Accepted: it is right.'])
  })

  it('leaves a branch unjudged that nothing speaks of', async () => {
    const root = Session.fromUserMessage('go')
    const tried = root
      .fork('tried')
      .append({ kind: 'assistant', text: 'no' }, { kind: 'error', error: 'x', message: 'broke' })
    const final = root.append({ kind: 'assistant', text: 'yes' })
    const { branches, integrity } = await dossierOfSessions([root, tried, root.fork('idle'), final])
    expect(branches.map(({ name, status, reason }) => [name, status, reason])).toEqual([
      ['trunk', 'adopted', 'The result is on this line.'],
      ['tried', 'unjudged', 'No verdict names it and nothing took it in. Its last error: x: broke.'],
      ['idle', 'unjudged', 'Nothing was done on it.'],
    ])
    expect(integrity.heads.map(({ session }) => session)).toEqual([final.id, tried.id])
  })

  it('keeps a merged chunk with its branch when the merge took only a part of a long one', async () => {
    const root = Session.fromUserMessage('go')
    const ours = root.fork('ours').append({ kind: 'note', name: 'o' })
    const theirs = root
      .fork('theirs')
      .append(...['1', '2', '3', '4'].map(name => ({ kind: 'note', name }) as const))
    const final = await ours.merge(theirs, { policy: (_, [, side]) => side?.chunks.slice(0, 1) ?? [] })
    const { branches, steps } = await dossierOfSessions([root, ours, theirs, final])
    const found = branches.find(({ name }) => name === 'theirs')
    expect(found).toMatchObject({ status: 'adopted', steps: 4, stepsInFinal: 1 })
    expect(found?.reason).toBe('1 of its 4 steps were taken in by the merge in step 7 (policy function).')
    expect(steps).toHaveLength(7)
  })

  it('counts what a merge left out once, whether its branch is at hand or not', async () => {
    const root = Session.fromUserMessage('go')
    const spend = (fork: Session, cost: number) =>
      fork.append({
        kind: 'assistant',
        text: 'x',
        by: fork.branch,
        usage: { inputTokens: 10, outputTokens: 1, cost },
      })
    const [a, b] = [spend(root.fork('a'), 1), spend(root.fork('b'), 2)]
    const final = await a.merge(b, { policy: 'ours' })
    for (const sessions of [
      [root, a, b, final],
      [root, a, final],
    ]) {
      const { spending } = await dossierOfSessions(sessions)
      expect(spending.total).toEqual(final.usage)
    }
  })

  it('names the first chunk that was altered', async () => {
    const text = longSession(40).toJSONL().replace('make part-3', 'fake part-3')
    const { integrity, statements } = await dossierOfSessions([Session.fromJSONL(text)])
    expect(integrity.ok).toBe(false)
    expect(integrity.problem?.reason).toMatch(/^chunk \d+ \(assistant\) is recorded as/)
    expect(statements[0]).toMatchObject({ about: 'digests', proven: false })
  })

  it('reports memory, drift, open questions, cut output and calls without a result', async () => {
    const session = Session.fromUserMessage('go').append(
      {
        kind: 'memory',
        op: 'recall',
        store: 'local',
        query: 'q',
        hits: [{ id: 'm', text: 'fact', score: 0.5 }],
        injected: 'fact',
      },
      { kind: 'memory', op: 'remember', store: 'local', entries: ['e1'] },
      { kind: 'approval', approval: 'p', tool: 'pay', args: { amount: 5 }, question: 'Pay?' },
      {
        kind: 'assistant',
        toolCalls: [
          { id: '1', name: 'look', args: { at: 'x' } },
          { id: '2', name: 'look', args: { at: 'y' } },
        ],
      },
      {
        kind: 'note',
        name: 'drift',
        data: { from: 'a', to: 'b', files: [{ path: 'notes.md', change: 'modified' }] },
      },
      {
        kind: 'tool-result',
        callId: '1',
        tool: 'look',
        outcome: {
          kind: 'value',
          value: { exitCode: null, signal: 'SIGKILL', stdout: 's', stderr: '', truncated: true },
        },
      },
    )
    const dossier = await dossierOfSessions([session])
    expect(dossier.memory).toMatchObject([
      { op: 'recall', query: 'q', hits: [{ text: { text: 'fact' } }] },
      { op: 'remember', entries: ['e1'] },
    ])
    expect(dossier.approvals).toMatchObject([{ verdict: 'open', tool: 'pay', question: 'Pay?' }])
    expect(dossier.steps[4]?.calls).toEqual([
      { name: 'look', step: 7 },
      { name: 'look', args: [{ name: 'at', value: { text: 'y' } }] },
    ])
    expect(dossier.steps[6]?.tool).toMatchObject({
      args: [{ name: 'at', value: { text: 'x' } }],
      exitCode: null,
      signal: 'SIGKILL',
      drift: ['notes.md'],
    })
    for (const what of ['drift', 'waiting', 'truncated', 'pending'])
      expect(about(dossier, what), what).toHaveLength(1)
  })

  it('cuts what is long, says how long it was and gives the digest of all of it', async () => {
    const text = 'x'.repeat(50_000)
    const session = Session.fromUserMessage('short').append({ kind: 'assistant', text })
    const { answer, task } = await dossierOfSessions([session], { limits: { text: 1_000 } })
    expect(task).toEqual([{ text: 'short' }])
    expect(answer).toEqual({ text: text.slice(0, 1_000), characters: 50_000, digest: sha256(text) })
  })

  it('cuts more of each text the more there is, and never the short ones', async () => {
    const session = longSession(2_000)
    const small = await dossierOfSessions([session], { limits: { total: 100_000 } })
    const whole = await dossierOfSessions([session])
    expect(JSON.stringify(small).length).toBeLessThan(JSON.stringify(whole).length)
    expect(small.task).toEqual([{ text: 'Build every part.' }])
    const longest = Math.max(...small.steps.map(({ tool }) => tool?.stdout?.text.length ?? 0))
    expect(longest).toBe(240)
  })

  it('finds the branches of a merge in a store, also where the merged session itself was never kept', async () => {
    await using store = await openStore('memory:')
    const root = Session.fromUserMessage('go')
    const sides = root.forks(['a', 'b']).map(fork => fork.append({ kind: 'assistant', text: fork.branch }))
    for (const side of sides) await store.sessions.put(side)
    const [a, b] = sides as [Session, Session]
    const final = (await a.merge(b, { policy: 'ours' })).append({ kind: 'note', name: 'after' })
    await store.sessions.put(final)
    const { branches, integrity } = await dossierOf(store, final)
    expect(branches.map(({ name, status }) => `${name} ${status}`).sort()).toEqual([
      'a adopted',
      'b rejected',
      'trunk adopted',
    ])
    expect(integrity.missing.length).toBeGreaterThan(0)
  })

  it('refuses a session that is not there', async () => {
    await expect(dossierOfSessions([])).rejects.toMatchObject({ code: 'unknown-session' })
    const store = await openStore('memory:')
    await expect(dossierOf(store, 'nothing')).rejects.toMatchObject({ code: 'unknown-session' })
    await store.close()
  })
})
