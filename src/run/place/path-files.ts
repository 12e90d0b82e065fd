import { readlinkSync, realpathSync } from 'node:fs'
import { realPathIn, viewOf } from '../../sandbox/host/real-path.ts'
import type { Sandbox } from '../../sandbox/spec.ts'
import type { PathFiles } from '../../tool/policy/path-root.ts'

/** The workspace as path rules see it; undefined for one that this machine cannot look into. */
export function pathFiles({ hostPath, cwd }: Sandbox): PathFiles | undefined {
  if (hostPath === undefined) return undefined
  const view = viewOf(hostPath)
  // Without another thread, the way to which takes longer than the answer.
  return {
    folder: cwd,
    realpath: async path => (view === undefined ? realpathSync.native(path) : realPathIn(view.root, path)),
    readlink: async path => readlinkSync((view?.root ?? '') + path),
  }
}
