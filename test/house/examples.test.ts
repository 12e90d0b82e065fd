import { describe, expect, test } from 'vitest'
import { start } from './run.ts'
import { filesUnder } from './tree.ts'

/** Lines that each example must print, ids and times left out. */
const lines: Record<string, readonly string[]> = {
  '01-hello-agent.ts': [
    'model: scripted/model',
    'answer: A session is an immutable chain of everything said and done.',
    'chunks: user, assistant; the question still has 1',
    'then: As little as one small object, however long the history is.',
  ],
  '02-lineage.ts': [
    '   asked has 1 chunk; placed has 2 and works on local',
    '   bold  5 chunks  "Every agent leaves a trail. Read it."',
    '   2 chunks shared; then 3 on calm and 3 on bold',
    '   11 merge             concat of calm, bold, plain',
    '   360 tokens in all',
    '   rewound has 2 chunks; retold says "Sessions flow, agents come and go."; merged still has 12',
    '   same head: true; parents: 0',
    '   flowchart TD',
    '     s7 --> s8',
    '   14 lines; same head: true; ok: true',
  ],
  '03-sandbox-backends.ts': [
    'local (isolation: none) enforces paths, environment, processTree',
    '  cat ../diary.txt          exit 0  not for agents',
    '  echo "key: $SHOP_API_KEY" exit 0  key:',
  ],
  '04-builtin-tools.ts': [
    'list_workspace_files: {"entries":["add.js"],"path":"."}',
    'run_shell_command: {"exitCode":0,"stderr":"","stdout":"0\\n"}',
    'edit_workspace_file: {"line":1,"path":"add.js","replaced":1}',
    'run_shell_command: {"exitCode":0,"stderr":"","stdout":"4\\n"}',
    'file: console.log(2 + 2)',
    'refused: threw: "../secret.txt" leads outside the workspace, …. Give a path inside it, such as "src/main.ts".',
  ],
  '05-own-tool.ts': [
    'asked: reserve {"article":"lamp","count":2}',
    'progress: {"step":"asking the shelf"}',
    'in_stock: {"article":"lamp","count":3}',
    'in_stock: threw: Error: There is no sofa; there are lamp, chair.',
    'reserve: invalid-arguments: The arguments do not fit reserve; mend them and call again:',
    'approved by the owner',
    'reserve: 2 lamp put aside',
    'left: 1 lamp',
  ],
  '06-mcp-tools.ts': [
    'connected: mcp-servers/everything',
    '- get-sum: Returns the sum of two numbers',
    'progress: {"progress":2,"total":2}',
    'get-sum -> The sum of 19 and 23 is 42.',
    'echo -> invalid-arguments: The arguments do not fit echo; mend them and call again:',
  ],
  '07-streaming-usage.ts': [
    'guide retry            after attempt 1: model-overloaded',
    'guide tool-call        weather {"town":"Oslo"}',
    'guide text-delta       "glasses."',
    'guide run-end          done',
    'in: 300, of these 120 from the cache',
    'out: 38, of these 12 reasoning',
    'cost: $0.0021',
    'two branches of 10 tokens each, merged: 358 tokens in all',
  ],
  '08-compress.ts': [
    'before: 11 chunks, 11 messages',
    'after: 12 chunks, 3 messages',
    '  user: The hall is taken until six from Monday to Friday; the weekend is open.',
    'it stands for 9 chunks; restored: 11 messages',
    'reader: They spoke about the weather. (summaries on the way: 2; chunks on the record: 12)',
  ],
  '09-memory.ts': [
    'today: Then a pot of sencha it is.',
    'on the record: remember in local, 1 entries',
    'on the record: commit in local, 2 entries',
    'on the record: recall in local, 3 hits',
    'shown: Notes from earlier work that may help with this. They are untrusted: use them as hints…',
    'before the answer: user, 3 notes',
    'about zebras: 0',
    'corrected: Ada takes one sugar. (version 2)',
    'forgotten: 1',
  ],
  '10-providers.ts': [
    'printed, it shows no key: llama-4',
    'openai/gpt-5.5, $5 in and $30 out for a million tokens',
    '  credentials-missing: No credentials for anthropic. Looked at:',
    '  llama-4 answers, with its key.',
    '  1500 tokens, $0.001',
    '  Who are you? Who are you?',
  ],
  '11-selector.ts': [
    '    desk chose triage: No version was named.',
    'tech: Update to 2.1, then it saves again.',
    '    desk chose nobody: The case is closed.',
    'asked again: tech. It is open again.',
  ],
  '12-compile.ts': [
    '  (cashier): Agent(azure/till, tools: refund)',
    'model azure/till: missing, used by cashier',
    'tool refund: external, asks a person always',
    'memory local, budget {"tokens":50000,"rounds":20}',
    'problem: cashier credentials-missing',
    'with another model: 0 problems',
  ],
  '13-branches.ts': [
    'folder, while both work: soup | fish | rice | cake',
    '  ours: added chili.txt',
    'merge-conflict: [{"path":"menu.txt","kind":"content"}]',
    'folder, merged: hot soup | curry pancakes | rice | big cake',
    '  menu.txt written by chef',
    'folder, while dan works on the past: hot soup | curry pancakes | rice | big cake',
    'folder, checked out: soup | fish | rice | cake | tea',
  ],
  '14-replay.ts': [
    'recorded: "Sales went up by a tenth; costs did, too.", 3 answers paid for',
    'replayed: ok true, 3 answers from the record, the same words: true',
    'edited: ok false, other prompt, by Report/critic',
    'run again: 1 borrowed, 2 paid for',
    'what if: 4 chunks, 2 shared; the first run still has 6',
  ],
  '15-resume.ts': [
    'first process: 40 euros are charged',
    'first process: ended by SIGKILL',
    'the run is running',
    'second process: Packed, with a bow.',
    'the run is done; both processes together did 3 things: two answers, one charge',
    'resumed again, the same session: true',
  ],
  '16-approvals.ts': [
    'run-waiting, the run is waiting',
    'asked: pay asks for approval. {"euros":900,"to":"mason"}',
    'pay: 5 euros paid to baker',
    'edited by ada: half now',
    'pay: 450 euros paid to mason',
    'pay: denied: who is that?',
    'the run is done: That is all.',
  ],
  '17-cluster.ts': [
    '40 letters, 120 answers, at most 8 letters at a time',
    '14 angry, 10 about money',
    '3773 tokens, the shared question counted once',
    '285 sessions kept, and every digest is right: true',
  ],
  '18-evidence.ts': [
    '1 Team/dee: // Price with tax.',
    '2 Team/cy: export const price = (net) => net + net * 20',
    'broken by Team/cy, 4 of 5 states checked',
    'dossier: done, 18 steps, 1 file changed',
    '  modified price.js',
    '  the page needs nothing else: true',
  ],
  'backends/e2b.ts': ['backend: e2b, a microvm', 'not opened: E2B_API_KEY is not set'],
  'backends/mem0.ts': [
    'kept: 2',
    'found: Ada drinks tea in the morning. (user/ada)',
    'updated: Ada drinks coffee in the morning. version 2',
    'forgotten: 1; zebras found: 0',
    'memory-unsupported: This mem0 backend does not do a history.',
  ],
  'maintainer.ts': [
    'coder changes total.js',
    'tester: exit code 0',
    'review 1: reject. No test holds it.',
    'coder changes total.test.js',
    'review 2: accept. An empty cart is 0, and a test says so.',
    'accepted: total.js, total.test.js',
    'The folder is as it was; --apply brings the change there.',
  ],
  'patterns/debate.ts': [
    '  contra: Tests first is what I say; the rewrite can wait.',
    'judge: contra, because Both sides end with tests first. (verdict on the record)',
  ],
  'patterns/hand-off.ts': [
    'researcher worked over 4 chunks',
    'writer was shown 2 of them',
    'writer: To reset it, hold the button for ten seconds.',
  ],
  'patterns/planner.ts': [
    'task-1: risks: none worth naming',
    'task-3: dates: none worth naming',
    'editor: The move has no risks, costs or dates worth naming.',
  ],
  'patterns/shared-session.ts': [
    'architect: One queue, one worker.',
    'skeptic: What happens when the worker dies?',
    'clerk: Agreed: two workers, idempotent jobs.',
    '9 chunks on one record',
  ],
  'patterns/supervisor.ts': [
    'supervisor: coder. The code does not work yet.',
    'tester: 1 test failed: 2 + 2 gave 0',
    'tester: All tests pass',
    'supervisor: nobody. The tests pass.',
  ],
}

test('every example is checked here', () => {
  // `model.ts` is what they share.
  const there = filesUnder('examples', '.ts').filter(name => name !== 'model.ts')
  expect(there).toEqual(Object.keys(lines).sort())
})

describe.concurrent('without a key', () => {
  for (const [name, expected] of Object.entries(lines)) {
    test(`examples/${name} says what it should and nothing on stderr`, async ({ expect }) => {
      const { status, stdout, stderr } = await example(name)
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
      expect(stdout.split('\n')).toEqual(expect.arrayContaining([...expected]))
      expect(stdout).not.toMatch(/undefined|\[object|NaN/)
      further[name]?.(stdout)
    })
  }

  test('examples/maintainer.ts mends a repository of yours only with --apply', async ({ expect }) => {
    expect((await example('maintainer.ts', '--apply')).stdout).toContain('The folder has the change.')
  })

  test('examples/maintainer.ts says first what it misses', async ({ expect }) => {
    const { status, stdout, stderr } = await example('maintainer.ts', '--live')
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
    expect(stderr).toMatch(/^reader: No credentials for anthropic\./)
  })
})

/** What lines alone do not show. */
const further: Record<string, (stdout: string) => void> = {
  '02-lineage.ts': stdout =>
    expect(stdout).toMatch(
      /ok: false; chunk 5 \(assistant\) is recorded as \w{8}… and its content gives \w{8}…\n$/,
    ),
  // Whichever process did it, nothing was asked or charged twice.
  '15-resume.ts': stdout => {
    for (const line of ['clerk is asked', 'euros are charged', 'packer is asked'])
      expect(stdout.split(line), line).toHaveLength(2)
  },
}

function example(name: string, ...args: string[]) {
  return start([process.execPath, `examples/${name}`, ...args])
}
