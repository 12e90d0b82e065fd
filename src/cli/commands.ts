import type { CommandFile } from './command.ts'

/** Every command: what it is for, and where it is. A command's file, and all that it needs, is loaded when it is used. */
export const commands: Readonly<Record<string, { readonly summary: string; load(): Promise<CommandFile> }>> =
  {
    demo: {
      summary: 'watch agents mend a small repository, without a key',
      load: () => import('./commands/demo.ts'),
    },
    run: { summary: 'run the workflow that a file exports', load: () => import('./commands/run.ts') },
    chat: {
      summary: 'talk with an agent that works in this folder',
      load: () => import('./commands/chat.ts'),
    },
    ls: { summary: 'list sessions or runs, newest first', load: () => import('./commands/ls.ts') },
    show: { summary: 'show a session or a run', load: () => import('./commands/show.ts') },
    graph: { summary: 'draw how sessions came from each other', load: () => import('./commands/graph.ts') },
    diff: { summary: 'compare two sessions: chunks, files, cost', load: () => import('./commands/diff.ts') },
    dossier: {
      summary: 'tell what happened, in one file for people',
      load: () => import('./commands/dossier.ts'),
    },
    blame: {
      summary: 'say who wrote a line or a statement, and from what',
      load: () => import('./commands/blame.ts'),
    },
    bisect: {
      summary: 'find the step after which a command fails',
      load: () => import('./commands/bisect.ts'),
    },
    checkout: {
      summary: 'bring the files of a session to a folder',
      load: () => import('./commands/checkout.ts'),
    },
    verify: {
      summary: 'recompute every digest of a file or a session',
      load: () => import('./commands/verify.ts'),
    },
    export: { summary: 'write sessions and runs to one file', load: () => import('./commands/export.ts') },
    import: { summary: 'read such a file into the store', load: () => import('./commands/import.ts') },
    keys: { summary: 'make and list the keys that sign exports', load: () => import('./commands/keys.ts') },
    approve: { summary: 'decide what waiting runs ask', load: () => import('./commands/approve.ts') },
    resume: {
      summary: 'go on with a run that waits or was cut off',
      load: () => import('./commands/resume.ts'),
    },
    replay: {
      summary: 'run again with recorded outcomes, and compare',
      load: () => import('./commands/replay.ts'),
    },
    memory: { summary: 'look at what agents remember', load: () => import('./commands/memory.ts') },
    trust: {
      summary: 'agree to the config that came with this folder, or not',
      load: () => import('./commands/trust.ts'),
    },
    doctor: { summary: 'say what works here and what to fix', load: () => import('./commands/doctor.ts') },
    init: { summary: 'write a small project that runs', load: () => import('./commands/init.ts') },
    gc: { summary: 'free what nothing needs any more', load: () => import('./commands/gc.ts') },
    completion: {
      summary: 'print a completion script for your shell',
      load: () => import('./commands/completion.ts'),
    },
  }
