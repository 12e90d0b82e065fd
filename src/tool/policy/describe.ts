import { describeCommand } from './command-rule.ts'
import { describeMatch } from './match.ts'
import type { Policy } from './policy.ts'
import type { CallRule, PolicyRules } from './rules.ts'

/** A policy in words, one line a rule. */
export function describe({ layers }: Policy): string {
  const blocks = layers.map((rules, i) => {
    const title = rules.name ?? (layers.length > 1 ? `layer ${i + 1}` : 'policy')
    const lines = linesOf(rules)
    return [`${title}:`, ...(lines.length > 0 ? lines : ['everything is allowed'])].join('\n  ')
  })
  return blocks.join('\n')
}

function linesOf(rules: PolicyRules): string[] {
  const { allow, deny = [], approval = [], paths = [], commands = [], calls = [] } = rules
  const lines = allow ? [`allow only ${allow.map(callRule).join('; ') || 'nothing'}`] : []
  lines.push(...deny.map(rule => `deny ${callRule(rule)}`))
  lines.push(...approval.map(rule => `ask about ${callRule(rule)}`))
  for (const { tool, argument = 'path', roots } of paths) {
    lines.push(`${list(tool)}: ${list(argument)} stays inside ${list(roots)}`)
  }
  for (const rule of commands) {
    const where = `${list(rule.tool)}: ${list(rule.argument ?? 'cmd')}`
    if (rule.allow)
      lines.push(`${where} runs only ${rule.allow.map(describeCommand).join(', ') || 'nothing'}`)
    if (rule.deny) lines.push(`${where} never runs ${rule.deny.map(describeCommand).join(', ')}`)
    const variables = rule.variables ?? (rule.allow && [])
    if (variables) lines.push(`${where} sets ${list(variables) || 'no variables'}`)
    const redirects = rule.redirects ?? (rule.allow && [])
    if (redirects)
      lines.push(`${where} redirects ${redirects.length > 0 ? `inside ${list(redirects)}` : 'nothing'}`)
  }
  lines.push(...calls.map(({ tool, most }) => `${list(tool)}: at most ${most} calls in a session`))
  return lines
}

function callRule(rule: CallRule): string {
  if (typeof rule === 'string') return rule
  const conditions = Object.entries(rule.when ?? {}).map(([path, match]) => `${path} ${describeMatch(match)}`)
  const when = conditions.length > 0 ? ` when ${conditions.join(' and ')}` : ''
  return `${list(rule.tool)}${when}${rule.reason === undefined ? '' : ` (${rule.reason})`}`
}

function list(names: string | readonly string[]): string {
  return [names].flat().join(', ')
}
