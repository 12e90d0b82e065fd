import {
  closeSync,
  constants,
  fstatSync,
  lchownSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { newId } from '../../base/ids.ts'
import { OpenFolder } from '../workspace/open-folder.ts'
import { orNothing } from './or-nothing.ts'

/**
 * Leaves a repository that a command made without what makes git run programs: settings are those of the list below, hooks are set aside, and a
 * `.git` that points elsewhere is removed. Returns a sentence for each.
 */
export function tameRepository(root: string, folder = ''): string[] {
  const shown = join(folder, '.git')
  const path = join(root, shown)
  let git: OpenFolder
  try {
    // Through a handle: another command may put a link in the place of the folder.
    using around = OpenFolder.at(join(root, folder))
    git = around.child('.git')
  } catch {
    rmSync(path, { force: true })
    return [`the command made ${shown}, which sends git to the settings of another folder; removed`]
  }
  try {
    return tameFolder(git.base, shown)
  } finally {
    git[Symbol.dispose]()
  }
}

/** Whether git would take a folder itself for a repository. */
export function looksBare(folder: string): boolean {
  const has = (name: string) => statSync(join(folder, name), orNothing) !== undefined
  const head = lstatSync(join(folder, 'HEAD'), orNothing)
  return head !== undefined && !head.isDirectory() && (has('commondir') || (has('objects') && has('refs')))
}

function tameFolder(git: string, shown: string): string[] {
  const said: string[] = []
  const aside = (name: string, why: string) => {
    const to = `${name}.set-aside-${newId()}`
    renameSync(join(git, name), join(git, to))
    said.push(
      `the command made ${shown}/${name}${why}, which can make git run programs; it is now ${shown}/${to}`,
    )
  }
  for (const name of ['commondir', 'config.worktree'])
    if (lstatSync(join(git, name), orNothing) !== undefined) aside(name, '')
  const hooks = lstatSync(join(git, 'hooks'), orNothing)
  const isPlain =
    hooks?.isDirectory() && readdirSync(join(git, 'hooks')).every(name => name.endsWith('.sample'))
  if (hooks !== undefined && !isPlain) aside('hooks', '')
  const settings = readSettings(join(git, 'config'))
  if (settings === undefined) return said
  const { kept, dropped } = harmless(settings)
  if (dropped.length > 0) {
    aside('config', ` with ${dropped.join(', ')}`)
    writeFileSync(join(git, 'config'), kept, { flag: 'wx', mode: 0o644 })
    const { uid, gid } = statSync(git)
    if (process.getuid?.() === 0) lchownSync(join(git, 'config'), uid, gid)
  }
  return said
}

/** Undefined where there are none. What is no plain file is taken as a setting that is not known. */
function readSettings(path: string): string | undefined {
  if (lstatSync(path, orNothing) === undefined) return undefined
  try {
    const handle = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    try {
      const stat = fstatSync(handle)
      return stat.isFile() && stat.size < 1_000_000 ? readFileSync(handle, 'utf8') : 'unreadable'
    } finally {
      closeSync(handle)
    }
  } catch {
    return 'unreadable'
  }
}

/** Settings that start nothing, by section. */
const known: Readonly<Record<string, string>> = {
  core: 'repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks autocrlf eol safecrlf quotepath',
  user: 'name email',
  author: 'name email',
  committer: 'name email',
  init: 'defaultbranch',
  remote: 'url fetch',
  branch: 'remote merge rebase',
  pull: 'rebase ff',
  push: 'default autosetupremote',
  merge: 'ff conflictstyle',
  color: 'ui',
  commit: 'gpgsign',
  advice: 'detachedhead',
  extensions: 'objectformat',
}

/** Line by line: one that is not plainly among the known ones is dropped, with all that follows from it. */
function harmless(settings: string): { readonly kept: string; readonly dropped: readonly string[] } {
  let section = ''
  const kept: string[] = []
  const dropped = new Set<string>()
  for (const line of settings.split('\n')) {
    const title = /^\[(\w+)(?: "[\w./-]*")?\]\s*$/.exec(line)
    const [, key = '', value = ''] = /^\s*(\w+)\s*=\s*([^"\\;#\r]*)$/.exec(line) ?? []
    const isKnown = (known[section] ?? '').split(' ').includes(key.toLowerCase())
    // An address such as ext::program runs one.
    const isSetting = key !== '' && isKnown && !value.includes('::')
    if (title)
      section = Object.hasOwn(known, title[1]?.toLowerCase() ?? '') ? (title[1] as string).toLowerCase() : ''
    if (title ? section !== '' : isSetting || line.trim() === '') kept.push(line)
    else dropped.add(title ? `[${title[1]}]` : key || 'a line that is not plain')
  }
  return { kept: kept.join('\n'), dropped: [...dropped] }
}
