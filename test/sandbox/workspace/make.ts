import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { ObjectStore } from '../../../src/sandbox/workspace/objects.ts'
import { Workspace, type WorkspaceOptions } from '../../../src/sandbox/workspace/workspace.ts'

/** A store, and folders to keep in it; gone when disposed of. */
export interface Lab extends Disposable {
  readonly root: string
  readonly objects: ObjectStore
  /** A new workspace, with these files in it. */
  workspace(files?: Files, options?: WorkspaceOptions): Promise<Workspace>
  /** What git says of the store. */
  git(...args: string[]): string
  /** What git finds wrong with the store; objects that no branch of git's leads to are not wrong. */
  fsck(): string[]
}

/** Content by path. A path that ends in `/` is an empty folder, `-> target` a link, a pair a file with a mode. */
export type Files = Readonly<Record<string, string | Uint8Array | readonly [string, number]>>

export async function lab(): Promise<Lab> {
  const root = mkdtempSync(join(tmpdir(), 'openrath-workspace-'))
  const objects = await ObjectStore.open(join(root, 'store'))
  let count = 0
  return {
    root,
    objects,
    async workspace(files = {}, options = {}) {
      const folder = join(root, `w${count++}`)
      mkdirSync(folder)
      write(folder, files)
      return Workspace.open(folder, objects, options)
    },
    git: (...args) =>
      execFileSync('git', ['--git-dir', objects.path, ...args], { encoding: 'utf8', stdio: 'pipe' }),
    fsck() {
      const { stdout, stderr } = spawnSync('git', ['--git-dir', objects.path, 'fsck', '--strict', '--full'], {
        encoding: 'utf8',
      })
      return `${stdout}\n${stderr}`
        .split('\n')
        .filter(line => !/^(dangling |notice: |Checking |$)/.test(line))
    },
    [Symbol.dispose]() {
      objects.close()
      execFileSync('chmod', ['-R', 'u+rwX', root])
      rmSync(root, { recursive: true, force: true })
    },
  }
}

export function write(folder: string, files: Files): void {
  for (const [path, content] of Object.entries(files)) {
    const whole = join(folder, path)
    mkdirSync(path.endsWith('/') ? whole : dirname(whole), { recursive: true })
    if (path.endsWith('/')) continue
    if (typeof content === 'string' && content.startsWith('-> ')) {
      symlinkSync(content.slice(3), whole)
    } else if (typeof content === 'string' || content instanceof Uint8Array) {
      writeFileSync(whole, content)
    } else {
      writeFileSync(whole, content[0])
      chmodSync(whole, content[1])
    }
  }
}

/** Everything in a folder, for comparing: kinds, modes, content, links; also names that are no text. */
export function listing(folder: string): Record<string, string> {
  const found: Record<string, string> = {}
  const walk = (path: Buffer, name: string) => {
    for (const entry of readdirSync(path, { encoding: 'buffer' })) {
      const whole = Buffer.concat([path, Buffer.from('/'), entry])
      const shown = `${name}${entry.toString('latin1')}`
      const stat = lstatSync(whole)
      const mode = (stat.mode & 0o7777).toString(8)
      if (stat.isDirectory()) {
        found[`${shown}/`] = mode
        walk(whole, `${shown}/`)
      } else if (stat.isSymbolicLink())
        found[shown] = `-> ${readlinkSync(whole, { encoding: 'buffer' }).toString('latin1')}`
      else found[shown] = stat.isFile() ? `${mode} ${readFileSync(whole).toString('latin1')}` : 'special'
    }
  }
  walk(Buffer.from(folder), '')
  return found
}
