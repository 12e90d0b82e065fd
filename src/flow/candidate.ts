import { RathError, show } from '../base/errors.ts'
import { isPlainObject, type Json } from '../base/json.ts'
import type { ModelAnswer } from '../model/spec.ts'
import { withoutFence } from '../run/output.ts'
import { textOf } from '../session/part.ts'
import { classNameOf } from './tree.ts'
import { Workflow } from './workflow.ts'

/** A workflow that may be chosen, under the word a model chooses it by. */
export interface Candidate {
  readonly key: string
  readonly description: string
  readonly workflow: Workflow
}

/** What a model says when nothing fits. */
export const none = 'none'

/** What a model chose: a key or `none`, and why. */
export interface Choice {
  readonly key: string
  readonly reason?: string
}

/** What a Selector chooses between: workflows, or an object that gives each the name it is chosen by. */
export type Candidates = readonly Workflow[] | readonly [Readonly<Record<string, Workflow>>]

/** Workflows under keys that differ; refuses, all at once, what cannot be chosen. `holder` is the workflow around the choice, which may hold them in fields. */
export function candidatesOf(given: Candidates, holder?: object): readonly Candidate[] {
  const [only] = given
  const isNamed = given.length === 1 && isPlainObject(only)
  const named = isNamed ? Object.entries(only as Record<string, Workflow>) : undefined
  const workflows = named ? named.map(([, workflow]) => workflow) : (given as readonly Workflow[])
  const problems: string[] = []
  if (workflows.length === 0) problems.push('it was given none')
  const seen = new Set<unknown>()
  for (const [i, workflow] of workflows.entries()) {
    const place = `workflow ${i + 1}`
    if (!(workflow instanceof Workflow)) problems.push(`${place} is ${show(workflow)}`)
    else if (seen.has(workflow)) problems.push(`${place}, ${workflow.name}, was given twice`)
    else if (typeof workflow.description !== 'string' || workflow.description.trim() === '')
      problems.push(`${place}, ${workflow.name}, has no description: say in one what it is for`)
    seen.add(workflow)
  }
  if (problems.length > 0) {
    throw new RathError(
      'invalid-argument',
      `A Selector chooses between workflows that describe themselves: ${problems.join('; ')}.`,
    )
  }
  const keys = keysFor(named?.map(([name]) => name) ?? workflows.map(workflow => nameIn(workflow, holder)))
  return workflows.map((workflow, i) => ({
    key: keys[i] as string,
    description: workflow.description.trim(),
    workflow,
  }))
}

/** A name of its own, else the field that the workflow around the choice holds it in. */
function nameIn(workflow: Workflow, holder: object | undefined): string {
  if (workflow.name !== classNameOf(workflow) || !(holder instanceof Workflow)) return workflow.name
  for (const [path, child] of holder.namedChildren()) if (child === workflow) return path
  return workflow.name
}

/** Names as keys: one word each, numbered where a name comes twice, and never the word for none. */
function keysFor(names: readonly string[]): string[] {
  const words = names.map(name => {
    const word = name.trim().replace(/[^\p{L}\p{N}_.-]+/gu, '-')
    // A number alone on a line is found in prose too easily.
    return /\p{L}/u.test(word) ? word : `workflow-${word}`
  })
  const taken = new Set([none, ...words.map(word => word.toLowerCase())])
  return words.map(word => {
    const alike = words.filter(other => other.toLowerCase() === word.toLowerCase()).length
    if (alike === 1 && word.toLowerCase() !== none) return word
    let number = 1
    while (taken.has(`${word}-${number}`.toLowerCase())) number++
    taken.add(`${word}-${number}`.toLowerCase())
    return `${word}-${number}`
  })
}

/**
 * The choice in an answer: a call of the forced tool, JSON of the asked shape, or a key that has a line to itself. A key somewhere in a
 * sentence, two different keys, or a number is no choice.
 */
export function readChoice({ content }: ModelAnswer, keys: ReadonlySet<string>): Choice | undefined {
  for (const part of content) {
    if (part.type !== 'tool-call') continue
    const choice = fromJson(part.args, keys)
    if (choice) return choice
  }
  const text = textOf(content).trim()
  const json = parsed(text)
  if (json !== undefined) return fromJson(json, keys)
  const lines = text.split('\n').map(line => line.trim())
  const named = new Set(lines.map(unquoted).filter(line => keys.has(line)))
  const [key] = named
  if (key === undefined || named.size > 1) return undefined
  const reason = lines
    .filter(line => unquoted(line) !== key)
    .join('\n')
    .trim()
  return reason ? { key, reason } : { key }
}

function fromJson(value: Json, keys: ReadonlySet<string>): Choice | undefined {
  if (typeof value === 'string') return keys.has(value) ? { key: value } : undefined
  if (!isPlainObject(value)) return undefined
  const { choice, reason } = value as { choice?: Json; reason?: Json }
  if (typeof choice !== 'string' || !keys.has(choice)) return undefined
  return typeof reason === 'string' && reason !== '' ? { key: choice, reason } : { key: choice }
}

/** JSON, in a Markdown fence or not; undefined where it is something else. */
function parsed(text: string): Json | undefined {
  try {
    return JSON.parse(withoutFence(text))
  } catch {
    return undefined
  }
}

function unquoted(line: string): string {
  return /^(?:`(.+)`|"(.+)"|\*\*(.+)\*\*)$/.exec(line)?.slice(1).find(Boolean) ?? line
}
