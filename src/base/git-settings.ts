/**
 * Which of these changed paths, relative with `/`, can make git run a program the next time that somebody uses it there: settings and hooks of a
 * repository or of one below it, files that say where those are, and the settings of a folder that looks like a bare repository.
 */
export function gitSettingsIn(paths: readonly string[]): string[] {
  const all = new Set(paths)
  return paths.filter(path => isSetting(path) || isBare(path, all))
}

/** A sentence for whoever decides on a call, where one of its arguments names such a path or changes settings by a command. */
export function gitCaution(args: unknown): string | undefined {
  const texts = Object.values((args ?? {}) as Record<string, unknown>).filter(
    value => typeof value === 'string',
  )
  const isOne = texts.some(
    text =>
      gitSettingsIn([text]).length > 0 ||
      /\bgit\b[^\n;|&]*\bconfig\b|\.git\/(config|hooks|info|commondir)/i.test(text),
  )
  return isOne
    ? 'Caution: this changes or may change settings of git, which can run programs as you when you next use git there.'
    : undefined
}

const parts = /(?:^|\/)\.git(?:$|\/(?<inner>.*)$)/i

function isSetting(path: string): boolean {
  const found = parts.exec(path)
  if (found === null) return false
  const inner = found.groups?.inner
  // `.git` itself: a file that points elsewhere, a link, or a folder that came or went.
  if (inner === undefined || inner === '') return true
  return settings.test(inner)
}

const settings =
  /^((modules|worktrees)\/.+\/)?(config|config\.worktree|commondir|gitdir)$|^((modules|worktrees)\/.+\/)?(hooks|info)(\/|$)/i

/** A folder in which `config` changed, and what makes it a repository came with it. */
function isBare(path: string, all: ReadonlySet<string>): boolean {
  const [, folder = ''] = /^(.*\/)?config$/i.exec(path) ?? []
  return /(^|\/)config$/i.test(path) && all.has(`${folder}HEAD`)
}
