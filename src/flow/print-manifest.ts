import type { CostLimit } from '../model/provider.ts'
import type { Manifest, ManifestModel, Problem } from './manifest.ts'

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
