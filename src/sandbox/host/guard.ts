import {
  chownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
} from 'node:fs'
import { dirname, isAbsolute, join, relative } from 'node:path'
import { RathError, show } from '../../base/errors.ts'
import { isAtOrBelow } from '../../base/platform.ts'
import { loadedCodeIn } from './loaded-code.ts'
import { orNothing } from './or-nothing.ts'

/** The folder of a workspace that holds the record of what happened in it. Commands neither see nor change it. */
export const recordFolder = '.openrath'

/**
 * Parts of a workspace that decide what programs run outside the sandbox: `code` that this process has loaded, and settings of `git`. They are
 * read-only unless the spec names them in `writable`.
 */
export type GuardedPart = 'code' | 'git'

export function isParts(value: unknown): value is readonly GuardedPart[] {
  return Array.isArray(value) && value.every(part => part === 'code' || part === 'git')
}

export interface Guarded {
  /** Relative to the workspace. */
  readonly path: string
  readonly part: GuardedPart
}

/** What of one workspace is to be mounted over itself, outermost first, and how. */
export interface GuardMount {
  readonly path: string
  readonly isReadOnly: boolean
}

export class Guard {
  readonly #root: string
  readonly #mayHoldCode: boolean
  #code: readonly Guarded[] | undefined
  readonly #repositories: readonly string[]

  /** Code, and repositories below the top, are looked for once. The folder of a branch holds no code that was loaded. */
  constructor(root: string, writable: readonly GuardedPart[], mayHoldCode = true) {
    this.#root = root
    this.#repositories = writable.includes('git') ? [] : ['', ...repositoriesIn(root)]
    this.#mayHoldCode = mayHoldCode && !writable.includes('code')
  }

  /** Looked for when first asked. */
  get code(): readonly Guarded[] {
    this.#code ??= this.#mayHoldCode ? loadedCodeIn(this.#root).map(path => ({ path, part: 'code' })) : []
    return this.#code
  }

  /** Everything that is guarded now. A repository that a command makes at the top counts from the next command on. */
  all(): readonly Guarded[] {
    const git = this.#repositories.flatMap(folder => settingsOf(this.#root, join(folder, '.git')))
    return [...this.code, ...[...new Set(git)].map((path): Guarded => ({ path, part: 'git' }))]
  }

  /**
   * Mounts for one command. Folders on the way to something guarded are mounts too, since the kernel moves and removes anything but a mount, and
   * a folder moved away could be made again with other files. Makes the folders that have to be there to be guarded.
   */
  mounts(): readonly GuardMount[] {
    const mounts = new Map<string, boolean>()
    for (const { path } of this.all()) {
      const kind = this.#make(path)
      // A link is not followed: it could lead a mount out of the workspace.
      if (kind === undefined) continue
      mounts.set(path, true)
      for (let at = dirname(path); at !== '.'; at = dirname(at)) if (!mounts.has(at)) mounts.set(at, false)
    }
    const paths = [...mounts].map(([path, isReadOnly]) => ({ path, isReadOnly }))
    // What lies in something read-only is read-only by that.
    return paths
      .filter(one => !paths.some(two => two.isReadOnly && one.path.startsWith(`${two.path}/`)))
      .sort((one, two) => (one.path < two.path ? -1 : 1))
  }

  /** Refuses to change an entry that is guarded, lies in something guarded, or holds it. */
  check(relativePath: string): void {
    for (const { path, part } of this.all()) {
      if (isAtOrBelow(relativePath, path) || isAtOrBelow(path, relativePath))
        throw readOnly(relativePath, path, part)
    }
  }

  /**
   * Called before a command; what it returns is called after it. A file `commondir` in a `.git` sends git to the settings of another folder, and what
   * is not there cannot be mounted over: one that a command made is removed.
   */
  watch(): () => string {
    const pointers = this.#repositories.map(folder => join(folder, '.git/commondir'))
    const missing = pointers.filter(path => lstatSync(join(this.#root, path), orNothing) === undefined)
    return () => {
      const made = missing.filter(path => lstatSync(join(this.#root, path), orNothing) !== undefined)
      for (const path of made) rmSync(join(this.#root, path), { recursive: true, force: true })
      return made
        .map(path => `openrath: the command made ${path}, which can make git run programs; removed\n`)
        .join('')
    }
  }

  #make(path: string): 'file' | 'folder' | undefined {
    let here = this.#root
    for (const name of path.split('/')) {
      here = join(here, name)
      const found = lstatSync(here, orNothing)
      if (found === undefined) makeFolder(here)
      else if (!found.isDirectory())
        return found.isFile() && here === join(this.#root, path) ? 'file' : undefined
    }
    return 'folder'
  }
}

function readOnly(path: string, guarded: string, part: GuardedPart): RathError {
  const why =
    part === 'code'
      ? `${guarded} holds code that the program which runs you has loaded. Work in a fork, which has files of its own, or in another folder.`
      : `${guarded} can make git run programs. Commit as usual; to change settings of git, ask the person who placed this session.`
  return new RathError('path-read-only', `${show(path)} is read-only here: ${why}`, {
    data: { path, guarded, part },
  })
}

/** There is always one to be mounted on, so that no command can make it. */
export function makeRecordFolder(workspace: string): void {
  const path = join(workspace, recordFolder)
  const found = lstatSync(path, orNothing)
  if (found === undefined) makeFolder(path, 0o700)
  else if (!found.isDirectory()) {
    throw new RathError(
      'sandbox-unavailable',
      `${show(path)} is a ${found.isSymbolicLink() ? 'link' : 'file'}, and has to be a folder or missing to be kept from commands. Remove it.`,
      { data: { path } },
    )
  }
}

export function recordError(path: string): RathError {
  return new RathError(
    'path-outside',
    `${show(path)} is not part of the workspace: ${recordFolder} holds the record of what happened in it.`,
    { data: { path } },
  )
}

/** Of root's making, it belongs to whoever owns the folder around it. */
function makeFolder(path: string, mode = 0o755): void {
  mkdirSync(path, { mode })
  if (process.getuid?.() !== 0) return
  const { uid, gid } = statSync(dirname(path))
  chownSync(path, uid, gid)
}

/** How deep repositories inside the workspace are looked for, and in how many folders at most. */
const deepest = 3
const mostFolders = 2_000

function repositoriesIn(root: string): string[] {
  const found: string[] = []
  let looked = 0
  let level = ['']
  for (let depth = 0; depth < deepest; depth++) {
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

/** Of a folder `.git`, or of a file of that name that points to one. */
function settingsOf(root: string, git: string): string[] {
  const found = lstatSync(join(root, git), orNothing)
  if (found === undefined) return []
  if (found.isSymbolicLink()) return linkedSettings(root, git)
  if (found.isFile()) return [git]
  // Without these, git looks for them in vain, and would find what a command makes.
  const always = ['config', 'hooks', 'info'].map(name => join(git, name))
  const others = ['config.worktree', 'commondir', 'gitdir'].map(name => join(git, name))
  const below = [...gitFoldersIn(root, join(git, 'modules')), ...gitFoldersIn(root, join(git, 'worktrees'))]
  const inner = below.flatMap(folder =>
    ['config', 'config.worktree', 'hooks', 'info', 'commondir', 'gitdir'].map(name => join(folder, name)),
  )
  const isThere = (path: string) => lstatSync(join(root, path), orNothing) !== undefined
  const settings = [
    ...always.filter(path => !path.endsWith('config') || isThere(path)),
    ...[...others, ...inner].filter(isThere),
  ]
  return [...settings, ...pointedTo(root, git, [...settings])]
}

function linkedSettings(root: string, git: string): string[] {
  try {
    const inside = relative(root, realpathSync.native(join(root, git)))
    const isInside = inside !== '' && !inside.startsWith('..') && !isAbsolute(inside)
    return isInside ? settingsOf(root, inside) : []
  } catch {
    return []
  }
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

/** Files and folders of the workspace that settings point to, such as `core.hooksPath = .husky`. */
function pointedTo(root: string, git: string, settings: readonly string[]): string[] {
  const found = new Set<string>()
  for (const path of settings.filter(one => /(^|\/)config(\.worktree)?$/.test(one))) {
    for (const [, , value = ''] of textOf(join(root, path)).matchAll(pointers)) {
      for (const word of value.split(/[\s"']+/).filter(one => one !== '' && !one.startsWith('-'))) {
        for (const base of [dirname(git), dirname(path)]) {
          const target = relative(root, isAbsolute(word) ? word : join(root, base, word))
          const isInside = target !== '' && !target.startsWith('..') && !isAbsolute(target)
          if (isInside && lstatSync(join(root, target), orNothing) !== undefined) found.add(target)
        }
      }
    }
  }
  // The folder that holds everything git does would be all of it.
  return [...found].filter(path => path !== git && !git.startsWith(`${path}/`))
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
