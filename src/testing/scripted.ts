import { cancelledError } from '../base/abort.ts'
import { RathError, show } from '../base/errors.ts'
import { canonicalJson, type Json, type Problem, refuse, toJson } from '../base/json.ts'
import { modelError } from '../model/errors.ts'
import { sleep } from '../model/retry.ts'
import type { FinishReason, Model, ModelAnswer, ModelContext, ModelRequest } from '../model/spec.ts'
import { type AnswerPart, callsIn, type ToolCallPart } from '../session/part.ts'
import type { Usage } from '../session/usage.ts'
import { tell } from './deltas.ts'

/** One answer of a script: its text, or everything about it. */
export type Answer = string | AnswerScript

export interface AnswerScript {
  readonly text?: string
  readonly reasoning?: string
  /** Ids are made up where they are left out: `call-1`, `call-2` … over the whole script. */
  readonly toolCalls?: readonly { readonly name: string; readonly args?: Json; readonly id?: string }[]
  /** What is left out is counted: a token for every four characters. */
  readonly usage?: Partial<Usage>
  /** The text in the pieces it streams in; the whole text is one piece by default. */
  readonly deltas?: readonly string[]
  /** Wait this long before answering; an abort ends the wait. */
  readonly delayMs?: number
  /** Fail instead, after the deltas: with this error, or as a provider that sent this status would. */
  readonly error?: Error | string | ScriptedFault
  /** `tool-calls` or `stop` by default. */
  readonly finishReason?: FinishReason
}

export interface ScriptedFault {
  readonly status?: number
  readonly message?: string
  readonly retryAfterMs?: number
}

export type Script =
  | readonly Answer[]
  /** `n` counts the requests, from 0; in a resumed run also those whose answer is on record. */
  | ((request: ModelRequest, n: number) => Answer | Promise<Answer>)

export interface ScriptedOptions {
  /** The id that chunks record; `scripted/model` by default. */
  readonly id?: string
  readonly sleep?: (ms: number, signal?: AbortSignal) => Promise<void>
}

/** A model that says what it is told to: the same every time, without a key or a network. */
export interface ScriptedModel extends Model {
  /** Every request it saw, in order. */
  readonly calls: readonly ModelRequest[]
  /** Throws unless every answer of the script was asked for. */
  done(): void
}

export function scripted(script: Script, options: ScriptedOptions = {}): ScriptedModel {
  return new Scripted(script, options)
}

class Scripted implements ScriptedModel {
  readonly id: string
  readonly calls: ModelRequest[] = []
  readonly #script: Script
  readonly #sleep: NonNullable<ScriptedOptions['sleep']>
  /** How many answers of it were given by another process, and are not given again. */
  #before = 0
  /** What runs have had of it, here and before, each answer as `written`. */
  readonly #had = new Map<string, string[]>()
  #toolCalls = 0

  constructor(script: Script, { id = 'scripted/model', sleep: pause = sleep }: ScriptedOptions) {
    if (typeof script !== 'function') check(script)
    this.id = id
    this.#script = script
    this.#sleep = pause
  }

  /** A list that names a cost anywhere means its costs; what a function will say is not known. */
  get priced(): boolean {
    if (typeof this.#script === 'function') return true
    return this.#script.some(answer => typeof answer !== 'string' && answer.usage?.cost !== undefined)
  }

  async answer(request: ModelRequest, context: ModelContext): Promise<ModelAnswer> {
    const { signal, onDelta, run } = context
    if (signal.aborted) throw cancelledError(signal)
    this.#catchUp(request, run)
    const n = this.#before + this.calls.push(request) - 1
    const answer = await this.#next(request, n)
    const script = typeof answer === 'string' ? { text: answer } : answer
    if (typeof this.#script === 'function') check([answer])
    if (script.delayMs) await this.#sleep(script.delayMs, signal)
    if (signal.aborted) throw cancelledError(signal)
    const content = this.#content(script)
    if (run) this.#hadIn(run.id).push(written(content))
    if (onDelta) tell(content, onDelta, script.deltas)
    if (script.error !== undefined) throw this.#fault(script.error)
    return {
      content,
      finishReason: script.finishReason ?? (script.toolCalls?.length ? 'tool-calls' : 'stop'),
      usage: usageOf(request, content, script.usage),
    }
  }

  done(): void {
    const played = this.#before + this.calls.length
    if (typeof this.#script === 'function' || played >= this.#script.length) return
    throw new RathError(
      'script-mismatch',
      `${this.id} has ${this.#script.length} scripted answers and was asked ${played} times. The next one, never asked for, is ${picture(this.#script[played])}.`,
    )
  }

  /**
   * A script is played once, in the order asked, whatever process asks. What a resumed run has on record, or a session shows to a script that was
   * never asked, was given by another one, as far as the script begins with it.
   */
  #catchUp({ messages }: ModelRequest, run: ModelContext['run']): void {
    const had = run ? this.#hadIn(run.id) : []
    const elsewhere = without(run?.recorded() ?? [], had)
    if (typeof this.#script === 'function') {
      this.#before += elsewhere.length
      this.#toolCalls += elsewhere.reduce((sum, { content }) => sum + callsIn(content).length, 0)
      had.push(...elsewhere.map(({ content }) => written(content)))
      return
    }
    const played = this.#before + this.calls.length
    const left = this.#script.slice(played)
    const recorded = elsewhere.map(({ content }) => written(content))
    const given = begunBy(left, recorded) || (played === 0 ? shownOf(left, messages) : 0)
    for (const answer of left.slice(0, given)) {
      if (typeof answer !== 'string') this.#toolCalls += answer.toolCalls?.length ?? 0
      if (!isFault(answer)) had.push(scriptWritten(answer))
    }
    this.#before += given
  }

  #hadIn(run: string): string[] {
    const had = this.#had.get(run) ?? []
    this.#had.set(run, had)
    return had
  }

  async #next(request: ModelRequest, n: number): Promise<Answer> {
    if (typeof this.#script === 'function') return this.#script(request, n)
    const answer = this.#script[n]
    if (answer !== undefined) return answer
    const before = this.#before > 0 ? `, ${this.#before} of them before this process,` : ''
    throw new RathError(
      'script-mismatch',
      `${this.id} was asked ${n + 1} times${before} and has ${this.#script.length} scripted answers. The last request ends with ${lastSaid(request)}. Add an answer, or see why it was asked again.`,
      { data: { asked: n + 1, answers: this.#script.length } },
    )
  }

  #content({ reasoning, deltas, text = deltas?.join(''), toolCalls = [] }: AnswerScript): AnswerPart[] {
    const content: AnswerPart[] = []
    if (reasoning) content.push({ type: 'reasoning', text: reasoning })
    if (text) content.push({ type: 'text', text })
    for (const { name, args = {}, id } of toolCalls) {
      this.#toolCalls++
      const call: ToolCallPart = {
        type: 'tool-call',
        id: id ?? `call-${this.#toolCalls}`,
        name,
        args: toJson(args, `the arguments of ${name}`),
      }
      content.push(call)
    }
    return content
  }

  #fault(error: Error | string | ScriptedFault): RathError {
    if (error instanceof Error) return modelError(error, { model: this.id })
    const fault: ScriptedFault = typeof error === 'string' ? { message: error } : error
    const { status, message = 'a scripted fault', retryAfterMs } = fault
    const headers = retryAfterMs === undefined ? {} : { 'retry-after-ms': String(retryAfterMs) }
    return modelError({ statusCode: status, message, responseHeaders: headers }, { model: this.id })
  }
}

/** How many answers a script begins with that are among those given; failures count with the answer behind them. */
function begunBy(script: readonly Answer[], given: readonly string[]): number {
  const left = [...given]
  let count = 0
  for (const [i, answer] of script.entries()) {
    if (isFault(answer)) continue
    const found = left.indexOf(scriptWritten(answer))
    if (found < 0) break
    left.splice(found, 1)
    count = i + 1
  }
  return count
}

/** The same for a session that goes on here: the script begins with all that it was answered, or with all in the turn that is open, and has more to say. */
function shownOf(script: readonly Answer[], messages: ModelRequest['messages']): number {
  const turn = messages.slice(messages.findLastIndex(({ role }) => role === 'user') + 1)
  for (const shown of [messages, turn]) {
    const said: string[] = []
    for (const message of shown) if (message.role === 'assistant') said.push(written(message.content))
    const count = begunBy(script, said)
    const answers = script.slice(0, count).filter(answer => !isFault(answer))
    if (said.length > 0 && answers.length === said.length && count < script.length) return count
  }
  return 0
}

function isFault(answer: Answer): boolean {
  return typeof answer !== 'string' && answer.error !== undefined
}

/** What was said, without the ids of calls, which are made up. */
function written(content: readonly AnswerPart[]): string {
  const said: Json[] = []
  for (const part of content) {
    if (part.type === 'tool-call') said.push([part.name, part.args])
    else if (part.type === 'text') said.push(part.text)
  }
  return canonicalJson(said)
}

function scriptWritten(answer: Answer): string {
  const {
    deltas,
    text = deltas?.join(''),
    toolCalls = [],
  } = typeof answer === 'string' ? { text: answer } : answer
  return canonicalJson([...(text ? [text] : []), ...toolCalls.map(({ name, args = {} }) => [name, args])])
}

/** The answers that are not among these. */
function without(answers: readonly ModelAnswer[], had: readonly string[]): ModelAnswer[] {
  const left = [...had]
  return answers.filter(({ content }) => {
    const found = left.indexOf(written(content))
    if (found >= 0) left.splice(found, 1)
    return found < 0
  })
}

/** Four characters to a token: simple, and the same everywhere. */
function usageOf(request: ModelRequest, content: readonly AnswerPart[], given: Partial<Usage> = {}): Usage {
  const written = content.reduce((sum, part) => sum + sizeOf(part), 0)
  const reasoned = content.reduce((sum, part) => sum + (part.type === 'reasoning' ? part.text.length : 0), 0)
  const { inputTokens = Math.ceil(read(request) / 4), outputTokens = Math.ceil(written / 4) } = given
  return {
    cachedInputTokens: 0,
    reasoningTokens: Math.min(outputTokens, Math.ceil(reasoned / 4)),
    totalTokens: inputTokens + outputTokens,
    ...given,
    inputTokens,
    outputTokens,
  }
}

function read({ messages }: ModelRequest): number {
  let size = 0
  for (const message of messages) {
    if (message.role === 'tool') size += lengthOf(message.outcome)
    else for (const part of message.content) size += sizeOf(part)
  }
  return size
}

function sizeOf(part: AnswerPart): number {
  if (part.type === 'text' || part.type === 'reasoning') return part.text.length
  return part.type === 'tool-call' ? part.name.length + lengthOf(part.args) : 1000
}

function lengthOf(value: unknown): number {
  return JSON.stringify(value).length
}

const known: Record<keyof AnswerScript, true> = {
  text: true,
  reasoning: true,
  toolCalls: true,
  usage: true,
  deltas: true,
  delayMs: true,
  error: true,
  finishReason: true,
}

function check(answers: readonly Answer[]): void {
  const problems: Problem[] = []
  if (!Array.isArray(answers)) {
    problems.push({
      path: 'answers',
      message: `${show(answers)} is neither a list of answers nor a function`,
    })
  } else {
    for (const [i, answer] of answers.entries()) {
      const path = `answers[${i}]`
      if (typeof answer === 'string') continue
      if (typeof answer !== 'object' || answer === null) {
        problems.push({ path, message: `${show(answer)} is neither a text nor an object` })
        continue
      }
      for (const name of Object.keys(answer)) {
        if (!Object.hasOwn(known, name))
          problems.push({
            path: `${path}.${name}`,
            message: `not a field; there are ${Object.keys(known).join(', ')}`,
          })
      }
    }
  }
  refuse('invalid-argument', 'scripted(answers) cannot play these answers', problems)
}

function picture(answer: Answer | undefined): string {
  return show(typeof answer === 'string' ? answer : JSON.stringify(answer))
}

function lastSaid({ messages }: ModelRequest): string {
  const message = messages.at(-1)
  if (message === undefined) return 'nothing'
  if (message.role === 'tool') return `the result of ${message.tool}`
  const text = message.content.find(part => part.type === 'text')
  return `${message.role}: ${text?.type === 'text' ? show(text.text) : 'no text'}`
}
