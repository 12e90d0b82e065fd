import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { basename, join, relative, resolve } from 'node:path'
import type { Command } from 'commander'
import { examples, type JsonOption, withJson } from '../command.ts'
import { UsageError } from '../errors.ts'
import type { Output } from '../output.ts'

export function define(command: Command, output: Output): void {
  command
    .argument('[folder]', 'where; this folder by default', '.')
    .action((folder: string, { json }: JsonOption) => {
      const written = init(folder, command.parent?.version() ?? '')
      if (json) output.json(written)
      else tell(written, output)
    })
  withJson(command)
  examples(command, [
    ['rath init my-agents', 'a project that runs at once, without a key'],
    ['rath init', 'the same in this folder'],
  ])
}

interface Written {
  readonly folder: string
  readonly files: readonly string[]
}

/** Writes everything or nothing: a file that is there is never touched. */
function init(folder: string, version: string): Written {
  const path = resolve(folder)
  const files = projectFiles(basename(path), version)
  const names = Object.keys(files)
  const taken = names.filter(name => existsSync(join(path, name)))
  if (taken.length > 0) {
    const are = taken.length === 1 ? 'is' : 'are'
    throw new UsageError(`${taken.join(', ')} ${are} already in ${path}; nothing was written.`)
  }
  mkdirSync(path, { recursive: true })
  for (const [name, text] of Object.entries(files)) writeFileSync(join(path, name), text, { flag: 'wx' })
  return { folder: path, files: names }
}

function tell({ folder, files }: Written, output: Output): void {
  const there = relative('.', folder)
  const go = there ? `  cd ${JSON.stringify(there)}\n` : ''
  output.print(`${files.join(', ')} written to ${folder}. Now:`)
  output.print(`${go}  npm install\n  npx rath run workflow.ts "Why is the sky blue?"`)
}

/** The files of a new project, by name. */
function projectFiles(name: string, version: string): Record<string, string> {
  const manifest = {
    name: packageName(name),
    private: true,
    type: 'module',
    scripts: { start: 'rath run workflow.ts "Why is the sky blue?"' },
    dependencies: { openrath: `^${version}` },
  }
  return {
    'package.json': `${JSON.stringify(manifest, null, 2)}\n`,
    'workflow.ts': workflow,
    '.gitignore': 'node_modules/\n.openrath/\n',
    'README.md': readme(name),
  }
}

function packageName(name: string): string {
  const plain = name
    .toLowerCase()
    .replace(/[^a-z0-9-_.]+/g, '-')
    .replace(/^[-_.]+|[-_.]+$/g, '')
  return plain || 'agents'
}

const workflow = `import { Agent, type Session, Workflow } from 'openrath'
import { scripted } from 'openrath/testing'

// Without a key a script answers, so that this runs at once.
function modelOr(answer: string) {
  if (process.env.OPENAI_API_KEY) return 'openai/gpt-5.5'
  if (process.env.ANTHROPIC_API_KEY) return 'anthropic/claude-opus-5-5'
  return scripted(() => answer)
}

export default class Review extends Workflow {
  writer = new Agent('Answer in two sentences.', { model: modelOr('Air scatters blue light more than red.') })
  critic = new Agent('Say what the answer leaves out, in one sentence.', {
    model: modelOr('It leaves out why: short waves scatter more.'),
  })

  async forward(session: Session) {
    session = await this.writer(session)
    return this.critic(session.user('What is missing?'))
  }
}
`

function readme(name: string): string {
  return `# ${name}

\`\`\`sh
npm install
npx rath run workflow.ts "Why is the sky blue?"
\`\`\`

\`workflow.ts\` holds two agents. Without a key a script answers for them; with \`OPENAI_API_KEY\` or \`ANTHROPIC_API_KEY\` set, a model
does. Every run is kept in \`.openrath/\`:

\`\`\`sh
npx rath ls                # sessions
npx rath show last         # the newest run
npx rath replay last       # does the code still do what was recorded? No model is asked
npx rath doctor            # what works here
\`\`\`
`
}
