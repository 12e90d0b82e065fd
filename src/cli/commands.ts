import type { CommandFile } from './command.ts'

/** Every command: what it is for, and where it is. A command's file, and all that it needs, is loaded when it is used. */
export const commands: Readonly<Record<string, { readonly summary: string; load(): Promise<CommandFile> }>> =
  {
    run: { summary: 'run the workflow that a file exports', load: () => import('./commands/run.ts') },
    ls: { summary: 'list sessions or runs, newest first', load: () => import('./commands/ls.ts') },
    show: { summary: 'show a session or a run', load: () => import('./commands/show.ts') },
    graph: { summary: 'draw how sessions came from each other', load: () => import('./commands/graph.ts') },
    diff: { summary: 'compare two sessions: chunks, files, cost', load: () => import('./commands/diff.ts') },
    approve: { summary: 'decide what waiting runs ask', load: () => import('./commands/approve.ts') },
    resume: {
      summary: 'go on with a run that waits or was cut off',
      load: () => import('./commands/resume.ts'),
    },
    replay: {
      summary: 'run again with recorded outcomes, and compare',
      load: () => import('./commands/replay.ts'),
    },
    completion: {
      summary: 'print a completion script for your shell',
      load: () => import('./commands/completion.ts'),
    },
  }
