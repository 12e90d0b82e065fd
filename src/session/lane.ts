/**
 * Which line of work a session is on, by names that no other line has: the forks and rewinds between the root and it, joined by `/`. The
 * root is the empty string. Where a branch says what an agent perceives, a lane says whose files it works in and whose memories it sees:
 * two forks with one label are one branch and two lanes.
 *
 * A part is the id of the session that began it. `~ID` shares the files of the lane before it, `@ID` was placed anew.
 */
export type Lane = string

export const rootLane: Lane = ''

export function laneOff(parent: Lane, id: string, workspace: 'own' | 'shared' = 'own'): Lane {
  return join(parent, workspace === 'shared' ? `~${id}` : id)
}

/** After `to`: the files are those of the new place itself, whatever was forked before. */
export function placedOn(lane: Lane, id: string): Lane {
  return lane === rootLane ? lane : join(lane, `@${id}`)
}

/** The innermost lane that all of these come from. */
export function commonLane(lanes: readonly Lane[]): Lane {
  let common = partsOf(lanes[0] ?? rootLane)
  for (const lane of lanes) {
    const parts = partsOf(lane)
    const differs = common.findIndex((part, i) => parts[i] !== part)
    if (differs >= 0) common = common.slice(0, differs)
  }
  return common.join('/')
}

/** The lane whose files a session on this one works in. */
export function filesLane(lane: Lane): Lane {
  const parts = partsOf(lane)
  while (parts.at(-1)?.startsWith('~')) parts.pop()
  return parts.join('/')
}

/** Whether the files of this lane are the placed folder itself, and not a copy of its own. */
export function isPlacedFolder(lane: Lane): boolean {
  const last = partsOf(filesLane(lane)).at(-1)
  return last === undefined || last.startsWith('@')
}

/** The lane it was forked off; the root has none. */
export function laneBefore(lane: Lane): Lane | undefined {
  const parts = partsOf(lane)
  return parts.length === 0 ? undefined : parts.slice(0, -1).join('/')
}

/** The lane around it whose files are the placed folder itself. */
export function placedLane(lane: Lane): Lane {
  let around = filesLane(lane)
  while (!isPlacedFolder(around)) around = filesLane(laneBefore(around) ?? rootLane)
  return around
}

function partsOf(lane: Lane): string[] {
  return lane === rootLane ? [] : lane.split('/')
}

function join(lane: Lane, part: string): Lane {
  return lane === rootLane ? part : `${lane}/${part}`
}
