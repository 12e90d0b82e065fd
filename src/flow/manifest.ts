import type { ErrorCode } from '../base/errors.ts'
import type { CostLimit } from '../model/provider.ts'
import type { BudgetLimits } from '../run/budget.ts'
import type { Effect } from '../tool/spec.ts'

/** Everything a tree of workflows needs, known without running it. Paths are those of `namedModules()`. Holds no secrets. */
export interface Manifest {
  readonly name: string
  readonly modules: readonly ManifestModule[]
  readonly models: readonly ManifestModel[]
  readonly tools: readonly ManifestTool[]
  readonly mcpServers: readonly ManifestServer[]
  readonly sandboxes: readonly ManifestSandbox[]
  readonly memories: readonly { readonly name: string; readonly usedBy: readonly string[] }[]
  readonly budgets: readonly { readonly path: string; readonly limits: BudgetLimits }[]
  /** What only running it will show. */
  readonly unknown: readonly { readonly path: string; readonly reason: string }[]
}

export interface ManifestModule {
  readonly path: string
  readonly type: string
  readonly name: string
  readonly description: string
  /** Where the same module stands with its children. */
  readonly sameAs?: string
}

export interface ManifestModel {
  readonly id: string
  readonly usedBy: readonly string[]
  readonly credentials:
    | { readonly status: 'found'; readonly source: string; readonly address: string }
    /** The model was handed over as an object and sees to its own. */
    | { readonly status: 'own' }
    | { readonly status: 'missing'; readonly code: ErrorCode; readonly reason: string }
}

export interface ManifestTool {
  readonly name: string
  readonly effect: Effect
  /** Whether a person is asked: never, always, or depending on the arguments. */
  readonly approval: 'never' | 'always' | 'sometimes'
  readonly usedBy: readonly string[]
  /** The MCP server that it comes from. */
  readonly server?: string
}

export interface ManifestServer {
  readonly name: string
  /** The program, or the address without anything secret. */
  readonly at: string
  readonly tools: readonly string[]
}

/** A module whose built-in tools work in the sandbox of whatever session it is given. */
export interface ManifestSandbox {
  readonly usedBy: string
  readonly needs: readonly ('files' | 'commands')[]
  readonly tools: readonly string[]
}

/** Something that would go wrong, found without spending a token. */
export interface Problem {
  readonly path: string
  readonly code: ErrorCode
  readonly message: string
}

/** The manifest for people: a line for each thing, sections without any left out, problems last. */
export function printCompiled(manifest: Manifest, problems: readonly Problem[]): string {
  const { modules, models, tools, mcpServers, sandboxes, memories, budgets, unknown } = manifest
  const sections = [
    section(
      'modules',
      modules.map(({ path, type, description, sameAs }) => [
        at(path),
        sameAs === undefined ? type : `${type}, the same as ${at(sameAs)}`,
        description,
      ]),
    ),
    section(
      'models',
      models.map(model => [model.id, credentials(model), used(model.usedBy)]),
    ),
    section(
      'tools',
      tools.map(({ name, effect, approval, usedBy, server }) => [
        name,
        effect,
        approval === 'never' ? '' : `asks a person ${approval}`,
        server === undefined ? '' : `from ${server}`,
        used(usedBy),
      ]),
    ),
    section(
      'MCP servers',
      mcpServers.map(({ name, at: place, tools: own }) => [name, place, own.join(', ')]),
    ),
    section(
      'sandboxes',
      sandboxes.map(({ usedBy, needs, tools: own }) => [at(usedBy), needs.join(' and '), own.join(', ')]),
    ),
    section(
      'memories',
      memories.map(({ name, usedBy }) => [name, used(usedBy)]),
    ),
    section(
      'budgets',
      budgets.map(({ path, limits }) => [
        at(path),
        Object.entries(limits)
          .map(([name, limit]) => `${name} ${typeof limit === 'object' ? costs(limit) : limit}`)
          .join(', '),
      ]),
    ),
    section(
      'known only when it runs',
      unknown.map(({ path, reason }) => [at(path), reason]),
    ),
    section(
      'problems',
      problems.map(({ path, message }) => [at(path), message]),
    ),
  ]
  const heading = `${manifest.name}: ${verdict(problems)}`
  return [heading, ...sections.filter(Boolean)].join('\n\n')
}

function verdict({ length }: readonly Problem[]): string {
  if (length === 0) return 'no problems'
  return length === 1 ? '1 problem' : `${length} problems`
}

function at(path: string): string {
  return path === '' ? '(root)' : path
}

function costs({ limit, unknown = 'refuse' }: CostLimit): string {
  return unknown === 'ignore' ? `${limit}, models without a price not counted` : String(limit)
}

function used(paths: readonly string[]): string {
  return `used by ${paths.map(at).join(', ')}`
}

function credentials({ credentials: found }: ManifestModel): string {
  if (found.status === 'own') return 'brings its own credentials'
  return found.status === 'found' ? `credentials from ${found.source}` : 'NO CREDENTIALS'
}

/** Columns as wide as their widest cell; further lines of a cell stand under its first. */
function section(title: string, rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return ''
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map(row => row[i]?.length ?? 0)))
  const lines = rows.map(row => {
    let line = '  '
    for (const [i, cell] of row.entries()) {
      if (widths[i] === 0) continue
      const isLast = i === row.length - 1
      const indented = cell.replaceAll('\n', `\n${' '.repeat(line.length)}`)
      line += isLast ? indented : `${indented.padEnd(widths[i] as number)}  `
    }
    return line.trimEnd()
  })
  return `${title}\n${lines.join('\n')}`
}
