import { readlink, realpath } from 'node:fs/promises'
import { realPathIn, viewOf } from '../../sandbox/host/real-path.ts'
import type { Sandbox } from '../../sandbox/spec.ts'
import type { PathFiles } from '../../tool/policy/path-root.ts'

/** The workspace as path rules see it; undefined for one that this machine cannot look into. */
export function pathFiles({ hostPath, cwd }: Sandbox): PathFiles | undefined {
  if (hostPath === undefined) return undefined
  const view = viewOf(hostPath)
  if (view === undefined) return { folder: cwd, realpath, readlink: path => readlink(path) }
  return {
    folder: cwd,
    realpath: async path => realPathIn(view.root, path),
    readlink: path => readlink(view.root + path),
  }
}
