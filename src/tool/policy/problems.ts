import { show } from '../../base/errors.ts'
import { isPlainObject, type Problem } from '../../base/json.ts'

const parts = ['name', 'allow', 'deny', 'approval', 'paths', 'commands', 'calls']

/** What is wrong with the rules of a policy. One that is misspelt would allow silently, so whatever is not known is a mistake. */
export function problemsOf(rules: unknown): Problem[] {
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
