import type { JsonObject } from '../base/json.ts'

/** A path, or whatever the backend takes: what follows the name in `session.to('local', './')`. It is recorded, so it holds no secrets. */
export type SandboxSpec = string | JsonObject

/** A kind of place where commands run and files lie. */
export interface SandboxBackend {
  /** What `session.to(name)` calls it. */
  readonly name: string
  /** Of every sandbox it opens; one of them may say more about itself. */
  readonly capabilities: SandboxCapabilities
  /**
   * Whether commands of a sandbox with this spec may change something outside it after all: on a host that the spec allows. Where they may
   * not, and `network` and `fileWrite` are enforced, a command that was cut off can be run again on restored files.
   */
  reachesOut?(spec: SandboxSpec | undefined): boolean
  /** Whether it can open a sandbox here, and if not, what is missing. A backend without it always can. */
  probe?(): Promise<{ readonly available: boolean; readonly reason?: string }>
  /**
   * Opens a sandbox that nobody else uses. Without a spec it is empty, and nothing of it is left after `close`. An open that fails or is
   * aborted leaves nothing behind.
   */
  open(spec: SandboxSpec | undefined, options?: { readonly signal?: AbortSignal }): Promise<Sandbox>
  /** `openIn` wants a folder that can be mounted again under other owners, which the overlay of a branch cannot: give it a plain one. */
  readonly plainFolders?: boolean
  /**
   * Opens over another folder than the spec's, with everything else as the spec says: the files of a branch. Backends whose workspaces are
   * folders of this machine have it; for them the runtime keeps, forks and merges the files.
   */
  openIn?(
    folder: HostFolder,
    spec: SandboxSpec | undefined,
    options?: { readonly signal?: AbortSignal },
  ): Promise<Sandbox>
  /** Finds a sandbox again that another process left open, by its `id`. `sandbox-unavailable` when it is gone. */
  attach?(id: string, options?: { readonly signal?: AbortSignal }): Promise<Sandbox>
  /**
   * Ends what a process of this machine left running that is no more. `process` is its mark, which tells it from another that has its number by
   * now. Backends have it whose commands can outlive the process.
   */
  endLeftBy?(process: string): Promise<void>
}

/** A folder of this machine that a workspace lies in. */
export interface HostFolder {
  /** Where this process reads and writes it. */
  readonly path: string
  /** Where commands see it, when they see it somewhere else. */
  readonly inside?: string
  /** Put before every command, so that it sees the folder at `inside`: the way into the mount that it lies in. */
  readonly enter?: readonly string[]
}

/** What a sandbox enforces and can do. A backend that enforces less on some machine says so, or refuses to open. */
export interface SandboxCapabilities {
  readonly isolation: 'none' | 'process' | 'namespace' | 'container' | 'microvm' | 'vm'
  /** True where the backend makes sure of it whatever a command does, not where commands usually behave. */
  readonly enforced: {
    /** `files` cannot be led out of the workspace, by `..`, absolute paths or links. */
    readonly paths: boolean
    /** Commands do not get the environment of this process, but for harmless names and what the spec asks for. */
    readonly environment: boolean
    /** No process outlives its command, or the sandbox. */
    readonly processTree: boolean
    /** Commands cannot read files outside the workspace that are not part of the system. */
    readonly fileRead: boolean
    /** Commands cannot write files outside the workspace. */
    readonly fileWrite: boolean
    /** Commands reach only the hosts they were allowed. */
    readonly network: boolean
    readonly memory: boolean
    /** The number of processes is limited. */
    readonly processes: boolean
  }
  /** `exec` takes `stdin`. */
  readonly stdin: boolean
  /** Output arrives while the command runs. */
  readonly streaming: boolean
  /** Output arrives byte for byte; else it is text with `\n` between lines. */
  readonly binaryOutput: boolean
}

/** One open place. All of it may be used at once, from any number of sessions. */
export interface Sandbox extends AsyncDisposable {
  readonly id: string
  /** The backend's name. */
  readonly backend: string
  /** The workspace, as commands see it: an absolute path. */
  readonly cwd: string
  readonly capabilities: SandboxCapabilities
  /** Where the workspace lies on this machine, if it does. */
  readonly hostPath?: string
  /** The start of a command line that runs code of a language, where it is not the usual one: `{ javascript: ['/opt/node'] }`. */
  readonly interpreters?: Readonly<Record<string, readonly string[]>>
  readonly files: SandboxFiles
  /**
   * Starts a command: a string is for `/bin/sh -c`, a list is a program and its arguments, with no shell between. Returns at once;
   * a command that cannot start, or whose options are wrong, rejects `result`. Never throws.
   */
  exec(command: string | readonly string[], options?: ExecOptions): ExecHandle
  /**
   * Starts a program that is spoken to while it runs, such as an MCP server. Backends whose commands are processes of this machine may have it.
   * It ends with the sandbox at the latest.
   */
  startProgram?(command: readonly string[], options?: StartOptions): Promise<StartedProgram>
  /** Ends every process and releases everything. Commands under way end as killed; later calls reject with `sandbox-closed`. Idempotent. */
  close(): Promise<void>

  /** Files changed since a mark that an earlier call returned; without one, since the sandbox was opened. */
  changes?(since?: string): Promise<{ readonly mark: string; readonly paths: readonly string[] }>
  /** The workspace as it is now, under a name that `open` takes as `{ snapshot }`. */
  snapshot?(): Promise<string>
  /** Sandboxes that start as copies of this one, files and all; what runs in this one does not run in them. */
  fork?(count: number): Promise<readonly Sandbox[]>
  /** The address at which a port of the sandbox can be reached. */
  expose?(port: number): Promise<string>
}

export interface StartOptions {
  /** Added to the sandbox's environment. */
  readonly env?: Readonly<Record<string, string>>
}

export interface StartedProgram {
  /** A `ChildProcess` of Node whose standard input, output and error are pipes; no type of Node's, which your project need not have. */
  readonly child: object
  /** Ends it, and everything that it started. */
  kill(): void
}

export interface ExecOptions {
  /** A folder of the workspace, which it is by default. One outside is refused. */
  readonly cwd?: string
  /** Added to the sandbox's environment. */
  readonly env?: Readonly<Record<string, string>>
  /** Programs are looked for outside the workspace only, as an allow-list of commands needs it. Where PATH never leads into it, that is so anyway. */
  readonly fixedPath?: boolean
  /** All of the standard input; empty by default. */
  readonly stdin?: string | Uint8Array
  /** Milliseconds until the command and all it started are killed; none by default. The result then says `timedOut`. */
  readonly timeout?: number
  /** Aborting it kills the command, and `result` rejects with `cancelled`. */
  readonly signal?: AbortSignal
  /** Bytes of each stream that the result keeps; 1 MB by default. Followers see everything. */
  readonly outputLimit?: number
}

/** A command under way. Iterating follows its output from then on; a slow follower slows the command down. May be followed once. */
export interface ExecHandle extends AsyncIterable<ExecOutput> {
  /** Resolves when the command has ended and nothing that it started is left, whatever its exit code. */
  readonly result: Promise<ExecResult>
  /** Kills the command and everything it started, at once. */
  kill(): void
}

export interface ExecOutput {
  readonly stream: 'stdout' | 'stderr'
  readonly data: Uint8Array
}

export interface ExecResult {
  /** Null when a signal ended it. */
  readonly exitCode: number | null
  /** `SIGKILL` and the like. */
  readonly signal?: string
  readonly stdout: Uint8Array
  readonly stderr: Uint8Array
  /** A stream was longer than `outputLimit`: its first and last halves are kept, and a line between them says how many bytes are not. */
  readonly truncated: boolean
  readonly timedOut: boolean
  readonly durationMs: number
}

/** 1 MB: enough for the log of a build, and little enough to keep in a session. */
export const defaultExecOutput = 1024 * 1024

/**
 * The files of the workspace. Paths are relative to it or absolute inside it, with `/` between names; one that leads outside is refused
 * with `path-outside`, one where nothing is with `path-missing`, one where something else is with `path-kind`.
 */
export interface SandboxFiles {
  /** Only regular files. A range counts bytes; `end` is exclusive, and both may lie behind the end. */
  read(path: string, range?: { readonly start?: number; readonly end?: number }): Promise<Uint8Array>
  /** Whole or not at all: readers see the old bytes or the new. Makes missing folders. Keeps the mode of what was there unless given one. */
  write(path: string, data: string | Uint8Array, options?: { readonly mode?: number }): Promise<void>
  /** What a path leads to, links followed; null when there is nothing. */
  stat(path: string): Promise<FileStat | null>
  /** What lies in a folder, by name, links not followed. */
  list(path: string): Promise<readonly FileEntry[]>
  /** With its parents; fine when it is there. */
  mkdir(path: string): Promise<void>
  /** A link is removed itself. A folder that is not empty needs `recursive`; what is not there is refused. */
  remove(path: string, options?: { readonly recursive?: boolean }): Promise<void>
  /** Replaces a file that is there. Makes missing folders. */
  rename(from: string, to: string): Promise<void>
  search(query: SearchQuery): Promise<SearchResult>
}

export type FileKind = 'file' | 'directory' | 'symlink' | 'other'

export interface FileEntry {
  readonly name: string
  readonly kind: FileKind
}

export interface FileStat {
  readonly kind: FileKind
  readonly size: number
  /** Permission bits as a number, `0o644`. */
  readonly mode: number
  /** Milliseconds since the epoch. */
  readonly modified: number
}

/** Paths that fit `glob`, or lines that hold `text` in files that fit it. One of the two is there. */
export interface SearchQuery {
  /** `*.ts` is any such name; `src/**\/*.ts` is a path from where the search starts. `*`, `**`, `?`, `[a-z]`, `{a,b}`. */
  readonly glob?: string
  readonly text?: string
  /** `text` is a regular expression as JavaScript knows it. One that takes too long is refused. */
  readonly regex?: boolean
  /** Where to look: a folder, or one file; the workspace by default. */
  readonly path?: string
  /** Matches to return; 100 by default. */
  readonly limit?: number
  readonly signal?: AbortSignal
}

export interface SearchMatch {
  /** Relative to the workspace. */
  readonly path: string
  /** From 1; on matches of text. */
  readonly line?: number
  /** The line, cut where it is very long. */
  readonly text?: string
}

/** In the order of the paths. Folders `.git` and `node_modules` are searched only when the search starts in them; links are not followed. */
export interface SearchResult {
  readonly matches: readonly SearchMatch[]
  /** There are more. */
  readonly truncated: boolean
  /** Files that were not looked into, because they are binary or very large. */
  readonly skipped: number
}
