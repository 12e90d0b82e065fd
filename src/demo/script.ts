import type { Json } from '../base/json.ts'
import type { ModelRequest } from '../model/spec.ts'
import { textOf } from '../session/part.ts'
import { type Answer, type ScriptedModel, scripted } from '../testing/scripted.ts'
import { brokenLine } from './repository.ts'
import { failedTests } from './validator.ts'

/**
 * What stands for the models of the demo. Each answers by what it is shown and by nothing else, so that a run goes on the same in another
 * process.
 */
export function scriptedModels(): Record<
  'planner' | 'researcher' | 'quick' | 'careful' | 'tester',
  ScriptedModel
> {
  const model = (name: string, answer: (request: ModelRequest) => Answer) =>
    scripted(answer, { id: `scripted/${name}` })
  return {
    planner: model('planner', plan),
    researcher: model('researcher', research),
    quick: model('quick', request =>
      mend(request, ['src/slug.js'], quickEdit, 'Every run of other characters is one dash now.'),
    ),
    careful: model('careful', request =>
      mend(
        request,
        ['src/slug.js', 'test/slug.test.js'],
        carefulEdit,
        'Accents are taken off first, runs of other characters become one dash, and dashes at the ends go.',
      ),
    ),
    tester: model('tester', test),
  }
}

const quickEdit = "  return title.toLowerCase().replace(/\\W+/g, '-')"

const carefulEdit = `  const plain = title.normalize('NFKD').replace(/\\p{M}/gu, '').toLowerCase()
  return plain.replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '')`

function plan({ messages }: ModelRequest): Answer {
  const said = messages.filter(message => message.role === 'assistant').map(({ content }) => textOf(content))
  const [reason, choice] = said.some(text => text.startsWith('All tests pass'))
    ? ['The tests pass on a branch that was merged.', 'none']
    : said.some(text => text.startsWith('Findings:'))
      ? ['It is known what is wrong.', 'attempts']
      : ['Nobody has read the issue yet.', 'researcher']
  return JSON.stringify({ reason, choice })
}

function research(request: ModelRequest): Answer {
  const results = resultsIn(request)
  if (results.length === 0) return calls(request, read('ISSUE.md'), read('src/slug.js'))
  const note = /<memory[^>]*>([\s\S]*?)<\/memory>/.exec(JSON.stringify(request.messages))
  const known = note ? ' A note from earlier work warns of \\W: accents.' : ''
  return `Findings: slug() replaces only the first space, and knows nothing of punctuation and accents.${known} What works today must stay, such as titles with spaces around them.`
}

function mend(request: ModelRequest, paths: readonly string[], edit: string, said: string): Answer {
  const tools = resultsIn(request).map(({ tool }) => tool)
  if (tools.length === 0) return calls(request, ...paths.map(read))
  if (tools.includes('edit_workspace_file')) return said
  const args = { path: 'src/slug.js', old: brokenLine, new: edit }
  return calls(request, { name: 'edit_workspace_file', args })
}

function test(request: ModelRequest): Answer {
  const result = resultsIn(request)[0]
  if (result === undefined) {
    const [, cmd = 'node --test'] = /run with `([^`]+)`/.exec(textOf(firstUser(request))) ?? []
    return calls(request, { name: 'run_shell_command', args: { cmd } })
  }
  const { outcome } = result
  const { exitCode = -1, stdout = '' } = (outcome.kind === 'value' ? outcome.value : {}) as {
    exitCode?: number
    stdout?: string
  }
  if (exitCode === 0) return 'All tests pass.'
  return `Exit code ${exitCode}, failed: ${failedTests(stdout).join('; ')}.`
}

function read(path: string) {
  return { name: 'read_workspace_file', args: { path } }
}

/** Calls with ids that do not depend on what this process was asked before. */
function calls(
  { messages }: ModelRequest,
  ...asked: readonly { readonly name: string; readonly args: Json }[]
): Answer {
  return { toolCalls: asked.map((call, i) => ({ ...call, id: `call-${messages.length}-${i + 1}` })) }
}

/** What tools have answered since somebody last finished speaking. */
function resultsIn({ messages }: ModelRequest) {
  const finished = messages.findLastIndex(
    message => message.role === 'assistant' && !message.content.some(({ type }) => type === 'tool-call'),
  )
  return messages.slice(finished + 1).filter(message => message.role === 'tool')
}

function firstUser({ messages }: ModelRequest) {
  return messages.find(message => message.role === 'user')?.content ?? []
}
