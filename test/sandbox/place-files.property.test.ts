import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Places } from '../../src/run/place/places.ts'
import { filesIn } from '../../src/run/place/session-files.ts'
import type { Sandbox } from '../../src/sandbox/spec.ts'
import { Session, withFiles } from '../../src/session/session.ts'
import { torture } from '../support/torture.ts'
import { temporaryFolder } from './make.ts'

/** What a folder holds: path to text. */
type Model = ReadonlyMap<string, string>

interface Branch {
  readonly session: Session
  readonly files: Model
}

type Step =
  | { do: 'write'; on: number; path: string; text: string }
  | { do: 'command'; on: number; path: string; text: string }
  | { do: 'remove'; on: number; path: string }
  | { do: 'fork'; on: number }
  | { do: 'rewind'; on: number; to: number }
  | { do: 'merge'; on: number; with: number }
  | { do: 'end of run' }

const paths = ['a', 'b', 'd/x', 'd/y', 'd/e/z']
const on = fc.nat(50)
const path = fc.constantFrom(...paths)
const text = fc.constantFrom('1', '2', '3')
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('write' as const), on, path, text }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('command' as const), on, path, text }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('remove' as const), on, path }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('fork' as const), on }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('rewind' as const), on, to: on }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('merge' as const), on, with: on }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('end of run' as const) }) },
)

test('through any edits, forks, merges and rewinds, every session has the files that a model in memory says', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 14 }), async steps => {
      using folder = temporaryFolder()
      const project = join(folder.path, 'project')
      mkdirSync(project)
      writeFileSync(join(project, 'a'), '0')
      const places = new Places({ workspaces: join(folder.path, 'kept') })
      try {
        await new Walk(places, project).take(steps)
      } finally {
        await places.close()
      }
    }),
    { numRuns: torture({ short: 12, full: 60 }) },
  )
})

const laneOf = ({ lineage }: Session) => lineage.lane ?? ''

class Walk {
  readonly #places: Places
  readonly #branches: Branch[]
  /** Every session that was ever made. */
  readonly #past: Branch[] = []
  /** What lies in the folders that are laid out, by lane: sessions on one lane work in one folder, whatever each knows of it. */
  readonly #folders = new Map<string, Model>([['', new Map([['a', '0']])]])

  constructor(places: Places, project: string) {
    this.#places = places
    this.#branches = [
      {
        session: withFiles(Session.fromUserMessage('go').to('local', project), filesIn(places)),
        files: this.#folders.get('') as Model,
      },
    ]
  }

  async take(steps: readonly Step[]): Promise<void> {
    for (const next of steps) {
      await this.#take(next)
      this.#past.push(...this.#branches)
    }
    for (const branch of this.#branches) {
      const { sandbox } = await this.#places.open({ session: branch.session })
      expect(await listed(sandbox)).toEqual(new Map(this.#layOut(branch)))
    }
  }

  /** The folder of a branch, which begins with what the first session that needs it knows. */
  #layOut({ session, files }: Branch): Model {
    const lane = laneOf(session)
    if (!this.#folders.has(lane)) this.#folders.set(lane, files)
    return this.#folders.get(lane) as Model
  }

  async #take(step: Step): Promise<void> {
    if (step.do === 'end of run') {
      for (const lane of [...this.#folders.keys()]) if (lane !== '') this.#folders.delete(lane)
      return this.#places.leave('r')
    }
    const at = step.on % this.#branches.length
    const branch = this.#branches[at] as Branch
    const { session } = branch
    switch (step.do) {
      case 'write':
      case 'command':
      case 'remove': {
        const files = new Map(this.#layOut(branch))
        if (step.do === 'remove') files.delete(step.path)
        else files.set(step.path, step.text)
        this.#branches[at] = { session: await this.#call(session, step), files }
        this.#folders.set(laneOf(session), files)
        return
      }
      case 'fork':
        this.#branches.push({ session: session.fork(), files: branch.files })
        return
      case 'rewind': {
        const line = this.#past.filter(one => isBefore(one.session, session))
        const to = line[step.to % Math.max(1, line.length)]
        if (to) this.#branches.push({ session: session.rewind(to.session.length - 1), files: to.files })
        return
      }
      case 'merge':
        return this.#merge(at, step.with % this.#branches.length)
    }
  }

  /** Three ways by path from the files that both began with; ours wins where both changed one. */
  async #merge(at: number, other: number): Promise<void> {
    const [ours, theirs] = [this.#branches[at], this.#branches[other]] as [Branch, Branch]
    const { ancestor } = await ours.session.diff(theirs.session)
    const base = this.#past.find(({ session }) => session.head === ancestor)?.files
    if (at === other || base === undefined) return
    const session = await ours.session.merge(theirs.session, { onConflict: 'ours' })
    const lane = laneOf(session)
    const now = this.#folders.get(lane)
    const works = ({ session: side }: Branch) => laneOf(side) === lane
    const sides = [ours, theirs].map(side => (works(side) && now ? now : side.files))
    const all = now && ![ours, theirs].some(works) && !isSame(now, base) ? [now, ...sides] : sides
    const files = all.reduce((merged, side) => threeWays(base, merged, side))
    this.#branches[at] = { session, files }
    if (now) this.#folders.set(lane, files)
  }

  async #call(session: Session, step: Extract<Step, { path: string }>): Promise<Session> {
    const capture = this.#places.capture({ session, run: 'r' })
    await capture.run(async () => {
      const sandbox = await capture.sandbox()
      if (step.do === 'write') await sandbox.files.write(step.path, step.text)
      else if (step.do === 'command') {
        const command = `mkdir -p "$(dirname ${step.path})" && printf %s ${step.text} > ${step.path}`
        expect((await sandbox.exec(command).result).exitCode).toBe(0)
      } else if (await sandbox.files.stat(step.path)) await sandbox.files.remove(step.path)
    })
    const { drift, ...evidence } = await capture.end()
    expect(drift).toBeUndefined()
    return session.append({
      kind: 'tool-result',
      callId: 'c',
      tool: step.do,
      outcome: { kind: 'value', value: null },
      ...evidence,
    })
  }
}

function threeWays(base: Model, ours: Model, theirs: Model): Model {
  const merged = new Map(ours)
  for (const path of paths) {
    if (ours.get(path) !== base.get(path) || theirs.get(path) === base.get(path)) continue
    const text = theirs.get(path)
    if (text === undefined) merged.delete(path)
    else merged.set(path, text)
  }
  return merged
}

function isSame(one: Model, other: Model): boolean {
  return paths.every(path => one.get(path) === other.get(path))
}

function isBefore(earlier: Session, later: Session): boolean {
  const last = earlier.chunks.at(-1)
  return last !== undefined && later.chunks.at(last.index) === last
}

async function listed({ files }: Sandbox): Promise<Model> {
  const found = new Map<string, string>()
  const { matches } = await files.search({ glob: '**/*' })
  for (const { path } of matches) found.set(path, new TextDecoder().decode(await files.read(path)))
  return found
}
