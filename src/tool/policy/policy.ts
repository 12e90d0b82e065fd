import { resolve } from 'node:path'
import { RathError, show } from '../../base/errors.ts'
import { isPlainObject, type Json, type Problem, refuse } from '../../base/json.ts'
import { Along } from '../../session/along.ts'
import { type Session, valueFrom } from '../../session/session.ts'
import { commandRefusal } from './command-rule.ts'
import { matchesAny, matchesGlob, matchesValue, valuesAt } from './match.ts'
import { type AskFiles, isInside, type PathFiles } from './path-root.ts'
import type { CallRule, CommandRule, PathRule, PolicyCall, PolicyRules } from './rules.ts'

/**
 * Who may call what, checked at the one place where calls are made. A policy is a list of rule sets, and a call has to pass
 * every one of them: joining two policies can take away and never give.
 */
export interface Policy {
  readonly layers: readonly PolicyRules[]
}

export type PolicyVerdict =
  | { readonly kind: 'allow' }
  | { readonly kind: 'deny'; readonly reason: string }
  | { readonly kind: 'ask'; readonly question: string }

export interface PolicyContext {
  readonly session: Session
  /** Calls of the running turn that were let through before this one. */
  readonly before?: readonly PolicyCall[]
  /** Where path rules look; by default the local file system, from the folder that the session is placed in. */
  readonly files?: AskFiles | undefined
}

export function policy(rules: PolicyRules): Policy {
  refuse('invalid-argument', 'The policy cannot be used', problemsOf(rules))
  return Object.freeze({ layers: Object.freeze([kept(rules)]) })
}

/** A copy that nobody can change: a list that is emptied later would allow what it denied. */
function kept<T>(value: T): T {
  if (Array.isArray(value)) return Object.freeze(value.map(kept)) as T
  if (!isPlainObject(value)) return value
  return Object.freeze(Object.fromEntries(Object.entries(value).map(([key, own]) => [key, kept(own)]))) as T
}

/** What either denies is denied, and what either asks about is asked. How a fork's or a sub-agent's own policy joins the one it inherits. */
export function narrow(one: Policy, other: Policy): Policy {
  for (const given of [one, other]) checkMade(given)
  return Object.freeze({ layers: Object.freeze([...new Set([...one.layers, ...other.layers])]) })
}

/** Rules that were not made into a policy would be no rules at all. */
export function checkMade(given: Policy): Policy {
  if (Array.isArray((given as Policy | null)?.layers)) return given
  throw new RathError(
    'invalid-argument',
    `${show(given)} is no policy; make one of the rules: policy({ deny: ['run_command'] }).`,
  )
}

export async function checkPolicy(
  { layers }: Policy,
  call: PolicyCall,
  context: PolicyContext,
): Promise<PolicyVerdict> {
  let question: string | undefined
  for (const rules of layers) {
    const reason = await reasonIn(rules, async () => {
      const refusal = await refusalOf(rules, call, context)
      const asks = refusal === undefined && rules.approval?.find(rule => fits(rule, call, 'any'))
      if (asks) question ??= reasonOf(asks) ?? `The policy asks about ${call.tool}.`
      return refusal
    })
    if (reason !== undefined) return { kind: 'deny', reason }
  }
  return question === undefined ? { kind: 'allow' } : { kind: 'ask', question }
}

/** Why the rules that look at files refuse a call; what they see may have changed since the call was checked. */
export async function checkFiles(
  { layers }: Policy,
  call: PolicyCall,
  context: PolicyContext,
): Promise<string | undefined> {
  for (const rules of layers) {
    const reason = await reasonIn(rules, () => fileRefusal(rules, call, context))
    if (reason !== undefined) return reason
  }
  return undefined
}

/** Whether a list says which commands a tool may run: their names then must not lead into the workspace. */
export function listsCommands({ layers }: Policy, tool: string): boolean {
  return layers.some(({ commands }) => commands?.some(rule => rule.allow && matchesAny(rule.tool, tool)))
}

/** A rule that cannot be evaluated has not let the call through. */
async function reasonIn(
  rules: PolicyRules,
  check: () => Promise<string | undefined>,
): Promise<string | undefined> {
  try {
    const reason = await check()
    return reason === undefined ? undefined : named(rules, reason)
  } catch (error) {
    const message = (error as RathError | undefined)?.message ?? show(error)
    return named(rules, `a rule failed: ${message}`)
  }
}

async function refusalOf(
  rules: PolicyRules,
  call: PolicyCall,
  context: PolicyContext,
): Promise<string | undefined> {
  const denied = rules.deny?.find(rule => fits(rule, call, 'any'))
  if (denied !== undefined) return reasonOf(denied) ?? `${call.tool} is denied`
  if (rules.allow && !rules.allow.some(rule => fits(rule, call, 'all'))) {
    return `${call.tool} with these arguments is not among the calls allowed`
  }
  const reason = await fileRefusal(rules, call, context)
  if (reason !== undefined) return reason
  for (const { tool, most } of rules.calls ?? []) {
    if (matchesAny(tool, call.tool) && countOf(tool, context) >= most) {
      return `${[tool].flat().join(', ')} may be called ${most} times in a session, and was`
    }
  }
  return undefined
}

async function fileRefusal(
  rules: PolicyRules,
  call: PolicyCall,
  context: PolicyContext,
): Promise<string | undefined> {
  for (const rule of rules.paths ?? []) {
    const reason = matchesAny(rule.tool, call.tool) && (await pathRefusal(rule, call.args, context))
    if (reason) return reason
  }
  for (const rule of rules.commands ?? []) {
    const reason = matchesAny(rule.tool, call.tool) && (await lineRefusal(rule, call.args, context))
    if (reason) return reason
  }
  return undefined
}

function fits(rule: CallRule, call: PolicyCall, quantifier: 'any' | 'all'): boolean {
  if (typeof rule === 'string') return matchesGlob(rule, call.tool)
  if (!matchesAny(rule.tool, call.tool)) return false
  return Object.entries(rule.when ?? {}).every(([path, match]) => {
    const values = valuesAt(call.args, path)
    if (quantifier === 'any') return values.some(value => matchesValue(match, value))
    return values.length > 0 && values.every(value => matchesValue(match, value))
  })
}

async function pathRefusal(rule: PathRule, args: Json, context: PolicyContext): Promise<string | undefined> {
  for (const path of textsAt(args, rule.argument ?? 'path')) {
    if (path === undefined) return 'a path is not a string'
    if (!(await isInside(path, rule.base ?? '.', rule.roots, await filesOf(context)))) {
      return `${show(path)} leads outside ${rule.roots.join(', ')}`
    }
  }
  return undefined
}

async function lineRefusal(
  rule: CommandRule,
  args: Json,
  context: PolicyContext,
): Promise<string | undefined> {
  for (const line of textsAt(args, rule.argument ?? 'cmd')) {
    if (line === undefined) return 'a command is not a string'
    const folders = textsAt(args, rule.cwd ?? 'cwd')
    if (folders.includes(undefined)) return 'the folder of a command is not a string'
    const [cwd = '.'] = folders
    const reason = await commandRefusal(line, cwd, rule, () => filesOf(context))
    if (reason !== undefined) return reason
  }
  return undefined
}

function textsAt(args: Json, paths: string | readonly string[]): (string | undefined)[] {
  const values = [paths].flat().flatMap(path => valuesAt(args, path))
  return values.map(value => (typeof value === 'string' ? value : undefined))
}

/** Without a way to look into the workspace no path can be checked, and what cannot be checked is refused. */
async function filesOf({ files, session }: PolicyContext): Promise<PathFiles> {
  const found = files ? await files() : await filesOfPlacement(session)
  return found ?? nowhere
}

const nowhere: PathFiles = {
  folder: '/nowhere',
  realpath: () => Promise.reject(new Error('the workspace cannot be looked into')),
  readlink: () => Promise.reject(new Error('the workspace cannot be looked into')),
}

/** The folder that a placement names. A session that was never placed works where the program does. */
async function filesOfPlacement({ placement }: Session): Promise<PathFiles | undefined> {
  const { spec } = placement ?? {}
  const named = placement?.workspace?.path ?? (typeof spec === 'object' ? spec.path : spec)
  if (placement && typeof named !== 'string') return undefined
  return hostFiles(typeof named === 'string' ? named : '.')
}

/** A folder of this machine as the rules see it. */
async function hostFiles(folder: string): Promise<PathFiles> {
  const { realpath, readlink } = await import('node:fs/promises')
  return { folder: resolve(folder), realpath, readlink: path => readlink(path) }
}

/** Calls that ran, in the history and in the running turn. */
function countOf(tool: string | readonly string[], { session, before = [] }: PolicyContext): number {
  let count = before.filter(call => matchesAny(tool, call.tool)).length
  for (const [name, ran] of callsThatRan.at(valueFrom(session).tip)) if (matchesAny(tool, name)) count += ran
  return count
}

/** By tool. A call that was refused did not run. */
const callsThatRan = new Along<ReadonlyMap<string, number>>(new Map(), (before, chunk) => {
  if (chunk.kind !== 'tool-result') return before
  const { tool, outcome } = chunk
  const isRefused =
    outcome.kind === 'denied' ||
    (outcome.kind === 'error' && /^(unknown-tool|invalid-arguments)$/.test(outcome.error))
  return isRefused ? before : new Map(before).set(tool, (before.get(tool) ?? 0) + 1)
})

function reasonOf(rule: CallRule): string | undefined {
  return typeof rule === 'string' ? undefined : rule.reason
}

function named(rules: PolicyRules, reason: string): string {
  return rules.name === undefined ? reason : `${reason} (policy ${rules.name})`
}

const parts = ['name', 'allow', 'deny', 'approval', 'paths', 'commands', 'calls']

/** What is wrong with the rules of a policy. One that is misspelt would allow silently, so whatever is not known is a mistake. */
function problemsOf(rules: unknown): Problem[] {
  if (!isPlainObject(rules)) return [{ path: 'policy', message: `must be an object, not ${show(rules)}` }]
  const problems: Problem[] = []
  for (const [key, value] of Object.entries(rules)) {
    if (!parts.includes(key)) {
      problems.push({ path: key, message: `is not a part of a policy (known: ${parts.join(', ')})` })
    } else if (key !== 'name' && value !== undefined && !Array.isArray(value)) {
      problems.push({ path: key, message: `must be an array, not ${show(value)}` })
    } else if (key !== 'name') {
      for (const [i, rule] of ((value ?? []) as unknown[]).entries()) {
        const message = problemOf(key, rule)
        if (message !== undefined) problems.push({ path: `${key}[${i}]`, message })
      }
    }
  }
  return problems
}

function problemOf(key: string, rule: unknown): string | undefined {
  const isCallRule = key === 'allow' || key === 'deny' || key === 'approval'
  if (isCallRule && typeof rule === 'string') return undefined
  if (!isPlainObject(rule)) return `must be ${isCallRule ? 'a name or ' : ''}an object, not ${show(rule)}`
  const known = fieldsOf[isCallRule ? 'call' : key] as readonly string[]
  const unknown = Object.keys(rule).find(field => !known.includes(field))
  if (unknown !== undefined) return `${show(unknown)} is not a field of it (known: ${known.join(', ')})`
  if (rule.tool === undefined) return 'must name its tool'
  if (isCallRule && rule.when !== undefined) return problemOfWhen(rule.when)
  if (key === 'paths' && !(Array.isArray(rule.roots) && rule.roots.length > 0)) return 'must have roots'
  if (key === 'calls' && !(typeof rule.most === 'number' && rule.most >= 0)) return 'must have most, a number'
  return undefined
}

const fieldsOf: { readonly [part: string]: readonly string[] } = {
  call: ['tool', 'when', 'reason'],
  paths: ['tool', 'argument', 'roots', 'base'],
  commands: ['tool', 'argument', 'allow', 'deny', 'variables', 'redirects', 'cwd'],
  calls: ['tool', 'most'],
}

const argumentPath = /^(?:[^.[\]]+|\[(?:\d+|\*)\])(?:\.[^.[\]]+|\[(?:\d+|\*)\])*$/

function problemOfWhen(when: unknown): string | undefined {
  if (!isPlainObject(when)) return `when must have paths and what to find there, not ${show(when)}`
  for (const [path, match] of Object.entries(when)) {
    if (!argumentPath.test(path))
      return `${show(path)} is not a path into arguments, such as url or files[*].path`
    if (!isMatch(match)) {
      return `${path} must be matched with a value, a glob, a regular expression or a function, not ${show(match)}`
    }
  }
  return undefined
}

function isMatch(match: unknown): boolean {
  return match === null || match instanceof RegExp || /^(string|number|boolean|function)$/.test(typeof match)
}
