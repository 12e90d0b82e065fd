import { isPlainObject } from '../base/json.ts'
import { type ModelLike, resolveLater } from '../model/resolve.ts'
import { call } from '../run/call.ts'
import type { CallOptions, RunContext } from '../run/context.ts'
import { CallForwardContext, type ForwardContext } from '../run/forward.ts'
import type { PendingSession, SessionInput } from '../run/pending-session.ts'
import type { Session } from '../session/session.ts'
import { type Compiled, compileTree, forwardMissing, modelNeeds } from './compile.ts'
import { addHook, type BeforeForwardHook, type ForwardHook, withHooks } from './hooks.ts'
import { ModelPart } from './model-part.ts'
import type { AgentParam, Needs } from './needs.ts'
import { classNameOf, modelName, modulesOf, printTree, treeToJson, type WorkflowJson } from './tree.ts'

/** What a tree is made of: workflows, and the parts of them that ask a model, such as a Selector. */
export type Module = Workflow | ModelPart

/** Calling an instance runs its `forward`, with hooks, run context and events around it. Merges with the class below. */
export interface Workflow {
  (input: SessionInput, options?: CallOptions): PendingSession
}

/**
 * A layer over sessions. Subclasses write `forward` and hold their parts in fields; instances are called like functions.
 *
 * ```ts
 * class Review extends Workflow {
 *   writer = new Agent('Write a draft.', { model })
 *   critic = new Agent('Criticise it.', { model })
 *   forward(session: Session) { return this.critic(this.writer(session)) }
 * }
 * const out = await new Review()(Session.fromUserMessage('…'))
 * ```
 */
export abstract class Workflow {
  /** What it is for, in words that a Selector can choose by. */
  declare description: string
  /** Its part of the producer path: a name of its own, else what the workflow that calls it holds it as, else its class's name. */
  declare readonly name: string

  constructor() {
    // The instance is a function with this class's prototype: field initialisers of subclasses run on it as on any object. A
    // method, since that has no prototype of its own, and is called a workflow where it cannot be cloned.
    const { workflow } = {
      workflow(input: SessionInput, options?: CallOptions) {
        return call(callee, input, options)
      },
    } as unknown as { workflow: Workflow }
    Object.setPrototypeOf(workflow, new.target.prototype)
    // A function's own name and length would shadow what the class says about itself.
    Reflect.deleteProperty(workflow, 'length')
    Object.defineProperty(workflow, 'name', {
      value: classNameOf(workflow),
      configurable: true,
      writable: true,
    })
    workflow.description = ''
    const callee = new WorkflowCallee(workflow)
    return workflow
  }

  /** What every call of it gets, besides what the caller says. */
  get callOptions(): CallOptions {
    return noOptions
  }

  /** The work. What it takes from `context`, the clock and chance among it, is recorded, and the same in a replay. */
  abstract forward(session: Session, context: ForwardContext): Session | Promise<Session>

  /** Runs before every `forward`, behind the hooks that are there. Dispose what it returns to take the hook off. */
  onBeforeForward(hook: BeforeForwardHook<this>): Disposable {
    return addHook(this, 'before', hook)
  }

  /** Runs after every `forward` that did not fail, behind the hooks that are there. */
  onForward(hook: ForwardHook<this>): Disposable {
    return addHook(this, 'after', hook)
  }

  /** What it holds, by path: in fields, and in the arrays, maps, sets and plain objects of those. */
  namedChildren(): ReadonlyMap<string, Module> {
    return childrenIn(this, isModule)
  }

  /** It and everything below it by path, itself under ''. What is held in several places has several paths. */
  namedModules(): ReadonlyMap<string, Module> {
    return modulesOf<Module>(this)
  }

  /** What makes each agent of the tree the one it is, by path. */
  namedAgents(): ReadonlyMap<string, AgentParam> {
    const agents = new Map<string, AgentParam>()
    for (const [path, module] of this.namedModules()) {
      const agent = module instanceof Workflow ? module.needs().agent : undefined
      if (agent) agents.set(path, agent)
    }
    return agents
  }

  /** Gives everything in the tree that has a model this one, and returns the workflow. */
  to(modelOrProvider: ModelLike): this {
    const model = resolveLater(modelOrProvider)
    for (const module of new Set(this.namedModules().values())) {
      if (module instanceof ModelPart) module.to(model)
      else if ('model' in module && module.model !== undefined) module.model = model
    }
    return this
  }

  /** What the tree needs and what is wrong with it, before a token is spent. */
  compile(): Compiled {
    return compileTree<Module>(this)
  }

  /** What it needs itself, for `compile`. A subclass that can tell more than its fields show says so here. */
  needs(): Needs {
    const { budget, approve } = this.callOptions
    return {
      ...modelNeeds(this as { model?: unknown }),
      ...(budget && { budget }),
      ...(approve && { approves: true }),
      unknown: ['what its forward calls, in which order and how often: it is code'],
    }
  }

  /** What stands between the brackets of its print, before its children: as in torch, for subclasses to say more. */
  extraRepr(): string {
    return modelName(this as { model?: unknown })
  }

  /** The tree in the way of torch. */
  toString(): string {
    return printTree<Module>(this)
  }

  toJSON(): WorkflowJson {
    return treeToJson<Module>(this)
  }

  get [Symbol.toStringTag](): string {
    return classNameOf(this)
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString()
  }
}

const noOptions: CallOptions = Object.freeze({})

function isModule(value: unknown): value is Module {
  return typeof value === 'function' && (value instanceof Workflow || value instanceof ModelPart)
}

/** A workflow as the run layer calls it. */
class WorkflowCallee {
  readonly layer: Workflow

  constructor(workflow: Workflow) {
    this.layer = workflow
  }

  get name(): string {
    return this.layer.name
  }

  get operation(): string {
    return classNameOf(this.layer)
  }

  get options(): CallOptions {
    return this.layer.callOptions
  }

  get agent(): { model: string | undefined; description: string } | undefined {
    const { agent, model } = this.layer.needs()
    return agent && { model: model?.id, description: this.layer.description }
  }

  nameIn(caller: RunContext): string {
    const { name } = this
    const hasOwn = name !== this.operation
    return hasOwn ? name : (nameOf(this.layer, caller) ?? name)
  }

  get outputOf(): ((session: Session) => Promise<unknown>) | undefined {
    const layer = this.layer as Workflow & { outputOf?(session: Session): Promise<unknown> }
    return layer.outputOf?.bind(layer)
  }

  forward(session: Session, context: RunContext): Session | Promise<Session> {
    if (typeof this.layer.forward !== 'function') throw forwardMissing(this.operation)
    return withHooks(this.layer, session, new CallForwardContext(context))
  }
}

/** What each call's layer holds its parts as, for parts that are not in a field: listing them for every call would be quadratic. */
const namesIn = new WeakMap<RunContext, Map<Module, string>>()

/** What the workflow around a call holds another as. */
function nameOf(part: Workflow, caller: RunContext): string | undefined {
  const holder = caller.layer
  if (!(holder instanceof Workflow)) return undefined
  // Most are held in a field, which is found without listing all there is.
  for (const name in holder) {
    if ((holder as unknown as Record<string, unknown>)[name] === part) return name
  }
  const known = namesIn.get(caller)?.get(part)
  if (known !== undefined) return known
  const names = new Map<Module, string>()
  for (const [name, child] of holder.namedChildren()) if (!names.has(child)) names.set(child, name)
  namesIn.set(caller, names)
  return names.get(part)
}

/**
 * The parts that an object holds, by their path: in its fields, and in the arrays, maps, sets and plain objects of those, however
 * deep. Getters are not run, private fields cannot be seen, and nothing else (sessions, models, other people's classes) is entered.
 */
function childrenIn<T extends object>(
  holder: object,
  isChild: (value: unknown) => value is T,
): Map<string, T> {
  const found = new Map<string, T>()
  const around = new Set<unknown>()

  const look = (value: unknown, path: string): void => {
    if (isChild(value)) {
      found.set(path, value)
      return
    }
    // A container that holds itself holds nothing new the second time.
    if (typeof value !== 'object' || value === null || isModel(value) || around.has(value)) return
    around.add(value)
    for (const [name, member] of membersOf(value)) look(member, `${path}.${name}`)
    around.delete(value)
  }

  for (const [name, value] of fieldsOf(holder)) look(value, name)
  return found
}

/** What a plain container holds; nothing of anything else. */
function membersOf(value: object): Iterable<readonly [unknown, unknown]> {
  if (Array.isArray(value)) return value.entries()
  if (value instanceof Map) return value.entries()
  if (value instanceof Set) return [...value].entries()
  return isPlainObject(value) ? fieldsOf(value) : []
}

function* fieldsOf(holder: object): Generator<readonly [string, unknown]> {
  for (const name of Object.keys(holder)) {
    const field = Object.getOwnPropertyDescriptor(holder, name)
    if (field && 'value' in field) yield [name, field.value]
  }
}

/** A model may be a plain object too, and what it holds is its own business. */
function isModel(value: object): boolean {
  return 'answer' in value && typeof value.answer === 'function'
}
