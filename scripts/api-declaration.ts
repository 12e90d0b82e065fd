import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseSync } from 'vite'

export interface Declaration {
  /** The file of `dist` that it stands in. */
  readonly file: string
  /** Its comment, as Markdown. */
  readonly comment: string
  /** As the types say it, with the comments of its members. */
  readonly code: string
}

interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly id?: { readonly name?: string } | null
  readonly declaration?: Node | null
  readonly declarations?: readonly Node[]
}

/** The names that a file of types exports. */
export function exportedFrom(file: string): string[] {
  return exportsOf(file).map(({ name }) => name)
}

/** Where a name is declared, through all files that only pass it on. */
export function declarationOf(file: string, name: string): Declaration {
  const found = exportsOf(file).find(entry => entry.name === name)
  if (found === undefined) throw new Error(`${file} does not export ${name}`)
  if (found.from !== undefined) {
    const next = join(dirname(file), found.from.replace(/\.ts$/, '.d.ts'))
    if (found.local === undefined) return namespaceOf(next, file, name)
    return declarationOf(next, found.local)
  }
  const { code, program, comments } = parsed(file)
  const nodes = (program.body as readonly Node[]).filter(node => declares(node, found.local ?? name))
  if (nodes.length === 0) throw new Error(`${file} exports ${name} and does not declare it`)
  const commentBefore = (node: Node) =>
    comments.findLast(
      ({ type, end }) => type === 'Block' && end <= node.start && code.slice(end, node.start).trim() === '',
    )
  const shown = nodes.map(node => tidy(code.slice(node.start, node.end))).join('\n')
  // A type of a table, such as `keyof typeof codes`, says nothing without the table.
  const tables = [...shown.matchAll(/\btypeof (\w+)/g)].flatMap(([, table = '']) =>
    (program.body as readonly Node[]).filter(node => declares(node, table)),
  )
  return {
    file,
    comment: [...nodes, ...tables].map(node => prose(commentBefore(node)?.value ?? '')).find(Boolean) ?? '',
    code: [shown, ...tables.map(node => tidy(code.slice(node.start, node.end)))].join('\n\n'),
  }
}

/** `export * as flow`: the same names once more, behind a dot. */
function namespaceOf(target: string, file: string, name: string): Declaration {
  const names = exportedFrom(target)
  return {
    file: target,
    comment: `The same names once more, for those who like \`${name}.${names.find(other => /^[A-Z]/.test(other)) ?? names[0]}\`.`,
    code: `export * as ${name} from '${relativeName(file, target)}'`,
  }
}

function relativeName(file: string, target: string): string {
  return `.${target.slice(dirname(file).length).replace(/\.d\.ts$/, '.ts')}`
}

interface Exported {
  readonly name: string
  /** What it is called where it comes from; missing when it is all of a file. */
  readonly local: string | undefined
  readonly from: string | undefined
}

function exportsOf(file: string): Exported[] {
  const { module } = parsed(file)
  return module.staticExports
    .flatMap(statement => statement.entries)
    .map(({ exportName, importName, localName, moduleRequest }) => ({
      name: exportName.name ?? '',
      local: importName.name ?? localName.name ?? undefined,
      from: moduleRequest?.value,
    }))
}

const files = new Map<string, ReturnType<typeof parseSync> & { code: string }>()

function parsed(file: string) {
  const known = files.get(file)
  if (known) return known
  const code = readFileSync(file, 'utf8')
  const { program, module, comments, errors } = parseSync(file, code)
  const fresh = { program, module, comments, errors, code } as ReturnType<typeof parseSync> & { code: string }
  files.set(file, fresh)
  return fresh
}

function declares(node: Node, name: string): boolean {
  const inner = node.type === 'ExportNamedDeclaration' ? node.declaration : node
  if (!inner) return false
  return inner.id?.name === name || (inner.declarations ?? []).some(({ id }) => id?.name === name)
}

/** The text inside of a comment. */
function prose(comment: string): string {
  return comment
    .replace(/^\*/, '')
    .split('\n')
    .map(line => line.replace(/^\s*\* ?/, '').trimEnd())
    .join('\n')
    .trim()
}

function tidy(code: string): string {
  return code
    .replace(/^(export )?(declare )?/, '')
    .replace(/^ +#private;\n/m, '')
    .replace(/^( {4})+/gm, indent => '  '.repeat(indent.length / 4))
}
