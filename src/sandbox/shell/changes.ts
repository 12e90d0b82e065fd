import { RathError, show } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'

/** Something that changes whenever the file does, by path. */
export type Stamps = ReadonlyMap<string, string>

/** How many marks are remembered; older ones are refused. */
const most = 50

/** What the files were like when somebody looked, so that a later look tells which of them have changed since. */
export class ChangeMarks {
  readonly #beginning: Stamps
  readonly #marks = new Map<string, Stamps>()

  /** The files when the sandbox was opened. */
  constructor(beginning: Stamps = new Map()) {
    this.#beginning = beginning
  }

  /** The files that are new, changed or gone since a mark, in order, and a mark for what is there now. */
  compare(now: Stamps, since?: string): { readonly mark: string; readonly paths: readonly string[] } {
    const before = since === undefined ? this.#beginning : this.#marks.get(since)
    if (before === undefined) {
      throw new RathError(
        'invalid-argument',
        `${show(since)} is no mark of this sandbox, or an old one; the last ${most} are remembered.`,
      )
    }
    const paths = [...now.keys()].filter(path => before.get(path) !== now.get(path))
    for (const path of before.keys()) if (!now.has(path)) paths.push(path)
    const mark = newId()
    this.#marks.set(mark, now)
    for (const old of this.#marks.keys()) if (this.#marks.size > most) this.#marks.delete(old)
    return { mark, paths: paths.sort() }
  }
}

/** All that is no folder, with a line that changes with it: its inode too, since a write puts a new file there. */
export const stampScript = `
LC_ALL=C
export LC_ALL
cd "$1" || exit 1
find . ! -type d -print0
printf '\\0'
find . ! -type d -exec stat -c '%i %s %Y %Z %f %n' {} +
exit 0`

export function parseStamps(bytes: Uint8Array): Stamps {
  const [names = '', lines = ''] = new TextDecoder().decode(bytes).split('\0\0')
  const stamps = new Map<string, string>()
  let at = 0
  for (const name of names.split('\0')) {
    const end = lines.indexOf(` ${name}\n`, at)
    if (name === '' || end < 0) continue
    stamps.set(name.slice(2), lines.slice(at, end))
    at = end + name.length + 2
  }
  return stamps
}
