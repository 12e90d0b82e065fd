// A repository maintainer to keep: an issue in, a reviewed patch and a dossier out. Your folder is not touched unless you say --apply.
//
//   node maintainer.ts                                              a small sample, without a key
//   node maintainer.ts --live --repo . --issue bug.md --test "npm test"
//   node maintainer.ts --live --repo . --issue bug.md --test "npm test" --apply
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { Agent, configure, type ModelLike, type RunEvent, Session, Workflow } from 'openrath'
import { dossierHtml, dossierOf } from 'openrath/evidence'
import type { Model } from 'openrath/model'
import { policy } from 'openrath/policy'
import { isolatedBackend } from 'openrath/sandbox'
import { scripted } from 'openrath/testing'
import { z } from 'zod'

const Review = z.object({ verdict: z.enum(['accept', 'reject']), reason: z.string() })
const mostRounds = 4

/** Read, mend, test, review, and again until both the tests and the reviewer are content. */
class Maintainer extends Workflow {
  reader: Agent
  coder: Agent
  tester: Agent
  reviewer: Agent

  constructor(models: Record<'reader' | 'coder' | 'reviewer', ModelLike>, test: string, memory: string) {
    super()
    const looking = ['read_workspace_file', 'list_workspace_files', 'search_workspace'] as const
    this.reader = new Agent(
      'Read the code that the issue is about. Say what is wrong, where, and what must stay as it is. Change nothing.',
      { model: models.reader, builtins: looking },
    )
    this.coder = new Agent(
      'You maintain this repository. Make the smallest change that solves the issue, in its style, with a test that would have failed before. Never weaken a test.',
      {
        model: models.coder,
        builtins: [...looking, 'edit_workspace_file', 'write_workspace_file'],
        memory: { backend: 'local', path: memory }, // what reviewers objected to before
        recall: { mode: 'words' }, // by meaning with an embedding model: configure({ embed })
        policy: policy({ deny: [{ tool: '{edit,write}_workspace_file', when: { path: /^(\.git|\.env)/ } }] }),
      },
    )
    // Code, not a model: the tests are run whatever anybody thinks of them, and it costs nothing.
    this.tester = new Agent('', { model: runs(test), builtins: ['run_shell_command'] })
    this.reviewer = new Agent(
      'You review changes. Accept only what solves the issue, is held by a test and breaks nothing. Say why in one sentence.',
      { model: models.reviewer, builtins: looking, output: Review },
    )
  }

  async forward(session: Session) {
    session = await this.reader(session)
    // From here on it works on a branch, with files of its own.
    let work = session.fork('fix').user('Solve the issue.')
    for (let round = 1; round <= mostRounds; round++) {
      work = await this.tester((await this.coder(work)).user('Run the tests.'))
      let review: z.infer<typeof Review> = { verdict: 'reject', reason: `The tests fail. ${work.text}` }
      if (work.text.startsWith('exit code 0')) {
        work = await this.reviewer(work.user('Review the change.'))
        review = Review.parse(JSON.parse(work.text))
      }
      work = work.append({ kind: 'verdict', ...review, subject: 'fix', by: 'review' })
      console.log(`review ${round}: ${review.verdict}. ${review.reason}`)
      if (review.verdict === 'accept') break
      await this.coder.remember(`Objected to in review: ${review.reason}`, { session: work })
      work = work.user(`Not yet: ${review.reason} Mend it.`)
    }
    return work
  }
}

const { values: given } = parseArgs({
  options: {
    live: { type: 'boolean' },
    repo: { type: 'string' },
    issue: { type: 'string' },
    test: { type: 'string' },
    model: { type: 'string' },
    apply: { type: 'boolean' },
  },
})
const scratch =
  given.repo === undefined ? realpathSync(mkdtempSync(join(tmpdir(), 'openrath-example-'))) : undefined
if (scratch) process.on('exit', () => rmSync(scratch, { recursive: true, force: true }))
const repo = resolve(given.repo ?? makeSample(join(scratch as string, 'shop')))
const out = scratch ? join(scratch, 'out') : join(repo, '.openrath', 'maintainer') // `.openrath` is no part of a workspace
const issue = readFileSync(given.issue ?? join(repo, 'ISSUE.md'), 'utf8')
const test = given.test ?? (scratch ? `'${process.execPath}' --test` : 'npm test')
mkdirSync(out, { recursive: true })

const runtime = configure({ store: `sqlite:${join(out, 'rath.db')}` })
const { available } = (await isolatedBackend().probe?.()) ?? { available: false }
const asked = Session.fromUserMessage(issue).to(available ? 'isolated' : 'local', repo)
const maintainer = new Maintainer(given.live ? liveModels() : sampleModels(), test, join(out, 'memory'))
// What is missing, a key for example, is said before anything is spent.
const problems = maintainer.compile().validate()
if (problems.length > 0) {
  for (const { path, message } of problems) console.error(`${path}: ${message}`)
  process.exit(2)
}
const pending = runtime.run(maintainer, asked, { onEvent: tell, budget: { tokens: 2_000_000, rounds: 200 } })
const work = await pending
const isAccepted = work.chunks.findLast(chunk => chunk.kind === 'verdict')?.verdict === 'accept'

const workspaces = join(process.env.OPENRATH_HOME ?? join(homedir(), '.openrath'), 'workspaces')
const dossier = await dossierOf(await runtime.store, pending.runId, { workspaces })
writeFileSync(join(out, 'dossier.html'), dossierHtml(dossier))
writeFileSync(join(out, 'change.patch'), dossier.patch.files.map(({ patch }) => patch?.text ?? '').join(''))
console.log(
  `${isAccepted ? 'accepted' : 'NOT accepted'}: ${dossier.patch.files.map(({ path }) => path).join(', ')}`,
)
console.log(`change.patch and dossier.html are in ${scratch ? 'a scratch folder' : out}`)
if (given.apply && isAccepted) await asked.merge(work) // brings the branch's files to the folder
console.log(
  given.apply && isAccepted
    ? 'The folder has the change.'
    : 'The folder is as it was; --apply brings the change there.',
)
await runtime.close()
process.exitCode = isAccepted ? 0 : 1

function tell({ type, by, ...event }: RunEvent): void {
  const who = by.split('/').at(-1)
  if (type !== 'chunk' || !('chunk' in event)) return
  const { chunk } = event
  if (chunk.kind === 'assistant' && chunk.text && who !== 'reviewer') console.log(`${who}: ${chunk.text}`)
  if (chunk.kind === 'tool-result')
    for (const { path } of chunk.files ?? []) console.log(`${who} changes ${path}`)
}

/** A model that always runs one command, and says how it ended. */
function runs(cmd: string): Model {
  return {
    id: 'code/run-tests',
    async answer({ messages }) {
      const last = messages.at(-1)
      if (last?.role !== 'tool') {
        const call = {
          type: 'tool-call',
          id: `tests-${messages.length}`,
          name: 'run_shell_command',
          args: { cmd },
        } as const
        return { content: [call], finishReason: 'tool-calls' }
      }
      const {
        exitCode,
        stdout = '',
        stderr = '',
      } = (last.outcome.kind === 'value' ? last.outcome.value : {}) as Ran
      const shown = exitCode === 0 ? '' : `\n${`${stdout}\n${stderr}`.slice(-4000)}`
      return { content: [{ type: 'text', text: `exit code ${exitCode}${shown}` }], finishReason: 'stop' }
    },
  }
}

interface Ran {
  readonly exitCode?: number
  readonly stdout?: string
  readonly stderr?: string
}

function liveModels(): Record<'reader' | 'coder' | 'reviewer', ModelLike> {
  const { OPENAI_API_KEY, OPENAI_DEFAULT_MODEL, ANTHROPIC_DEFAULT_MODEL } = process.env
  const usual = OPENAI_API_KEY ? 'openai/gpt-5.5' : 'anthropic/claude-opus-5-5'
  const model = given.model ?? OPENAI_DEFAULT_MODEL ?? ANTHROPIC_DEFAULT_MODEL ?? usual
  return { reader: model, coder: model, reviewer: model }
}

/** The same conversation every time, for the sample. */
function sampleModels(): Record<'reader' | 'coder' | 'reviewer', ModelLike> {
  const edit = (path: string, old: string, replacement: string) => ({
    toolCalls: [{ name: 'edit_workspace_file', args: { path, old, new: replacement } }],
  })
  const added = "test('an empty cart', () => assert.equal(total([]), 0))\n"
  return {
    reader: scripted([
      { toolCalls: [{ name: 'read_workspace_file', args: { path: 'total.js' } }] },
      'reduce() has no initial value, and an empty list has no first element.',
    ]),
    coder: scripted([
      edit('total.js', '(a, b) => a + b)', '(a, b) => a + b, 0)'),
      'The sum starts at 0.',
      edit('total.test.js', "test('two", `${added}test('two`),
      'A test holds it now.',
    ]),
    reviewer: scripted([
      '{"verdict":"reject","reason":"No test holds it."}',
      '{"verdict":"accept","reason":"An empty cart is 0, and a test says so."}',
    ]),
  }
}

function makeSample(folder: string): string {
  mkdirSync(folder)
  const files = {
    'package.json': '{ "type": "module" }\n',
    'ISSUE.md': '# An empty cart throws\n\n`total([])` should be 0.\n',
    'total.js': 'export const total = prices => prices.reduce((a, b) => a + b)\n',
    'total.test.js':
      "import assert from 'node:assert/strict'\nimport { test } from 'node:test'\nimport { total } from './total.js'\n\ntest('two things', () => assert.equal(total([1, 2]), 3))\n",
  }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  return folder
}
