import type { Environment } from '../../host/environment.ts'
import { projectOf } from '../../workspace/fork/owner.ts'
import { connect, engineError } from './engine.ts'
import { forkImages, goneOwnerOf, projectLabel, sandboxLabel } from './owner.ts'

/** What a process left behind that ended without closing its sandboxes. */
export interface Leftover {
  readonly kind: 'container' | 'image'
  readonly id: string
  /** The process that it belonged to. */
  readonly pid: number
  /** Milliseconds since the epoch. */
  readonly created: number
}

export interface LeftoversOptions {
  /** Only those of programs that were started in this folder; by default those of the whole machine. */
  readonly folder?: string
  /** Only what was made so many milliseconds ago. */
  readonly olderThan?: number
  /** Only lists them; by default they are removed. */
  readonly keep?: boolean
  readonly socket?: string
  readonly environment?: Environment
}

/** Containers of processes of this machine that are gone, and the images of their forks. Snapshots stay. */
export async function leftovers(options: LeftoversOptions = {}): Promise<readonly Leftover[]> {
  const { keep = false, socket, environment = process.env, folder, olderThan = 0 } = options
  const isMeant = (labels: Readonly<Record<string, string>>, created: number) =>
    (folder === undefined || labels[projectLabel] === projectOf(folder)) &&
    created * 1000 <= Date.now() - olderThan
  const docker = await connect(socket, environment)
  try {
    const label = { label: [sandboxLabel] }
    const found: Leftover[] = []
    for (const { Id, Names, Labels, Created } of await docker.listContainers({ all: true, filters: label })) {
      const pid = goneOwnerOf(Names, Labels)
      if (pid === undefined || !isMeant(Labels, Created)) continue
      found.push({ kind: 'container', id: Id, pid, created: Created * 1000 })
      if (!keep) await docker.getContainer(Id).remove({ force: true, v: true })
    }
    for (const { Id, RepoTags, Labels, Created } of await docker.listImages({ filters: label })) {
      const names = (RepoTags ?? []).filter(name => name.includes(`${forkImages}:`))
      const pid = names.length === 0 ? undefined : goneOwnerOf(names, Labels ?? {})
      if (pid === undefined || !isMeant(Labels ?? {}, Created)) continue
      found.push({ kind: 'image', id: Id, pid, created: Created * 1000 })
      if (!keep) for (const name of names) await docker.getImage(name).remove({ force: true, noprune: true })
    }
    return found
  } catch (error) {
    throw engineError(error, 'looking for what was left behind')
  }
}
