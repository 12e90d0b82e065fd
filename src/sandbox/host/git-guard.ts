import {
  lstatSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { dirname, isAbsolute, join, relative } from 'node:path'
import { newId } from '../../base/ids.ts'
import { OpenFolder } from '../workspace/open-folder.ts'
import { foldersInIndex, indexMark, type ListedFolders } from './git-index.ts'
import { looksBare, tameRepository } from './git-tame.ts'
import { orNothing } from './or-nothing.ts'

/**
 * What of a workspace can make git run programs the next time that somebody uses it there. Most of it is mounted read-only; what cannot be, since it is
 * not there or is a link, is looked at before and after every command.
 */
export class GitGuard {
  readonly #root: string
  readonly #repositories: readonly string[]
  readonly #indexes = new Map<
    string,
    { readonly mark: string; readonly folders: ListedFolders | undefined }
  >()

  constructor(root: string) {
    this.#root = root
    const found = new Set(['', ...repositoriesIn(root)])
    for (const folder of found) for (const listed of this.#listedIn(folder) ?? []) found.add(listed)
    this.#repositories = [...found]
  }

  /** Relative paths. A repository that a command makes at the top counts from the next command on. */
  settings(): string[] {
    return [...new Set(this.#found().flatMap(({ settings }) => settings))]
  }

  /** What it returns undoes what git would take programs from, and says so in a sentence each. */
  watch(): () => string[] {
    const root = this.#root
    const isThere = (path: string) => lstatSync(join(root, path), orNothing) !== undefined
    const found = this.#found()
    const missing = found.flatMap(one => one.missing).filter(path => isMissing(root, path))
    const links = found.flatMap(({ settings }) => settings).flatMap(path => linkAt(root, path))
    const hadTop = isThere('.git')
    const wasBare = looksBare(root)
    return () => {
      const said: string[] = []
      for (const path of missing) {
        const made = removeMade(root, path)
        if (made) said.push(`the command made ${made}, which can make git run programs; removed`)
      }
      for (const path of links.filter(link => putBack(root, link)).map(link => link.path))
        said.push(`the command changed the link ${path}, which can make git run programs; put back`)
      // Where .git no longer is a repository, git takes the folder around it for one.
      if (!wasBare && looksBare(root)) {
        rmSync(join(root, 'HEAD'), { force: true })
        said.push('the command made the workspace look like a bare repository; HEAD removed')
      }
      if (!hadTop && isThere('.git')) said.push(...tameRepository(root))
      said.push(...this.#tameListed())
      return said
    }
  }

  /** git at the top looks into whatever its index lists as a submodule: one that a command made keeps only settings that run nothing. */
  #tameListed(): string[] {
    const said: string[] = []
    const all = new Set(this.#repositories)
    for (const folder of all) {
      const listed = this.#listedIn(folder)
      if (listed === undefined) said.push(...this.#setIndexAside(folder))
      for (const found of listed ?? []) {
        if (!all.has(found)) said.push(...tameRepository(this.#root, found))
        all.add(found)
      }
    }
    return said
  }

  /** Repositories that the index of another one has git look into. Undefined when it cannot be read, by git or at least by us. */
  #listedIn(folder: string): string[] | undefined {
    const git = gitFolderOf(this.#root, folder)
    if (git === undefined) return []
    const mark = indexMark(git)
    let known = this.#indexes.get(folder)
    if (known?.mark !== mark) {
      known = { mark, folders: foldersInIndex(git) }
      this.#indexes.set(folder, known)
    }
    const { folders } = known
    if (folders === undefined) return undefined
    const isRepository = (path: string) =>
      isPlain(path) &&
      isFolder(this.#root, path) &&
      lstatSync(join(this.#root, path, '.git'), orNothing) !== undefined
    return [
      ...folders.submodules.map(path => join(folder, path)),
      ...folders.sparse.flatMap(path =>
        repositoriesIn(this.#root, join(folder, path), Number.POSITIVE_INFINITY),
      ),
    ].filter(isRepository)
  }

  #setIndexAside(folder: string): string[] {
    const git = gitFolderOf(this.#root, folder)
    if (git === undefined) return []
    const to = `index.set-aside-${newId()}`
    renameSync(join(git, 'index'), join(git, to))
    const shown = join(folder, '.git')
    return [`the command left ${shown}/index in a form that cannot be checked; it is now ${shown}/${to}`]
  }

  #found(): Settings[] {
    return this.#repositories.map(folder => settingsOf(this.#root, join(folder, '.git')))
  }
}

interface Settings {
  readonly settings: readonly string[]
  /** What git would look for and is not there. */
  readonly missing: readonly string[]
}

export interface Link {
  readonly path: string
  readonly target: string
}

/** False when it is as it was. */
export function putBack(root: string, { path, target }: Link): boolean {
  if (linkAt(root, path)[0]?.target === target) return false
  rmSync(join(root, path), { recursive: true, force: true })
  symlinkSync(target, join(root, path))
  return true
}

export function linkAt(root: string, path: string): Link[] {
  return lstatSync(join(root, path), orNothing)?.isSymbolicLink()
    ? [{ path, target: readlinkSync(join(root, path)) }]
    : []
}

/** Nothing is there, and no link on the way to it. */
export function isMissing(root: string, path: string): boolean {
  let at = root
  for (const name of path.split('/')) {
    at = join(at, name)
    const found = lstatSync(at, orNothing)
    if (found === undefined) return true
    if (!found.isDirectory()) return false
  }
  return false
}

/** Removes what a command made at a path that was missing, or the link that leads to it; returns which. Follows none. */
export function removeMade(root: string, path: string): string | undefined {
  const names = path.split('/')
  let folder = OpenFolder.at(root)
  try {
    for (const [i, name] of names.entries()) {
      const entry = join(folder.base, name)
      const found = lstatSync(entry, orNothing)
      if (found === undefined) return undefined
      if (i === names.length - 1 || !found.isDirectory()) {
        rmSync(entry, { recursive: true, force: true })
        return names.slice(0, i + 1).join('/')
      }
      const next = folder.child(name)
      folder[Symbol.dispose]()
      folder = next
    }
    return undefined
  } finally {
    folder[Symbol.dispose]()
  }
}

/** How deep repositories inside the workspace are looked for, and in how many folders at most. */
const deepest = 3
const mostFolders = 2_000

function repositoriesIn(root: string, from = '', depths = deepest): string[] {
  const found: string[] = []
  let looked = 0
  let level = [from]
  for (let depth = 0; depth < depths && level.length > 0; depth++) {
    const next: string[] = []
    for (const folder of level) {
      for (const entry of entriesOf(join(root, folder))) {
        if (!entry.isDirectory() || entry.name === 'node_modules' || entry.name.startsWith('.')) continue
        if (++looked > mostFolders) return found
        const path = join(folder, entry.name)
        if (lstatSync(join(root, path, '.git'), orNothing) !== undefined) found.push(path)
        next.push(path)
      }
    }
    level = next
  }
  return found
}

/** The folder in which a repository keeps its index, by a real path; undefined where there is none inside the workspace. */
function gitFolderOf(root: string, folder: string): string | undefined {
  const git = join(root, folder, '.git')
  const found = lstatSync(git, orNothing)
  if (found?.isDirectory()) return git
  if (found === undefined) return undefined
  const [, target] = found.isFile() ? (/^gitdir: (.+)$/m.exec(textOf(git)) ?? []) : ['', '.git']
  const path = target && relative(root, isAbsolute(target) ? target : join(root, folder, target))
  if (!path) return undefined
  const inside = targetInside(root, path) ?? path
  return isInside(inside) && isFolder(root, inside) ? join(root, inside) : undefined
}

/** No link is on the way to it. */
function isFolder(root: string, path: string): boolean {
  let at = root
  for (const name of path.split('/')) {
    at = join(at, name)
    if (!lstatSync(at, orNothing)?.isDirectory()) return false
  }
  return true
}

function isPlain(path: string): boolean {
  return isInside(path) && !path.split('/').includes('.git')
}

const nothing: Settings = { settings: [], missing: [] }

/** Of a folder `.git`, or of a file of that name that points to one. */
function settingsOf(root: string, git: string): Settings {
  const found = lstatSync(join(root, git), orNothing)
  if (found === undefined) return nothing
  if (found.isSymbolicLink()) {
    const inside = targetInside(root, git)
    const { settings, missing } = inside === undefined ? nothing : settingsOf(root, inside)
    return { settings: [git, ...settings], missing }
  }
  if (found.isFile()) return { settings: [git], missing: [] }
  const below = [...gitFoldersIn(root, join(git, 'modules')), ...gitFoldersIn(root, join(git, 'worktrees'))]
  const inner = below.flatMap(folder => ['hooks', 'info', ...files].map(name => join(folder, name)))
  const isThere = (path: string) => lstatSync(join(root, path), orNothing) !== undefined
  const own = files.map(name => join(git, name))
  // Without these folders, git looks for them, and would find what a command makes.
  const always = ['hooks', 'info'].map(name => join(git, name))
  const settings = [...always, ...[...own, ...inner].filter(isThere)]
  const pointed = pointedTo(root, git, settings)
  const all = [...settings, ...pointed.settings]
  // A link is no place for a mount: what it leads to is.
  const led = all.map(path => targetInside(root, path)).filter(path => path !== undefined)
  return { settings: [...all, ...led], missing: [...own.filter(path => !isThere(path)), ...pointed.missing] }
}

const files = ['config', 'config.worktree', 'commondir', 'gitdir']

/** Where a path leads that goes through a link; undefined when it does not, or leads out of the workspace. */
export function targetInside(root: string, path: string): string | undefined {
  try {
    const inside = relative(root, realpathSync.native(join(root, path)))
    return isInside(inside) && inside !== path ? inside : undefined
  } catch {
    return undefined
  }
}

function isInside(path: string): boolean {
  return path !== '' && path !== '..' && !path.startsWith('../') && !isAbsolute(path)
}

/** Folders of submodules and worktrees; names of submodules may hold slashes. */
function gitFoldersIn(root: string, folder: string, depth = 0): string[] {
  if (depth > 4) return []
  return entriesOf(join(root, folder))
    .filter(entry => entry.isDirectory())
    .flatMap(entry => {
      const path = join(folder, entry.name)
      const isOne = lstatSync(join(root, path, 'HEAD'), orNothing) !== undefined
      return isOne
        ? [path, ...gitFoldersIn(root, join(path, 'modules'), depth + 1)]
        : gitFoldersIn(root, path, depth + 1)
    })
}

/** Keys whose values name files that git reads settings from or runs. */
const pointers =
  /^\s*(path|hookspath|attributesfile|fsmonitor|sshcommand|editor|pager|program|command|cmd|helper|driver|textconv|clean|smudge|process|askpass)\s*=\s*(.*)$/gim
const mostFiles = 50

/**
 * Files and folders of the workspace that settings point to, such as `core.hooksPath = .husky`, and settings that other settings include. A folder of hooks
 * that is missing counts as one that is there, and is made to be guarded.
 */
function pointedTo(root: string, git: string, settings: readonly string[]): Settings {
  const found = new Set<string>()
  const missing = new Set<string>()
  const isThere = (path: string) => lstatSync(join(root, path), orNothing) !== undefined
  const read = settings.filter(one => /(^|\/)config(\.worktree)?$/.test(one))
  for (let i = 0; i < Math.min(read.length, mostFiles); i++) {
    const path = read[i] as string
    for (const [, key = '', value = ''] of textOf(join(root, path)).matchAll(pointers)) {
      const kind = key.toLowerCase()
      const words = value.split(/[\s"']+/).filter(one => one !== '' && !one.startsWith('-'))
      for (const [at, word] of words.entries()) {
        for (const base of [dirname(git), dirname(path)]) {
          const target = relative(root, isAbsolute(word) ? word : join(root, base, word))
          if (!isInside(target)) continue
          if (isThere(target)) found.add(target)
          else if (at === 0 && isMeant(kind, word) && base === dirname(kind === 'path' ? path : git))
            (kind === 'hookspath' ? found : missing).add(target)
          if (kind === 'path' && isThere(target) && !read.includes(target)) read.push(target)
        }
      }
    }
  }
  // The folder that holds everything git does would be all of it.
  const isPart = (path: string) => path !== git && !git.startsWith(`${path}/`)
  return { settings: [...found].filter(isPart), missing: [...missing].filter(isPart) }
}

/** Not every word of a setting is a file that git would look for. */
function isMeant(kind: string, word: string): boolean {
  return !/^[~!%]/.test(word) && (/^(path|hookspath|attributesfile)$/.test(kind) || word.includes('/'))
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8').slice(0, 1_000_000)
  } catch {
    return ''
  }
}

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return []
  }
}
