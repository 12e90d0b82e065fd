import type { Json } from '../../base/json.ts'
import type { Match } from './match.ts'
import type { ShellCommand } from './shell.ts'

/** What a policy is made of. Every part that is there must let a call pass; a part that is not there says nothing. */
export interface PolicyRules {
  /** Shown by `describe` and in reasons. */
  readonly name?: string
  /** Only calls that one of these fits. Absent: any. */
  readonly allow?: readonly CallRule[]
  /** No call that one of these fits. */
  readonly deny?: readonly CallRule[]
  /** Calls that a person has to approve. */
  readonly approval?: readonly CallRule[]
  readonly paths?: readonly PathRule[]
  readonly commands?: readonly CommandRule[]
  readonly calls?: readonly CountRule[]
}

/** A tool's name or a glob over names (`*`, `?`), or that with conditions on the arguments. */
export type CallRule =
  | string
  | {
      readonly tool: string | readonly string[]
      /**
       * Conditions by path into the arguments: `url`, `files[*].path`. All must hold. Where a path leads to several values, an
       * `allow` rule needs all of them to match, the others any.
       */
      readonly when?: { readonly [path: string]: Match }
      /** Told to the model when the rule denies. */
      readonly reason?: string
    }

/** Arguments that are paths must stay inside the roots, links followed. */
export interface PathRule {
  readonly tool: string | readonly string[]
  /** Paths into the arguments; `path` by default. An argument that is absent is not checked. */
  readonly argument?: string | readonly string[]
  /** Folders, relative to the workspace or absolute. */
  readonly roots: readonly string[]
  /** What relative paths in the arguments start from; the workspace by default, as for the tools that take them. */
  readonly base?: string
}

/** Arguments that are shell commands. With `allow`, a line passes only if every shell reads it in the same way and all that it runs is known. */
export interface CommandRule {
  readonly tool: string | readonly string[]
  /** Paths into the arguments; `cmd` by default. */
  readonly argument?: string | readonly string[]
  /** Every command of the line must fit one of these. */
  readonly allow?: readonly CommandMatch[]
  /** No command of the line may fit one of these. A command given by path, `/bin/rm`, counts by its name too. */
  readonly deny?: readonly CommandMatch[]
  /**
   * Variables that the line may set, besides those of one lowercase letter: names or globs. With `allow`: none by default; else any. One that the
   * shell or the loader acts on, such as `PATH`, must be named itself.
   */
  readonly variables?: readonly string[]
  /** Folders that redirections may read and write. With `allow`: none by default; else any. */
  readonly redirects?: readonly string[]
  /** The argument that says where the command runs, for relative redirections; `cwd` by default. */
  readonly cwd?: string
}

/** The first words of a command, each a glob: `git status` fits `git status -s`. Or a function over the whole of it. */
export type CommandMatch = string | ((command: ShellCommand) => boolean)

/** At most so many calls in a session, its history included; forks start from what their history holds. */
export interface CountRule {
  readonly tool: string | readonly string[]
  readonly most: number
}

/** What a policy is asked about. */
export interface PolicyCall {
  readonly tool: string
  readonly args: Json
}
