import assert from 'node:assert/strict'
import type { Sandbox, SandboxCapabilities } from '../../sandbox/spec.ts'
import { refused } from '../refused.ts'
import { assertKilled, outOfTime, output, type SandboxCases, textOf } from './case.ts'

/** Ways to start a process that outlives its command. Each writes its number into `pid` and sleeps. */
const daemons: Readonly<Record<string, string>> = {
  'in the background': "sh -c 'echo $$ > pid; exec sleep 1000' &",
  'with nohup': "nohup sh -c 'echo $$ > pid; exec sleep 1000' > /dev/null 2>&1 &",
  'with setsid': "setsid sh -c 'echo $$ > pid; exec sleep 1000' > /dev/null 2>&1 &",
  'by forking twice':
    '(setsid sh -c \'(echo $$ > /dev/null; sh -c "echo \\$\\$ > pid; exec sleep 1000" &) &\' &)',
  'with an empty environment': "env -i setsid /bin/sh -c 'echo $$ > pid; exec sleep 1000' > /dev/null 2>&1 &",
}

const started = 'while ! test -s pid; do sleep 0.01; done'

export function endCases({ enforced }: SandboxCapabilities): SandboxCases {
  return {
    async 'a timeout ends a command and says so'(sandbox) {
      const result = await outOfTime(sandbox, 'echo before; sleep 1000', ({ stdout }) => stdout.length > 0)
      assertKilled(result)
      assert.equal(textOf(result.stdout), 'before\n')
      assert.equal(await output(sandbox, 'echo after'), 'after\n')
    },

    async 'kill ends a command at once, also before it has started'(sandbox) {
      const command = sandbox.exec('trap "" TERM; echo > up; sleep 1000')
      await until(sandbox, 'up')
      command.kill()
      const result = await command.result
      assertKilled(result)
      assert.equal(result.timedOut, false)
      const early = sandbox.exec('sleep 1000')
      early.kill()
      assertKilled(await early.result)
    },

    async 'an abort ends a command, and its result rejects as cancelled'(sandbox) {
      const abort = new AbortController()
      const command = sandbox.exec('echo > up; sleep 1000', { signal: abort.signal })
      await until(sandbox, 'up')
      abort.abort(new Error('enough'))
      await refused(command.result, 'cancelled')
      await refused(sandbox.exec('echo > never', { signal: abort.signal }).result, 'cancelled')
      assert.equal(await sandbox.files.stat('never'), null)
    },

    async 'closing ends what runs, and everything after it is refused'(sandbox) {
      const command = sandbox.exec('echo > up; sleep 1000')
      await until(sandbox, 'up')
      const closing = sandbox.close()
      assertKilled(await command.result)
      await closing
      await sandbox.close()
      await refused(sandbox.exec('true').result, 'sandbox-closed')
      await refused(sandbox.files.read('up'), 'sandbox-closed')
      await refused(sandbox.files.write('new', ''), 'sandbox-closed')
    },

    ...(enforced.processTree && daemonCases()),
  }
}

function daemonCases(): SandboxCases {
  const cases: Record<string, (sandbox: Sandbox) => Promise<void>> = {}
  for (const [how, start] of Object.entries(daemons)) {
    cases[`a process started ${how} ends with its command`] = async sandbox => {
      await sandbox.exec(`${start}\n${started}`).result
      await assertGone(sandbox, how)
    }
    cases[`a process started ${how} ends with a command that is killed`] = async sandbox => {
      const command = sandbox.exec(`${start}\n${started}; echo > up; sleep 1000`)
      await until(sandbox, 'up')
      command.kill()
      await command.result
      await assertGone(sandbox, how)
    }
  }
  return cases
}

/** Waits for a file that a command makes. */
async function until(sandbox: Sandbox, path: string): Promise<void> {
  while (!(await sandbox.files.stat(path))) await new Promise(resolve => setTimeout(resolve, 10))
}

async function assertGone(sandbox: Sandbox, how: string): Promise<void> {
  const pid = textOf(await sandbox.files.read('pid')).trim()
  assert.match(pid, /^\d+$/)
  // One that has ended may wait to be collected, as a zombie; where each command counts processes anew, the number is another's.
  const state = await sandbox.exec(`ps -o stat= -o args= -p ${pid}`).result
  assert.doesNotMatch(
    textOf(state.stdout),
    /^[^Z\s]\S*\s+sleep 1000/m,
    `the process started ${how} is still there`,
  )
}
