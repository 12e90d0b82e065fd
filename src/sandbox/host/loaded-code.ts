import { readFileSync, realpathSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { foldersOf, trustedPath } from '../../base/programs.ts'

/** Past so many, the folders of loaded files are read-only and not each file: every one is a mount for every command. */
const mostFiles = 64

/**
 * What of a folder this process has loaded code from, or loads from later: relative paths of files and folders, none inside another. It is whole
 * folders `node_modules`, this package itself, folders of the PATH, and each loaded file besides.
 */
export function loadedCodeIn(root: string): string[] {
  const own = ownPackage()
  const loaded = within(root, [...loadedFiles(), ...(process.argv[1] === undefined ? [] : [process.argv[1]])])
  const files = loaded.filter(path => modulesOf(path) === undefined)
  const found = [
    ...loaded.map(modulesOf),
    ...within(root, own.code).map(path => modulesOf(path) ?? path),
    ...within(root, foldersOf(trustedPath())).map(path => modulesOf(path) ?? path),
    ...files.flatMap(modulesBeside).filter(path => isThere(join(root, path))),
    // One that is missing would be looked into first once a command has made it.
    ...within(root, [own.root]).flatMap(modulesBeside),
    ...(files.length > mostFiles ? files.map(file => (dirname(file) === '.' ? file : dirname(file))) : files),
  ]
  return outermost(found.filter(path => path !== undefined))
}

/**
 * Folders `node_modules` that are not there, and in which a loaded file's next import would be looked for before the others: relative paths. There can
 * be one beside every folder of code, too many to make and to mount.
 */
export function missingModulesIn(root: string): string[] {
  const files = within(root, loadedFiles()).filter(path => modulesOf(path) === undefined)
  return [...new Set(files.flatMap(modulesBeside))].filter(path => !isThere(join(root, path)))
}

/** The folder `node_modules` that a path lies in, the outermost; undefined outside of one. */
function modulesOf(path: string): string | undefined {
  const names = path.split(sep)
  const at = names.indexOf('node_modules')
  return at < 0 ? undefined : names.slice(0, at + 1).join(sep)
}

/** Folders above a path, up to the root, in which modules that it imports are looked for. */
function modulesBeside(path: string): string[] {
  if (modulesOf(path) !== undefined) return []
  const found: string[] = []
  for (let at = path; at !== '.'; at = dirname(at)) found.push(join(dirname(at), 'node_modules'))
  return found
}

/**
 * This package: its folder in a `node_modules`, or all of a checkout. Where the checkout is the workspace itself, the folder its code was loaded
 * from, what says how that is read, and its packages.
 */
function ownPackage(): { readonly root: string; readonly code: readonly string[] } {
  const here = fileURLToPath(import.meta.url)
  let root = dirname(here)
  while (dirname(root) !== root && !isOwn(join(root, 'package.json'))) root = dirname(root)
  const folder = relative(root, here).split(sep)[0] as string
  return { root, code: [root, join(root, folder), join(root, 'package.json'), join(root, 'node_modules')] }
}

function isOwn(path: string): boolean {
  try {
    return (JSON.parse(readFileSync(path, 'utf8')) as { name?: unknown }).name === 'openrath'
  } catch {
    return false
  }
}

/**
 * Files of every script of this process, of ES modules too, which nothing else in Node lists. Takes some 20 ms. Empty where the debugger's side of Node is
 * missing or forbidden; then the packages are still known by their folders.
 */
function loadedFiles(): readonly string[] {
  if (last !== undefined && performance.now() - last.at < 1_000) return last.files
  const files = askForFiles()
  last = { at: performance.now(), files }
  return files
}

/** Several sandboxes are often opened at once. */
let last: { readonly at: number; readonly files: readonly string[] } | undefined

function askForFiles(): string[] {
  const require = createRequire(import.meta.url)
  const required = Object.keys(require.cache)
  const files: string[] = []
  try {
    // Not every Node is built with it, so it cannot be a static import.
    const { Session } = require('node:inspector') as typeof import('node:inspector')
    const session = new Session()
    session.connect()
    session.on('Debugger.scriptParsed', ({ params: { url } }) => {
      if (url.startsWith('file:')) files.push(url)
    })
    session.post('Debugger.enable')
    session.disconnect()
  } catch {
    return required
  }
  return [...required, ...files.flatMap(pathOf)]
}

function pathOf(url: string): string[] {
  try {
    return [fileURLToPath(url.replace(/[?#].*$/, ''))]
  } catch {
    return []
  }
}

/** Those that lie in a folder, relative to it. Both may be reached through links. */
function within(root: string, paths: readonly string[]): string[] {
  const found = new Set<string>()
  for (const path of paths) {
    for (const one of [path, realOf(path)]) {
      const inside = one === undefined ? '..' : relative(root, one)
      if (inside !== '' && inside !== '..' && !inside.startsWith(`..${sep}`)) found.add(inside)
    }
  }
  return [...found]
}

function outermost(paths: readonly string[]): string[] {
  const kept: string[] = []
  for (const path of [...new Set(paths)].sort()) {
    if (!kept.some(folder => path.startsWith(folder + sep))) kept.push(path)
  }
  return kept
}

function realOf(path: string): string | undefined {
  try {
    return realpathSync.native(path)
  } catch {
    return undefined
  }
}

function isThere(path: string): boolean {
  return realOf(path) !== undefined
}
