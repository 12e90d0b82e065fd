import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { createTwoFilesPatch } from 'diff'
import { RathError, show } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import type { ReplayReport } from '../run/replay/replay.ts'
import type { Runnable } from '../run/replay/resume.ts'
import { createRuntime, type Runtime, type RuntimeOptions } from '../run/runtime.ts'
import type { Session } from '../session/session.ts'
import { openStore } from '../store/open.ts'
import type { Store } from '../store/spec.ts'
import { type Cassette, cassetteOf, insert, parseCassette, printCassette } from './cassette.ts'

export interface RecordedRunsOptions {
  /** Which runs are recorded anew: `1` for all, or names with commas between; `OPENRATH_RECORD` of the environment by default, else none. */
  readonly record?: string
  /** How the runtime is made that runs are recorded in, and replayed. */
  readonly runtime?: Omit<RuntimeOptions, 'store'>
}

/** Runs that are kept in files beside the tests, one each. */
export interface RecordedRuns {
  /**
   * Replays the run `name` with what was recorded, and gives its session. Rejects when the workflow asks for anything else now, and says at
   * which chunk, what differs and why. When the run is to be recorded, the workflow is run for real instead and the file is written.
   */
  check<Options>(
    name: string,
    workflow: (session: Session, options: Options) => Promise<Session>,
    session: Session,
    options?: Options,
  ): Promise<Session>
}

/** Committed runs as tests: nobody needs a key to run them, and a change of behaviour fails with what differs. */
export function recordedRuns(folder: string, options: RecordedRunsOptions = {}): RecordedRuns {
  const { record = process.env.OPENRATH_RECORD ?? '', runtime = {} } = options
  const names = record.split(',').map(name => name.trim())
  return {
    async check(name, workflow, session, callOptions) {
      checkName(name)
      const path = join(folder, `${name}.json`)
      const run = (given: Session, more: object) => workflow(given, { ...callOptions, ...more } as never)
      const { redact } = runtime
      await using store = await openStore('memory:', redact ? { redact } : {})
      await using place = createRuntime({ ...runtime, store })
      const work = { name, path, run: run as Runnable, session }
      const isToRecord = names.includes('1') || names.includes(name)
      return await (isToRecord ? recordRun : replayRun)(work, place, store)
    },
  }
}

interface Work {
  readonly name: string
  readonly path: string
  readonly run: Runnable
  readonly session: Session
}

async function recordRun(
  { name, path, run, session }: Work,
  runtime: Runtime,
  store: Store,
): Promise<Session> {
  const out = await runtime.run<object, Promise<Session>>(run as never, session, { id: name })
  const isRun = (await store.runs.list()).some(({ id }) => id === name)
  if (!isRun) {
    throw new RathError(
      'invalid-argument',
      `The run ${show(name)} asked nothing of a model, a tool or anybody else, so there is nothing to record.`,
    )
  }
  const temporary = join(dirname(path), `.${newId()}.tmp`)
  await mkdir(dirname(path), { recursive: true })
  await writeFile(temporary, printCassette(await cassetteOf(name, store)))
  await rename(temporary, path)
  return out
}

async function replayRun(
  { name, path, run, session }: Work,
  runtime: Runtime,
  store: Store,
): Promise<Session> {
  const input = await insert(await read(path, name), name, store)
  const given = store.clean(session)
  if (given.state !== input.state) throw otherInput(name, path, store.clean(input), given)
  const { ok, divergence, unasked, error, status, session: out } = await runtime.replay(name, run)
  if (ok && out && unasked[0]) throw notAsked(name, path, unasked)
  if (ok && out) return out
  const why =
    divergence?.message ?? error?.message ?? `It was done when it was recorded, and is ${status} now.`
  throw new RathError('replay-diverged', `${why}\n${howToRecord(name, path)}`, {
    data: { name, path, ...(divergence && { cause: divergence.cause }) },
    ...(error && { cause: error }),
  })
}

async function read(path: string, name: string): Promise<Cassette> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (cause) {
    throw new RathError('recording-missing', `There is no recorded run ${path}. ${command(name)}`, { cause })
  }
  return parseCassette(text, path)
}

function otherInput(name: string, path: string, before: Session, now: Session): RathError {
  const diff = createTwoFilesPatch('recorded', 'now', picture(before), picture(now), undefined, undefined, {
    context: 2,
  })
  return new RathError(
    'replay-diverged',
    `The run ${show(name)} was recorded with another session.\n${diff}\n${howToRecord(name, path)}`,
    { data: { name, path, cause: 'other state' } },
  )
}

function notAsked(name: string, path: string, unasked: ReplayReport['unasked']): RathError {
  const lines = unasked.map(({ kind, by, request }) => `- ${by} asked for ${kind} ${JSON.stringify(request)}`)
  return new RathError(
    'replay-diverged',
    `The run ${show(name)} ends as it was recorded, but what it did then is not asked for any more:\n${lines.join('\n')}\n${howToRecord(name, path)}`,
    { data: { name, path, cause: 'not asked' } },
  )
}

function picture({ chunks, branch }: Session): string {
  const lines = chunks.map(
    chunk => `${chunk.kind}: ${chunk.kind === 'placement' ? chunk.backend : chunk.text}`,
  )
  return [...lines, ...(branch === '' ? [] : [`on branch ${branch}`])].map(line => `${line}\n`).join('')
}

function howToRecord(name: string, path: string): string {
  return `If this is meant, record ${path} again and commit it. ${command(name)}`
}

function command(name: string): string {
  return `To record it, with a key: OPENRATH_RECORD=${name} npm test`
}

function checkName(name: unknown): void {
  if (typeof name === 'string' && /^[\w-][\w.-]*(\/[\w-][\w.-]*)*$/.test(name) && name !== '1') return
  throw new RathError(
    'invalid-argument',
    `A recorded run is named like its file, with letters, digits, dots, dashes and slashes, not ${show(name)}.`,
  )
}
