import { Command, CommanderError } from 'commander'
import { version } from '../base/version.ts'
import type { CommandFile } from './command.ts'
import { exit, report, UsageError } from './errors.ts'
import type { Output } from './output.ts'

/** Runs one command line and gives its exit code. Nothing it throws gets past here. */
export async function runCommand(args: readonly string[], output: Output): Promise<number> {
  const said: string[] = []
  try {
    const program = await programFor(nameIn(args), output, said)
    await program.parseAsync(args, { from: 'user' })
    return Number(process.exitCode ?? exit.done)
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return exit.done
      return report(new UsageError(usageLine(said.join(''), nameIn(args))), output, wantsJson(args))
    }
    return report(error, output, wantsJson(args))
  }
}

/** The whole program; only the command that is meant is there with all its parts, unless all are asked for. */
async function programFor(
  name: string | undefined | 'all',
  output: Output,
  said: string[],
): Promise<Command> {
  const program = new Command('rath')
    .description('Runs, sessions and what became of them.')
    .version(version, '-V, --version', 'print the version')
    .helpCommand('help [command]', 'show how a command is used')
    .helpOption('-h, --help', 'show how it is used')
    .exitOverride()
    .configureHelp({ sortSubcommands: false, subcommandTerm: nameAndArguments })
    .configureOutput({
      writeErr: text => void said.push(text),
      outputError: text => void said.push(text),
    })
    .addHelpText(
      'after',
      '\nEvery command has examples: rath help COMMAND. Exit codes: 0 done, 1 the work failed, 2 wrong usage, 3 waiting for a decision.',
    )
  for (const [known, { summary, load }] of Object.entries(commands)) {
    const command = program.command(known).summary(summary).description(sentence(summary))
    command.helpOption('-h, --help', 'show how it is used')
    if (known === name || name === 'all')
      (await load()).define(command, output, () => programFor('all', output, said))
  }
  return program
}

/** The command that a line means: its first word, behind `help` the second. */
function nameIn(args: readonly string[]): string | undefined {
  const words = args.filter(word => !word.startsWith('-'))
  return words[0] === 'help' ? words[1] : words[0]
}

/** Behind `--` stand words of others. */
function wantsJson(args: readonly string[]): boolean {
  const end = args.indexOf('--')
  return args.slice(0, end < 0 ? args.length : end).includes('--json')
}

/** Everything that was said about a mistake, in one line. */
function usageLine(said: string, name: string | undefined): string {
  const known = name !== undefined && Object.hasOwn(commands, name)
  const message = said
    .replace(/^error: /gm, '')
    .trim()
    .replace(/\s*\n\s*/g, ' ')
  if (said.startsWith('Usage:'))
    return name === undefined || known
      ? 'say what to do: rath COMMAND. See rath --help'
      : `unknown command '${name}'. See rath --help`
  const end = /[.?!)]$/.test(message) ? '' : '.'
  return `${message}${end} See rath ${known ? `${name} ` : ''}--help`
}

function nameAndArguments(command: Command): string {
  return command.name()
}

function sentence(summary: string): string {
  return `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`
}

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
