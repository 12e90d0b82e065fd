import { normalizeResource } from '../schedule.ts'

/** Held by whatever changes or looks over the files as a whole, so that a list or a search sees what was written before it. */
export const allFiles = 'workspace:files'

/** `a.txt`, `./a.txt` and `b/../a.txt` are one file. A path that may be another name for any file waits for all of them. */
export function fileResources(path: string): string[] {
  const normal = normalizeResource(path)
  const isElsewhere = normal.startsWith('/') || normal.startsWith('..')
  return isElsewhere ? [`file:${normal}`, allFiles] : [`file:${normal}`]
}

/** For a tool that changes a file. */
export function changedFile(path: string): string[] {
  return [...new Set([...fileResources(path), allFiles])]
}
