import { constants, existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { Command } from 'commander'
import { isAccessible } from '../../base/access.ts'
import { nodeProblem } from '../../base/node-version.ts'
import { platformOf } from '../../base/platform.ts'
import { runSystem } from '../../base/programs.ts'
import { MemoryRegistry } from '../../memory/registry.ts'
import { environmentSays, kindsInEnvironment } from '../../model/environment.ts'
import { projectConfig } from '../../model/project-config.ts'
import { resolveModel } from '../../model/resolve.ts'
import { processSurroundings } from '../../model/surroundings.ts'
import { openStore } from '../../run/open-store.ts'
import { Workspaces } from '../../run/place/workspaces.ts'
import { SandboxRegistry } from '../../sandbox/registry.ts'
import { examples, type JsonOption, type StoreOption, withJson, withStore } from '../command.ts'
import { exit } from '../errors.ts'
import type { Output } from '../output.ts'
import { storeAddress } from '../runtime.ts'
import { plain } from '../text.ts'

interface Options extends StoreOption, JsonOption {}

export function define(command: Command, output: Output): void {
  command.action(async (options: Options) => {
    process.exitCode = await examine(options, output)
  })
  withStore(withJson(command))
  examples(command, [['rath doctor', 'what works here, and what to do about what does not']])
}

async function examine(options: Options, output: Output): Promise<number> {
  const found = await findings(storeAddress(options))
  const isWell = found.every(({ state }) => state !== 'broken')
  if (options.json) output.json({ ok: isWell, findings: found })
  else for (const finding of found) output.print(line(finding, output))
  return isWell ? exit.done : exit.failed
}

const marks = { ok: ['green', '✓'], missing: ['yellow', '–'], broken: ['red', '✗'] } as const

function line({ what, state, found, fix }: Finding, output: Output): string {
  const [style, mark] = marks[state]
  const text = `${output.paint(style, mark)} ${what.padEnd(22)} ${plain(found)}`
  return fix ? `${text}\n  ${' '.repeat(22)} ${output.paint('bold', 'fix:')} ${plain(fix)}` : text
}

/** One thing that was looked at. `missing` is something that not everybody needs; `broken` something that nothing works without. */
interface Finding {
  readonly what: string
  readonly state: 'ok' | 'missing' | 'broken'
  readonly found: string
  readonly fix?: string
}

/** Looks at everything that runs need, in turn. Never throws and never says a key. */
async function findings(store: string): Promise<Finding[]> {
  return [
    node(),
    ...platformLacks(),
    ...keys(),
    ...folderConfig(),
    defaultModel(),
    ...(await sandboxes()),
    ...(await branches()),
    await git(),
    await storeAt(store),
    ...(await memories()),
  ]
}

function node(): Finding {
  const problem = nodeProblem(process.versions.node)
  const found = `Node ${process.versions.node} on ${platformOf().name} ${process.arch}`
  return problem
    ? { what: 'node', state: 'broken', found, fix: problem }
    : { what: 'node', state: 'ok', found }
}

/** What this system does not have, by the name of what needs it. */
export function platformLacks(platform = platformOf()): Finding[] {
  return platform.lacks.map(({ what, instead }) => ({
    what: platform.label,
    state: 'missing',
    found: what,
    fix: instead,
  }))
}

function keys(): Finding[] {
  const env = process.env
  return (['openai', 'anthropic', 'azure'] as const).flatMap((kind): Finding[] => {
    const { apiKey, keyName, baseURL, hostName } = environmentSays(kind, env)
    if (!kindsInEnvironment(env).includes(kind)) {
      return kind === 'azure'
        ? []
        : [{ what: `key ${kind}`, state: 'missing', found: `${keyName} is not set` }]
    }
    const where = baseURL ? ` (address from ${hostName})` : ''
    return [{ what: `key ${kind}`, state: 'ok', found: `${apiKey ? `${keyName} is set` : 'no key'}${where}` }]
  })
}

function defaultModel(): Finding {
  const what = 'default model'
  try {
    const model = resolveModel(undefined, { surroundings: { ...processSurroundings(), warn: () => {} } })
    const from = model.credentials?.()
    return { what, state: 'ok', found: `${model.id}${from ? `, key from ${from.source}` : ''}` }
  } catch (error) {
    const first = (error as Error).message.split(/ Looked at:|\n/)[0] as string
    const fix =
      'export OPENAI_API_KEY=… OPENAI_DEFAULT_MODEL=gpt-5.5, or name a model in the code or with --model'
    return { what, state: 'missing', found: first, fix }
  }
}

/** The config that came with this folder, if there is one. */
function folderConfig(): Finding[] {
  const what = 'config of this folder'
  try {
    const project = projectConfig(processSurroundings())
    if (project === undefined) return []
    const found = project.answer
      ? `${project.path}: ${project.answer}`
      : `${project.path}: nobody has agreed to it`
    const fix = 'rath trust shows what it decides, and asks whether it may'
    return [{ what, state: project.answer ? 'ok' : 'missing', found, ...(!project.answer && { fix }) }]
  } catch (error) {
    return [{ what, state: 'broken', found: (error as Error).message }]
  }
}

async function sandboxes(): Promise<Finding[]> {
  const registry = new SandboxRegistry()
  return Promise.all(
    registry.names.map(async (name): Promise<Finding> => {
      const what = `sandbox ${name}`
      const backend = registry.get(name)
      const { available, reason } = await probed(() => backend.probe?.())
      const { isolation } = backend.capabilities
      const walls = isolation === 'none' ? 'no walls: for code you trust' : `isolation by ${isolation}`
      if (available) return { what, state: 'ok', found: walls }
      return {
        what,
        state: name === 'local' ? 'broken' : 'missing',
        found: 'not available',
        ...(reason && { fix: reason }),
      }
    }),
  )
}

/** How branches get files of their own, the cheapest way first. */
async function branches(): Promise<Finding[]> {
  const what = 'branches of files'
  const workspaces = new Workspaces()
  try {
    const { method, probed: tried } = await workspaces.forks
    const against = tried
      .filter(({ available }) => !available)
      .map(({ name, reason }) => `${name}: ${reason}`)
    const found = `by ${method} in ${workspaces.folder}`
    if (method !== 'copy') return [{ what, state: 'ok', found }]
    return [{ what, state: 'ok', found: `${found}, every file copied (${against.join('; ')})` }]
  } catch (error) {
    const fix = `make ${workspaces.folder} writable, or set OPENRATH_HOME to a folder that is`
    return [{ what, state: 'broken', found: (error as Error).message, fix }]
  } finally {
    await workspaces.close().catch(() => {})
  }
}

async function git(): Promise<Finding> {
  try {
    return { what: 'git', state: 'ok', found: (await runSystem('git', ['--version'])).trim() }
  } catch {
    return {
      what: 'git',
      state: 'missing',
      found: 'not found',
      fix: 'install git to look into kept files with it; openrath itself does not need it',
    }
  }
}

async function storeAt(address: string): Promise<Finding> {
  const what = 'store'
  const path = /^sqlite:(.+)$/.exec(address)?.[1]
  if (path !== undefined && !existsSync(path)) {
    const folder = nearestFolder(dirname(resolve(path)))
    if (isWritable(folder)) return { what, state: 'ok', found: `${path} is made when something is first run` }
    return {
      what,
      state: 'broken',
      found: `${folder} cannot be written to`,
      fix: 'go to another folder, or give --store',
    }
  }
  try {
    await using store = await openStore(address)
    const { rows } = await store.sessions.list({ limit: 1 })
    const last = rows[0] ? `, last session ${new Date(rows[0].updated).toISOString()}` : ', empty'
    if (path !== undefined && !isWritable(path)) {
      return { what, state: 'broken', found: `${store.url} can only be read`, fix: `chmod u+w ${path}` }
    }
    return { what, state: 'ok', found: `${store.url}${await formatOf(path)}${last}` }
  } catch (error) {
    return { what, state: 'broken', found: (error as Error).message }
  }
}

async function formatOf(path: string | undefined): Promise<string> {
  if (path === undefined) return ''
  const { DatabaseSync } = await import('node:sqlite')
  const database = new DatabaseSync(path, { readOnly: true })
  try {
    const { user_version: version } = database.prepare('PRAGMA user_version').get() as {
      user_version: number
    }
    return `, format ${version}`
  } finally {
    database.close()
  }
}

async function memories(): Promise<Finding[]> {
  const registry = new MemoryRegistry()
  return Promise.all(
    registry.names.map(async (name): Promise<Finding> => {
      const { available, reason } = await probed(() => registry.get(name).probe?.())
      const what = `memory ${name}`
      if (available) return { what, state: 'ok', found: 'available' }
      return {
        what,
        state: name === 'local' ? 'broken' : 'missing',
        found: 'not available',
        ...(reason && { fix: reason }),
      }
    }),
  )
}

type Probed = { readonly available: boolean; readonly reason?: string }

async function probed(probe: () => Promise<Probed> | undefined): Promise<Probed> {
  try {
    return (await probe()) ?? { available: true }
  } catch (error) {
    return { available: false, reason: (error as Error).message }
  }
}

function nearestFolder(path: string): string {
  let here = path
  while (!existsSync(here) && dirname(here) !== here) here = dirname(here)
  return here
}

function isWritable(path: string): boolean {
  return isAccessible(path, constants.W_OK)
}
