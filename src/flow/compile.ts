import { RathError } from '../base/errors.ts'
import { type ModelLike, type ResolvedModel, resolveModel } from '../model/resolve.ts'
import { Budget, needsPrices, unknownPrice } from '../run/budget.ts'
import { isBuiltin } from '../tool/builtin/builtin-tools.ts'
import { mcpOriginOf } from '../tool/mcp/origin.ts'
import type { Tool } from '../tool/spec.ts'
import {
  type Manifest,
  type ManifestModel,
  type ManifestModule,
  type ManifestSandbox,
  type Problem,
  printCompiled,
} from './manifest.ts'
import type { Needs } from './needs.ts'
import { classNameOf, cycleError, placesOf, type TreeNode } from './tree.ts'

/** What a tree of workflows needs and what is wrong with it, found offline: nothing is asked, loaded or spent. */
export interface Compiled {
  readonly manifest: Manifest
  /** Every problem at once; empty when the tree can run. */
  validate(): Problem[]
  toString(): string
  toJSON(): { readonly manifest: Manifest; readonly problems: readonly Problem[] }
}

export interface CompiledNode<T> extends TreeNode<T> {
  readonly model?: unknown
  needs?(): Needs
}

export function compileTree<T extends object & CompiledNode<T>>(root: T): Compiled {
  const gathering = new Gathering(root.name)
  for (const { path, module, first, cycle } of placesOf(root)) {
    if (cycle !== undefined) gathering.addProblem(path, cycleError(path, cycle))
    else gathering.add(path, module, first)
  }
  gathering.checkPrices()
  const { manifest, problems } = gathering
  const inspect = Symbol.for('nodejs.util.inspect.custom')
  const print = () => printCompiled(manifest, problems)
  return Object.freeze({
    manifest,
    validate: () => [...problems],
    toString: print,
    toJSON: () => ({ manifest, problems }),
    [inspect]: print,
  })
}

class Gathering {
  readonly problems: Problem[] = []
  readonly #name: string
  readonly #modules: ManifestModule[] = []
  readonly #models = new Map<string, ManifestModel & { usedBy: string[] }>()
  readonly #tools = new Map<Tool, string[]>()
  readonly #sandboxes: ManifestSandbox[] = []
  readonly #memories = new Map<string, string[]>()
  readonly #budgets: Manifest['budgets'][number][] = []
  readonly #unknown: Manifest['unknown'][number][] = []
  /** The model of every place that has one, by path. */
  readonly #asked = new Map<string, ResolvedModel>()

  constructor(name: string) {
    this.#name = name
  }

  add<T>(path: string, module: object & CompiledNode<T>, first: string | undefined): void {
    const { name, description = '' } = module
    const type = classNameOf(module)
    this.#modules.push({ path, type, name, description, ...(first !== undefined && { sameAs: first }) })
    const same = first !== undefined && this.#asked.get(first)
    if (same) this.#asked.set(path, same)
    if (first !== undefined) return
    if ('forward' in module ? typeof module.forward !== 'function' : 'needs' in module)
      this.addProblem(path, forwardMissing(type))
    const needs = this.#attempt(path, () => needsOf(module)) ?? {}
    const { model, tools = [], budget, memories = [], approves, unknown = [] } = needs
    if (model) {
      this.#asked.set(path, model)
      this.#addModel(path, model)
    }
    for (const tool of tools) this.#tools.set(tool, [...(this.#tools.get(tool) ?? []), path])
    this.#addSandbox(path, tools)
    for (const memory of memories) {
      this.#memories.set(memory, [...(this.#memories.get(memory) ?? []), path])
    }
    if (budget) {
      this.#budgets.push({ path, limits: budget })
      this.#attempt(path, () => new Budget(budget))
    }
    for (const reason of unknown) this.#unknown.push({ path, reason })
    const asking = tools.filter(tool => tool.approval !== undefined && tool.approval !== false)
    if (asking.length > 0 && !approves) {
      const names = asking.map(tool => tool.name).join(', ')
      const reason = `who decides about calls of ${names}: give approve to the agent or to the call`
      this.#unknown.push({ path, reason })
    }
  }

  /** A budget of dollars holds for everything below it, and cannot hold what has no price. */
  checkPrices(): void {
    const budgets = this.#budgets.filter(({ limits }) => needsPrices(limits))
    if (budgets.length === 0) return
    for (const [path, model] of this.#asked) {
      const isLimited = budgets.some(
        ({ path: top }) => top === '' || path === top || path.startsWith(`${top}.`),
      )
      const isMissing = this.problems.some(known => known.path === path && known.code === 'unknown-model')
      if (isLimited && !isMissing && model.priced !== true) this.addProblem(path, unknownPrice(model.id))
    }
  }

  addProblem(path: string, error: unknown): void {
    const code = error instanceof RathError ? error.code : 'invalid-argument'
    this.problems.push({ path, code, message: error instanceof Error ? error.message : String(error) })
  }

  get manifest(): Manifest {
    return {
      name: this.#name,
      modules: this.#modules,
      models: [...this.#models.values()],
      tools: [...this.#tools].map(([tool, usedBy]) => {
        const { name, effect, approval = false } = tool
        const server = mcpOriginOf(tool)?.name
        const asks = approval === false ? 'never' : approval === true ? 'always' : 'sometimes'
        return { name, effect, approval: asks, usedBy, ...(server !== undefined && { server }) }
      }),
      mcpServers: serversOf([...this.#tools.keys()]),
      sandboxes: this.#sandboxes,
      memories: [...this.#memories].map(([name, usedBy]) => ({ name, usedBy })),
      budgets: this.#budgets,
      unknown: this.#unknown,
    }
  }

  #addModel(path: string, model: ResolvedModel): void {
    const credentials = this.#attempt(path, () => credentialsOf(model))
    const key = JSON.stringify([model.id, credentials])
    const known = this.#models.get(key)
    if (known) known.usedBy.push(path)
    else
      this.#models.set(key, { id: model.id, usedBy: [path], credentials: credentials ?? this.#lastMissing })
  }

  get #lastMissing(): ManifestModel['credentials'] {
    const { code, message } = this.problems.at(-1) as Problem
    return { status: 'missing', code, reason: message }
  }

  #addSandbox(path: string, tools: readonly Tool[]): void {
    const builtins = tools.map(tool => tool.name).filter(isBuiltin)
    if (builtins.length === 0) return
    const runs = builtins.filter(name => name === 'run_shell_command' || name === 'run_code')
    const needs = [
      ...(runs.length < builtins.length ? (['files'] as const) : []),
      ...(runs.length > 0 ? (['commands'] as const) : []),
    ]
    this.#sandboxes.push({ usedBy: path, needs, tools: builtins })
    this.#unknown.push({ path, reason: 'where it works: its session is placed with session.to(…)' })
  }

  #attempt<R>(path: string, work: () => R): R | undefined {
    try {
      return work()
    } catch (error) {
      this.addProblem(path, error)
      return undefined
    }
  }
}

/** A part that says nothing of its needs asks its model, and what comes of that is not for us to know. */
function needsOf<T>(module: object & CompiledNode<T>): Needs {
  if (module.needs) return module.needs()
  const type = classNameOf(module)
  const needs = modelNeeds(module)
  const budget = needs.model?.budget
  return { ...needs, ...(budget && { budget }), unknown: [`what ${type} is asked and what it answers`] }
}

/** The model in a module's field of that name. */
export function modelNeeds({ model }: { readonly model?: unknown }): Pick<Needs, 'model'> {
  if (model === undefined || model === null) return {}
  return { model: resolveModel(model as ModelLike) }
}

function credentialsOf(model: ResolvedModel): ManifestModel['credentials'] {
  if (!model.credentials) return { status: 'own' }
  const { source, address } = model.credentials()
  return { status: 'found', source, address }
}

function serversOf(tools: readonly Tool[]): Manifest['mcpServers'] {
  const servers = new Map<string, { name: string; at: string; tools: string[] }>()
  for (const tool of tools) {
    const origin = mcpOriginOf(tool)
    if (!origin) continue
    const key = JSON.stringify([origin.name, origin.at])
    const server = servers.get(key) ?? { ...origin, tools: [] }
    server.tools.push(tool.name)
    servers.set(key, server)
  }
  return [...servers.values()]
}

/** A subclass that says nothing about what it does. */
export function forwardMissing(type: string): RathError {
  return new RathError(
    'invalid-argument',
    `${type} has no forward(session) method: write one that returns a session, and call the instance.`,
  )
}
