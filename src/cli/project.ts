/** The files of a new project, by name. */
export function projectFiles(name: string, version: string): Record<string, string> {
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
