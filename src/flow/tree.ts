import { RathError } from '../base/errors.ts'

/** What the functions here need to know of a module: a workflow, or a part of one that asks a model. */
export interface TreeNode<T> {
  readonly name: string
  readonly description?: string
  readonly model?: unknown
  namedChildren?(): ReadonlyMap<string, T>
  extraRepr?(): string
}

/** One place in the tree. */
export interface TreePlace<T> {
  /** From the root, joined by dots; empty at the root. */
  readonly path: string
  /** The last part of it: what its parent calls it. */
  readonly name: string
  readonly depth: number
  readonly module: T
  /** Where the same module was met before; its own children are listed only there. */
  readonly first?: string
  /** Set where a module holds itself: the modules in between, from itself to itself. */
  readonly cycle?: string
}

/**
 * Every place of the tree, each parent before its children. A module held in several places is listed at each and entered at the first, so
 * that the walk is linear in what is held however much of it is shared. Iterative, so that depth has no limit.
 */
export function placesOf<T extends object & TreeNode<T>>(root: T): TreePlace<T>[] {
  const places: TreePlace<T>[] = []
  const firsts = new Map<T, string>()
  const around: TreePlace<T>[] = []
  const open = new Set<T>()
  const next: TreePlace<T>[] = [{ path: '', name: '', depth: 0, module: root }]
  for (let place = next.pop(); place; place = next.pop()) {
    while (around.length > place.depth) open.delete((around.pop() as TreePlace<T>).module)
    const { path, module, depth } = place
    const first = firsts.get(module)
    if (open.has(module)) {
      places.push({ ...place, cycle: cycleFrom(around, place) })
      continue
    }
    if (first !== undefined) {
      places.push({ ...place, first })
      continue
    }
    places.push(place)
    firsts.set(module, path)
    around.push(place)
    open.add(module)
    const children = [...(module.namedChildren?.() ?? [])].reverse()
    for (const [name, child] of children) {
      next.push({ path: path === '' ? name : `${path}.${name}`, name, depth: depth + 1, module: child })
    }
  }
  return places
}

/** Every module by its path, the root under the empty one. A module that holds itself is refused: no walk over it would end. */
export function modulesOf<T extends object & TreeNode<T>>(root: T): Map<string, T> {
  const modules = new Map<string, T>()
  for (const { path, module, cycle } of placesOf(root)) {
    if (cycle !== undefined) throw cycleError(path, cycle)
    modules.set(path, module)
  }
  return modules
}

export function cycleError(path: string, cycle: string): RathError {
  return new RathError(
    'graph-cycle',
    `A workflow holds itself: ${cycle}. Hold what ${path} needs in a private field (#field), or hand it over when calling.`,
    { data: { path } },
  )
}

/** The tree in the way of torch: a line for each place, indented, with what its class says about it between brackets. */
export function printTree<T extends object & TreeNode<T>>(root: T): string {
  const places = placesOf(root)
  const lines: string[] = []
  const open: number[] = []
  for (const [i, { name, depth, module, first, cycle }] of places.entries()) {
    while (open.length > 0 && (open.at(-1) as number) >= depth) lines.push(`${'  '.repeat(open.pop() ?? 0)})`)
    const label = depth === 0 ? '' : `(${name}): `
    const hasChildren = (places[i + 1]?.depth ?? 0) > depth
    const facts = [module.extraRepr?.() ?? modelName(module)]
    if (first !== undefined && module.namedChildren?.().size) facts.push(`the same as (${first})`)
    if (cycle !== undefined) facts.push(`holds itself: ${cycle}`)
    const inside = facts.filter(Boolean).join(', ')
    const start = `${'  '.repeat(depth)}${label}${classNameOf(module)}(${inside}`
    lines.push(hasChildren ? start : `${start})`)
    if (hasChildren) open.push(depth)
  }
  while (open.length > 0) lines.push(`${'  '.repeat(open.pop() ?? 0)})`)
  return lines.join('\n')
}

/** A workflow as data. */
export interface WorkflowJson {
  readonly type: string
  readonly name: string
  readonly description: string
  readonly children: { readonly [name: string]: WorkflowJson }
  /** The path at which the same module was written out, children and all. */
  readonly sameAs?: string
}

export function treeToJson<T extends object & TreeNode<T>>(root: T): WorkflowJson {
  const trail: { children: Record<string, WorkflowJson> }[] = []
  let top: WorkflowJson | undefined
  for (const { path, name, depth, module, first, cycle } of placesOf(root)) {
    if (cycle !== undefined) throw cycleError(path, cycle)
    const children: Record<string, WorkflowJson> = {}
    const json: WorkflowJson = {
      type: classNameOf(module),
      name: module.name,
      description: module.description ?? '',
      children,
      ...(first !== undefined && { sameAs: first }),
    }
    const parent = trail[depth - 1]
    if (parent) parent.children[name] = json
    else top = json
    trail.length = depth
    trail.push({ children })
  }
  return top as WorkflowJson
}

/** The model that a module keeps in its field of that name, resolved or not; empty where it has none. */
export function modelName({ model }: { readonly model?: unknown }): string {
  if (typeof model === 'string') return model
  const id = (model as { id?: unknown } | undefined)?.id
  return typeof id === 'string' ? id : ''
}

function cycleFrom<T extends object>(
  around: readonly TreePlace<T>[],
  { name, module }: TreePlace<T>,
): string {
  const start = around.findIndex(place => place.module === module)
  const names = around.slice(start).map(place => place.name || classNameOf(place.module))
  return [...names, name].join(' → ')
}

/** What the class of an object is called; for a class without a name, such as `new (class extends Workflow { … })()`, what it extends. */
export function classNameOf(object: object): string {
  let prototype = Object.getPrototypeOf(object)
  while (prototype.constructor.name === '') prototype = Object.getPrototypeOf(prototype)
  return prototype.constructor.name
}
