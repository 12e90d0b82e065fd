import { hostname } from 'node:os'
import { newId } from '../../../base/ids.ts'
import { projectOf } from '../../workspace/fork/owner.ts'

/** Of every container and image of ours. */
export const sandboxLabel = 'openrath.sandbox'
const hostLabel = 'openrath.host'
const pidLabel = 'openrath.pid'
/** The folder that the process was started in, in a few letters. */
export const projectLabel = 'openrath.project'
/** What `attach` needs to know, and secrets are no part of. */
export const specLabel = 'openrath.spec'

/** Images of forks, which are removed with the last of them. */
export const forkImages = 'openrath-fork'
/** Images that `snapshot` made, which stay. */
export const snapshotImages = 'openrath-snapshot'

export function ownLabels(sandbox: string, spec: object): Record<string, string> {
  return {
    [sandboxLabel]: sandbox,
    [hostLabel]: hostname(),
    [pidLabel]: String(process.pid),
    [projectLabel]: projectOf(process.cwd()),
    [specLabel]: JSON.stringify(spec),
  }
}

/** Says who owns it now: labels cannot be changed, and a name can. */
export function ownName(): string {
  return `openrath-${process.pid}-${newId()}`
}

/** The process that something belongs to, by its name or else its label; undefined when it is of another machine. */
export function ownerOf(
  names: readonly string[],
  labels: Readonly<Record<string, string>>,
): number | undefined {
  if (labels[hostLabel] !== hostname()) return undefined
  for (const name of names) {
    const pid = /(?:^|\/)openrath-(\d+)-/.exec(name)?.[1] ?? /openrath-fork:(\d+)-/.exec(name)?.[1]
    if (pid !== undefined) return Number(pid)
  }
  return labels[pidLabel] === undefined ? undefined : Number(labels[pidLabel])
}
