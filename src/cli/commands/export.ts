import { createWriteStream, existsSync, realpathSync, statSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type Command, Option } from 'commander'
import { collectRows } from '../../evidence/bundle/collect.ts'
import { type BundleOptions, writeBundle } from '../../evidence/bundle/write.ts'
import { toATIF } from '../../evidence/exports/atif.ts'
import { toOpenAIMessages } from '../../evidence/exports/openai.ts'
import { preferencePairs } from '../../evidence/exports/preference.ts'
import { toUIMessages } from '../../evidence/exports/ui.ts'
import { readKeys } from '../../evidence/keys.ts'
import type { SigningKey } from '../../evidence/signature.ts'
import { rowOf, sessionsInside } from '../../run/graph/rows.ts'
import { promptId } from '../../run/prompt.ts'
import type { Session } from '../../session/session.ts'
import type { Store } from '../../store/spec.ts'
import { whoami } from '../ask.ts'
import { examples, type StoreOption, withStore } from '../command.ts'
import { UsageError } from '../errors.ts'
import { findEither, findSession } from '../names.ts'
import type { Output } from '../output.ts'
import { openToRead } from '../runtime.ts'

interface Options extends StoreOption {
  readonly out?: string
  readonly with: 'graph' | 'ancestors' | 'alone'
  readonly sign?: string | true
  readonly format: 'bundle' | SessionFormat
}

export function define(command: Command, output: Output): void {
  command
    .argument('[names...]', 'sessions and runs; everything in the store by default')
    .option('-o, --out <file>', 'write to this file; standard output by default')
    .addOption(
      new Option(
        '--with <what>',
        'what comes with a session: all it is connected with, what it came from, nothing',
      )
        .choices(['graph', 'ancestors', 'alone'])
        .default('graph'),
    )
    .addOption(
      new Option(
        '--format <format>',
        'a bundle with everything; or one session for other programs, pairs from judged branches',
      )
        .choices(['bundle', ...Object.keys(sessionFormats)])
        .default('bundle'),
    )
    .option('--sign [key]', 'sign it with a key made by rath keys')
    .action((names: string[], options: Options) =>
      options.format === 'bundle'
        ? writeAll(names, options, output)
        : convert(names, options.format, options, output),
    )
  withStore(command)
  examples(command, [
    ['rath export last -o run.jsonl', 'the newest run with all its branches, in one file'],
    ['rath export last --sign -o run.jsonl', 'the same, signed'],
    ['rath export > everything.jsonl', 'the whole store'],
    ['rath export last --format openai', 'messages as OpenAI has them; ui, atif and preference too'],
  ])
}

async function writeAll(names: readonly string[], options: Options, output: Output): Promise<void> {
  await using store = await openToRead(options)
  const bundle: BundleOptions = {
    ...(names.length > 0 && (await named(names, store))),
    with: options.with,
    ...(options.sign && { sign: await signingKey(options.sign) }),
  }
  await send(writeBundle(store, bundle), options, output)
  if (options.out !== undefined) {
    output.tell(`Written to ${options.out}. Check it with: rath verify ${options.out}`)
  }
}

async function convert(
  names: readonly string[],
  format: SessionFormat,
  options: Options,
  output: Output,
): Promise<void> {
  const [name, ...more] = names
  if (name === undefined || more.length > 0) {
    throw new UsageError(`--format ${format} is of one session or run; name it, and only it.`)
  }
  await using store = await openToRead(options)
  const text = await sessionFormats[format](await findSession(store, name), store)
  await send([text], options, output)
}

async function send(
  text: Iterable<string> | AsyncIterable<string>,
  options: Options,
  output: Output,
): Promise<void> {
  const lines = Readable.from(text)
  if (options.out === undefined) {
    for await (const line of lines) output.raw(line)
  } else {
    await replace(options.out, lines)
  }
}

/** A file that is there stays as it is until all of the new one is written. */
async function replace(named: string, lines: Readable): Promise<void> {
  const path = existsSync(named) ? realpathSync(named) : named
  if (existsSync(path) && !statSync(path).isFile()) return pipeline(lines, createWriteStream(path))
  const part = `${path}.${process.pid}.part`
  try {
    await pipeline(lines, createWriteStream(part, { flags: 'wx' }))
    await rename(part, path)
  } finally {
    await rm(part, { force: true })
  }
}

async function signingKey(name: string | true): Promise<SigningKey> {
  const { privateKey } = await readKeys(name === true ? undefined : name)
  return { privateKey, by: whoami() }
}

async function named(
  names: readonly string[],
  store: Store,
): Promise<{ sessions?: string[]; runs?: string[] }> {
  const sessions: string[] = []
  const runs: string[] = []
  for (const name of names) {
    const found = await findEither(store, name)
    if (found.run) runs.push(found.run.id)
    else sessions.push(found.session)
  }
  return { ...(sessions.length > 0 && { sessions }), ...(runs.length > 0 && { runs }) }
}

type SessionFormat = 'openai' | 'ui' | 'atif' | 'preference'

/** A session as other programs read it: one JSON document, or for pairs one a line. */
const sessionFormats: Readonly<Record<SessionFormat, (id: string, store: Store) => Promise<string>>> = {
  openai: async (id, store) => json(toOpenAIMessages(await store.sessions.get(id))),
  ui: async (id, store) => json(toUIMessages(await store.sessions.get(id))),
  atif: async (id, store) => {
    const sessions = await withInside(id, store)
    const prompts = await promptsOf([...sessions.values()], store)
    const options = {
      prompt: (digest: string) => prompts.get(digest),
      sessions: (inside: string) => sessions.get(inside),
    }
    return json(toATIF(sessions.get(id) as Session, options))
  },
  preference: async (id, store) => {
    const { rows } = await collectRows(store, { sessions: [id], with: 'graph' })
    const sessions = await Promise.all(rows.map(row => store.sessions.get(row.id)))
    return preferencePairs(sessions)
      .map(pair => `${JSON.stringify(pair)}\n`)
      .join('')
  },
}

function json(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`
}

/** A session and those that were made inside it, as far as the store has them. */
async function withInside(id: string, store: Store): Promise<Map<string, Session>> {
  const sessions = new Map([[id, await store.sessions.get(id)]])
  for (const session of sessions.values())
    for (const inside of session.chunks.flatMap(sessionsInside)) {
      const found = sessions.has(inside) ? undefined : await rowOf(store, inside)
      if (found) sessions.set(inside, await store.sessions.get(inside))
    }
  return sessions
}

async function promptsOf(sessions: readonly Session[], store: Store): Promise<Map<string, string>> {
  const prompts = new Map<string, string>()
  for (const chunk of sessions.flatMap(session => [...session.chunks])) {
    if (chunk.kind !== 'assistant' || chunk.prompt === undefined || prompts.has(chunk.prompt)) continue
    const kept = await store.sessions.get(promptId(chunk.prompt)).catch(() => undefined)
    const text = kept?.chunks.at(0)?.text
    if (text !== undefined) prompts.set(chunk.prompt, text)
  }
  return prompts
}
