import { RathError, show } from '../base/errors.ts'
import type { JsonObject } from '../base/json.ts'
import type { Provider } from '../model/provider.ts'
import { type ModelChoice, type ResolvedModel, resolveLater } from '../model/resolve.ts'
import type { RetryOptions } from '../model/retry.ts'
import type { ModelAnswer, ModelRequest } from '../model/spec.ts'
import { type About, askAside, BudgetSpent, quiet } from '../run/ask.ts'
import { endedAt, stopCall } from '../run/budget-end.ts'
import { asSession, call } from '../run/call.ts'
import { type CallOptions, currentContext, type RunContext } from '../run/context.ts'
import { cleanDigest } from '../run/entry.ts'
import { PendingSession, type SessionInput } from '../run/pending-session.ts'
import { requestMessages } from '../run/prompt.ts'
import { type Recorder, recorded } from '../run/recorder.ts'
import { withoutCalls } from '../run/transcript.ts'
import type { Chunk, ChunkInput } from '../session/chunk.ts'
import type { Message } from '../session/message.ts'
import { textOf } from '../session/part.ts'
import { Session, sessionOf, valueFrom } from '../session/session.ts'
import { addUsage, noUsage, type Usage } from '../session/usage.ts'
import { appendCopy } from '../session/value.ts'
import type { Store } from '../store/spec.ts'
import { type Candidate, type Candidates, type Choice, candidatesOf, none, readChoice } from './candidate.ts'
import { EmptyWorkflow } from './empty-workflow.ts'
import { ModelPart } from './model-part.ts'
import { classNameOf } from './tree.ts'
import type { Workflow } from './workflow.ts'

export interface SelectorOptions {
  /** Whom to ask; by default what the environment or config file names. */
  readonly model?: ModelChoice
  readonly provider?: Provider
  /** How to choose, put before the conversation. */
  readonly instruction?: string
  readonly retry?: RetryOptions
  /** How often to ask before giving up on answers that are no choice; 3 by default. */
  readonly limit?: number
}

export interface Decision {
  /** One of the workflows that were given, the very object, or an EmptyWorkflow when none fits. */
  readonly choice: Workflow
  readonly reason: string
  /** The session with the `route` chunk on its record. */
  readonly session: Session
}

/** Calling an instance gives the chosen workflow, ready to call. Merges with the class below. */
export interface Selector {
  (session: SessionInput, ...workflows: Candidates): Promise<Workflow>
}

/**
 * Asks a model which of some workflows goes next. Each is known to it by its `description`; `if` and `while` around it stay plain
 * TypeScript.
 *
 * ```ts
 * const next = await selector(session, triage, tech)
 * if (!(next instanceof EmptyWorkflow)) session = await next(session)
 * ```
 *
 * The model chooses by the name of a workflow: its own, the field that the workflow around it holds it in, or what an object calls it, as in
 * `selector(session, { triage, tech })`.
 */
export class Selector extends ModelPart {
  override model: ResolvedModel
  readonly instruction: string
  /** The same object in every request, so that a model driver can keep what it made of it. */
  readonly #instructions: Message
  readonly limit: number
  readonly #retry: RetryOptions | undefined

  constructor(options: SelectorOptions = {}) {
    super()
    const { model, provider, instruction = usualInstruction, retry, limit = 3 } = options
    if (!Number.isSafeInteger(limit) || limit < 1) {
      throw new RathError('invalid-argument', `limit must be a whole number from 1, not ${show(limit)}.`)
    }
    this.model = resolveLater(model ?? provider)
    this.instruction = instruction
    this.#instructions = { role: 'system', content: [{ type: 'text', text: instruction }] }
    this.limit = limit
    this.#retry = retry
  }

  /** The choice, its reason, and the session with both on its record: for code that wants to look before it goes on. */
  async decide(input: SessionInput, ...workflows: Candidates): Promise<Decision> {
    const { candidate, route, session } = await this.#decide(input, workflows)
    return { choice: candidate?.workflow ?? new EmptyWorkflow(), reason: route.reason ?? '', session }
  }

  protected override async called(input: SessionInput, ...workflows: Candidates): Promise<Workflow> {
    const { candidate, ...decided } = await this.#decide(input, workflows)
    return chosen(candidate?.workflow ?? new EmptyWorkflow(), { ...decided, by: this.name })
  }

  async #decide(input: SessionInput, workflows: Candidates) {
    const candidates = candidatesOf(workflows, currentContext()?.layer)
    const { budget } = this.model
    const callee = {
      name: this.name,
      nameIn: ({ layer }: RunContext) => (layer ? this.nameIn(layer) : this.name),
      operation: classNameOf(this),
      ...(budget && { options: { budget } }),
      forward: (given: Session, context: RunContext) =>
        recorded(given, context, recorder => this.#route(recorder, candidates, context)),
    }
    const pending = call(callee, input)
    const session = await pending
    const route = session.chunks.at(-1) as Chunk<'route'>
    const candidate = candidates.find(({ key }) => key === route.choice)
    return { asked: pending.lineage.parents[0] as string, session, route, candidate }
  }

  /** Ends with a route chunk on the record, or throws. */
  async #route(recorder: Recorder, candidates: readonly Candidate[], context: RunContext): Promise<void> {
    const history = withoutCalls(requestMessages(recorder.session))
    const keys = new Set([...candidates.map(({ key }) => key), none])
    const forms = [...requestForms(keys)]
    let usage: Usage | undefined
    let said: string | undefined
    for (let round = 1; round <= this.limit; round++) {
      const spent = await endedAt({ session: recorder.session, place: { route: round } }, context)
      if (spent) return this.#stop(recorder, context, candidates, spent, usage)
      const asked = question(candidates, said)
      const messages: Message[] = [
        this.#instructions,
        ...history,
        { role: 'user', content: [{ type: 'text', text: asked }] },
      ]
      let answer: ModelAnswer
      try {
        answer = await this.#ask(messages, asked, forms, recorder, context)
      } catch (error) {
        if (!(error instanceof BudgetSpent)) throw error
        return this.#stop(recorder, context, candidates, error.message, usage)
      }
      if (answer.usage) usage = addUsage(usage ?? noUsage, answer.usage)
      const choice = readChoice(answer, keys)
      if (choice) return recorder.record(this.#chunk(candidates, choice, usage, answer.model))
      said = textOf(answer.content) || JSON.stringify(answer.content)
    }
    const message = `${this.model.id} was asked ${this.limit} times to choose one of ${[...keys].join(', ')} and did not; it last said ${show(said)}.`
    await recorder.record({ kind: 'error', error: 'output-invalid', message, ...(usage && { usage }) })
    throw new RathError('output-invalid', message, { data: { said: (said ?? '').slice(0, 2000) } })
  }

  /** Asks for JSON of a shape; a model that refuses that is made to call a tool, and one that has no tools writes the key. */
  async #ask(
    messages: readonly Message[],
    asked: string,
    forms: Form[],
    recorder: Recorder,
    context: RunContext,
  ): Promise<ModelAnswer> {
    const whom = context.runtime.models.instead(this.model)
    const { settings, retry = {} } = whom
    for (;;) {
      try {
        const form = forms[0] as Form
        const { tools = [], ...rest } = form
        const request = () => ({ messages, settings, tools, ...rest })
        const about = {
          instruction: this.instruction,
          question: asked,
          settings,
          ...aboutForm(form, recorder.store),
        }
        const asking = { model: quiet(whom), retry: this.#retry ?? retry, about, request }
        const answer = await askAside(asking, recorder, context)
        return { ...answer, model: answer.model ?? whom.id }
      } catch (error) {
        const isRefused = error instanceof RathError && error.code === 'model-rejected'
        if (!isRefused || forms.length === 1) throw error
        // Later rounds need not be refused again.
        forms.shift()
      }
    }
  }

  /** A spent budget chooses nothing, so that a loop around the selector ends with its session. */
  #stop(
    recorder: Recorder,
    context: RunContext,
    candidates: readonly Candidate[],
    spent: string,
    usage?: Usage,
  ): Promise<void> {
    const reason = `The budget is used up: ${spent}.`
    const route = this.#chunk(candidates, { key: none, reason }, usage)
    return stopCall({ error: 'budget-spent', message: reason }, recorder, context, route)
  }

  #chunk(
    candidates: readonly Candidate[],
    { key, reason }: Choice,
    usage: Usage | undefined,
    model = this.model.id,
  ): ChunkInput {
    return {
      kind: 'route',
      candidates: candidates.map(candidate => ({ name: candidate.key, description: candidate.description })),
      choice: key === none ? null : key,
      ...(reason !== undefined && { reason }),
      model,
      ...(usage && { usage }),
    }
  }
}

const usualInstruction =
  'You decide who goes on with the conversation below. You do not answer it. Choose by what is needed next.'

function question(candidates: readonly Candidate[], said: string | undefined): string {
  return [
    'Who goes on? Choose one key:',
    ...candidates.map(({ key, description }) => `${key}: ${description.replace(/\s*\n\s*/g, ' ')}`),
    `${none}: nothing here fits, or nothing is left to do.`,
    'Answer with JSON, {"reason": "…", "choice": "KEY"}, and nothing else.',
    ...(said === undefined
      ? []
      : [`You said ${JSON.stringify(said.slice(0, 500))}, which is not a choice of one key.`]),
  ].join('\n')
}

type Form = Partial<Pick<ModelRequest, 'output' | 'tools' | 'toolChoice'>>

/** A form as the journal knows it. */
function aboutForm({ output, tools, toolChoice }: Form, store: Store): Partial<About> {
  return {
    ...(output && { output }),
    ...(tools && { tools: { digest: cleanDigest(tools, store), descriptions: tools } }),
    ...(toolChoice && { toolChoice }),
  }
}

/** How the choice is held to the keys, the strictest first. */
function requestForms(keys: ReadonlySet<string>): Form[] {
  const schema: JsonObject = {
    type: 'object',
    properties: {
      // Before the choice, so that it is thought of first.
      reason: { type: 'string', description: 'Why, in one sentence.' },
      choice: { type: 'string', enum: [...keys] },
    },
    required: ['reason', 'choice'],
    additionalProperties: false,
  }
  const route = { name: 'route', description: 'Say who goes on.', parameters: schema }
  return [{ output: { name: 'route', schema } }, { tools: [route], toolChoice: { name: route.name } }, {}]
}

/** A choice that was made: about which session, and that session with the choice on its record. */
interface Decided {
  readonly asked: string
  readonly session: Session
  readonly route: Chunk<'route'>
  readonly by: string
}

/**
 * A chosen workflow, the same in everything but this: calling it puts the choice on the record first. It is a view of the workflow
 * and not the object itself, so that neither the workflow nor another choice of it learns of this one.
 */
function chosen(workflow: Workflow, decided: Decided): Workflow {
  return new Proxy(workflow, {
    apply: (target, _, [input, options]: [SessionInput, CallOptions?]): PendingSession =>
      target(routedInput(input, decided), options),
    // Getters and methods run on the workflow itself: private fields are not on the view.
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target)
      const isMethod = typeof value === 'function' && key !== 'constructor' && !Object.hasOwn(target, key)
      return isMethod ? value.bind(target) : value
    },
    set: (target, key, value) => Reflect.set(target, key, value, target),
  })
}

function routedInput(given: SessionInput, decided: Decided): SessionInput {
  const input = asSession(given)
  if (input instanceof Session) return routed(input, decided)
  // What is still being made gets the choice when it is there. Anything else is refused by the workflow in its own words.
  if (!(input instanceof PendingSession)) return input
  const { by } = decided
  return call({ name: by, operation: by, forward: session => routed(session, decided) }, input)
}

function routed(input: Session, { asked, session, route }: Decided): Session {
  if (input.id === asked) return session
  if (input.chunks.at(route.index)?.id === route.id) return input
  return sessionOf(appendCopy(valueFrom(input), route))
}
