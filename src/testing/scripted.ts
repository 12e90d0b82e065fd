import { cancelledError } from '../base/abort.ts'
import { RathError, show } from '../base/errors.ts'
import { type Json, type Problem, refuse, toJson } from '../base/json.ts'
import { modelError } from '../model/errors.ts'
import { sleep } from '../model/retry.ts'
import type { FinishReason, Model, ModelAnswer, ModelContext, ModelRequest } from '../model/spec.ts'
import type { AnswerPart, ToolCallPart } from '../session/part.ts'
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
  /** `n` counts the requests, from 0. */
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
    const { signal, onDelta } = context
    if (signal.aborted) throw cancelledError(signal)
    const n = this.calls.push(request) - 1
    const answer = await this.#next(request, n)
    const script = typeof answer === 'string' ? { text: answer } : answer
    if (typeof this.#script === 'function') check([answer])
    if (script.delayMs) await this.#sleep(script.delayMs, signal)
    if (signal.aborted) throw cancelledError(signal)
    const content = this.#content(script)
    if (onDelta) tell(content, onDelta, script.deltas)
    if (script.error !== undefined) throw this.#fault(script.error)
    return {
      content,
      finishReason: script.finishReason ?? (script.toolCalls?.length ? 'tool-calls' : 'stop'),
      usage: usageOf(request, content, script.usage),
    }
  }

  done(): void {
    if (typeof this.#script === 'function' || this.calls.length >= this.#script.length) return
    throw new RathError(
      'script-mismatch',
      `${this.id} has ${this.#script.length} scripted answers and was asked ${this.calls.length} times. The next one, never asked for, is ${picture(this.#script[this.calls.length])}.`,
    )
  }

  async #next(request: ModelRequest, n: number): Promise<Answer> {
    if (typeof this.#script === 'function') return this.#script(request, n)
    const answer = this.#script[n]
    if (answer !== undefined) return answer
    throw new RathError(
      'script-mismatch',
      `${this.id} was asked ${n + 1} times and has ${this.#script.length} scripted answers. The last request ends with ${lastSaid(request)}. Add an answer, or see why it was asked again.`,
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
