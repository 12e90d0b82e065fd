import { RathError, show } from '../base/errors.ts'

/**
 * Where a session is in the tree of forks: the labels from the trunk outwards, joined by `/`. The trunk is the empty
 * string. A fork without a label is named by its ordinal, `#0`, among the forks of its value.
 */
export type Branch = string

export const trunk: Branch = ''

export function branchOff(parent: Branch, label: string | undefined, ordinal: number): Branch {
  const name = label === undefined ? `#${ordinal}` : escapeLabel(label)
  return parent === trunk ? name : `${parent}/${name}`
}

/** The labels alone. Ordinals count forks in the order of time, and are no part of what anything is asked from. */
export function labelsOf(branch: Branch): Branch {
  if (!branch.includes('#')) return branch
  return branch
    .split('/')
    .filter(name => !name.startsWith('#'))
    .join('/')
}

export function checkLabel(label: unknown, name = 'a fork label'): asserts label is string {
  if (typeof label !== 'string' || label === '' || label.startsWith('#')) {
    throw new RathError(
      'invalid-argument',
      `${name} must be a non-empty string that does not start with "#" (reserved for ordinals), not ${show(label)}.`,
    )
  }
}

/** The innermost branch that all of these come from. */
export function commonBranch(branches: readonly Branch[]): Branch {
  let common = branches[0]?.split('/') ?? []
  for (const branch of branches) {
    const names = branch.split('/')
    const differs = common.findIndex((name, i) => names[i] !== name)
    if (differs >= 0) common = common.slice(0, differs)
  }
  return common.join('/')
}

/** The escapes of JSON Pointer, so that a label may hold a slash. */
function escapeLabel(label: string): string {
  return label.replaceAll('~', '~0').replaceAll('/', '~1')
}
