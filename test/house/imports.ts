import { posix } from 'node:path'
import { parseSync, Visitor } from 'vite'

export interface Import {
  readonly specifier: string
  /** Gone after the build. `import { type A }` is not: it stays behind as an import for side effects. */
  readonly typeOnly: boolean
  /** With `import()`. */
  readonly isLater: boolean
}

/** Every module that a file names: static and dynamic imports, re-exports, and `import()` types. */
export function importsOf(path: string, code: string): Import[] {
  const found: Import[] = []
  const add = (source: { type: string } | null, typeOnly: boolean, isLater = false) => {
    if (source === null) return
    if (isFileAddress(source)) return
    // A computed specifier cannot be checked, so it must not be there.
    if (source.type !== 'Literal') throw new Error(`${path}: import() takes a literal specifier`)
    found.push({ specifier: String((source as { value?: unknown }).value), typeOnly, isLater })
  }
  new Visitor({
    ImportDeclaration: node => add(node.source, node.importKind === 'type'),
    ExportNamedDeclaration: node => add(node.source, node.exportKind === 'type'),
    ExportAllDeclaration: node => add(node.source, node.exportKind === 'type'),
    ImportExpression: node => add(node.source, false, true),
    TSImportType: node => add(node.source, true),
  }).visit(parsed(path, code))
  return found
}

/** `import(pathToFileURL(path).href)` loads a file that somebody named, and none of the package. */
function isFileAddress(source: { type: string }): boolean {
  const { object, property } = source as Expression
  return object?.callee?.name === 'pathToFileURL' && property?.name === 'href'
}

interface Expression {
  readonly type: string
  readonly name?: string
  readonly callee?: Expression
  readonly arguments?: readonly Expression[]
  readonly object?: Expression
  readonly property?: Expression
}

/** The names a file exports, told apart by whether they exist at run time. `export *` is refused: it hides names. */
export function exportsOf(path: string, code: string) {
  const { module } = parseSync(path, code)
  const values: string[] = []
  const types: string[] = []
  /** The file that each name comes from. */
  const origins = new Map<string, string>()
  for (const { exportName, isType, moduleRequest } of module.staticExports.flatMap(
    statement => statement.entries,
  )) {
    if (exportName.name === null) throw new Error(`${path}: export names one by one, not *`)
    const list = isType ? types : values
    list.push(exportName.name)
    if (moduleRequest) origins.set(exportName.name, posix.join(posix.dirname(path), moduleRequest.value))
  }
  return { values: values.sort(), types: types.sort(), origins }
}

/**
 * Which of `names` a file takes for granted as globals. One that it looks up as `globalThis.process`, or asks
 * `typeof process` about first, it does not.
 */
export function globalsUsed(path: string, code: string, names: readonly string[]): string[] {
  const members = new Set<unknown>()
  const used = new Set<string>()
  const asked = new Set<string>()
  const member = (computed: boolean, key: unknown) => {
    if (!computed) members.add(key)
  }
  new Visitor({
    MemberExpression: node => member(node.computed, node.property),
    Property: node => member(node.computed, node.key),
    PropertyDefinition: node => member(node.computed, node.key),
    MethodDefinition: node => member(node.computed, node.key),
    UnaryExpression: node => {
      if (node.operator === 'typeof' && node.argument.type === 'Identifier') asked.add(node.argument.name)
    },
    Identifier: node => {
      if (names.includes(node.name) && !members.has(node)) used.add(node.name)
    },
  }).visit(parsed(path, code))
  return [...used].filter(name => !asked.has(name)).sort()
}

function parsed(path: string, code: string) {
  const { program, errors } = parseSync(path, code)
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]?.message}`)
  return program
}
