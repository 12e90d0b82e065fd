import { newId } from '../../../base/ids.ts'
import { markPattern, stateOf, thisMark } from '../../../base/process.ts'
import { projectOf } from '../../workspace/fork/owner.ts'

/** Of every container and image of ours. */
export const sandboxLabel = 'openrath.sandbox'
const processLabel = 'openrath.process'
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
    [processLabel]: thisMark(),
    [projectLabel]: projectOf(process.cwd()),
    [specLabel]: JSON.stringify(spec),
  }
}

/** Says who owns it now: labels cannot be changed, and a name can. */
export function ownName(): string {
  return `openrath-${thisMark()}-${newId()}`
}

/** The process that something belongs to, by its name or else its label, when that process is gone; undefined otherwise. */
export function goneOwnerOf(
  names: readonly string[],
  labels: Readonly<Record<string, string>>,
): number | undefined {
  const mark = names.map(name => inName.exec(name)?.[1]).find(Boolean) ?? labels[processLabel]
  return mark !== undefined && stateOf(mark) === 'gone' ? Number.parseInt(mark, 10) : undefined
}

const inName = new RegExp(`(?:^|/)(?:openrath-|${forkImages}:)(${markPattern})-`)
