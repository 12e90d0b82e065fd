import { statSync } from 'node:fs'
import type { Owner } from '../../host/files.ts'
import type { HostFolder } from '../../spec.ts'
import { isRoot, type Programs } from './programs.ts'
import type { Machine } from './seccomp.ts'
import { leaveRoot, type Staged, spareUser } from './stage.ts'

/** Who commands are on this machine, outside their own namespace. */
export interface Identity {
  /**
   * `self`: the user of this process, who is not root. `spare`: a user that nobody is, to whom the workspace is shown as his own. `owner`:
   * the owner of the workspace, where it lies in a mount that cannot be shown so; root then has no capabilities, and is nobody special in
   * a namespace of his own, but is not limited in processes by number, only by a cgroup.
   */
  readonly kind: 'self' | 'spare' | 'owner'
  /** Of root's files in the workspace, and of commands unless `spare`. */
  readonly owner: Owner | undefined
  /** Who is to own what is made for commands alone. */
  readonly user: Owner | undefined
}

export function identityIn({ path, enter }: HostFolder): Identity {
  if (!isRoot()) return { kind: 'self', owner: undefined, user: undefined }
  const { uid, gid } = statSync(path)
  const owner = { uid, gid }
  if (enter !== undefined) return { kind: 'owner', owner, user: owner }
  const spare = spareUser()
  return { kind: 'spare', owner, user: { uid: spare, gid: spare } }
}

/** What is put before bubblewrap to be that user. */
export function become(
  { kind, user }: Identity,
  { root }: Programs,
  machine: Machine,
  staged: readonly Staged[],
): string[] {
  if (root === undefined || user === undefined || (kind === 'owner' && user.uid === 0)) return []
  if (kind === 'spare') return leaveRoot(root, machine, user.uid, staged)
  return [
    root.setpriv,
    '--reuid',
    String(user.uid),
    '--regid',
    String(user.gid),
    '--clear-groups',
    '--inh-caps=-all',
  ]
}
