import { Agent } from '../flow/agent.ts'
import { Workflow } from '../flow/workflow.ts'
import type { ModelLike } from '../model/resolve.ts'
import type { Chunk } from '../session/chunk.ts'
import type { Session } from '../session/session.ts'

/** Has the tests run where the session's files are, and judges by their exit code, whatever the model says of it. */
export class Validator extends Workflow {
  readonly tester: Agent

  constructor(model: ModelLike) {
    super()
    this.tester = new Agent('Run the command that the tests are run with, and say how it ended.', {
      model,
      memory: 'local',
      recall: false,
      builtins: ['run_shell_command'],
    })
  }

  async forward(session: Session): Promise<Session> {
    const tested = await this.tester(session.user('Run the tests.'))
    const { branch } = tested
    const { passed, reason } = judge(tested, session.length)
    const verdict = passed ? 'accept' : 'reject'
    await this.tester.remember(`Slugs of titles: the ${branch} attempt was ${verdict}ed. ${reason}`)
    return tested.append({ kind: 'verdict', verdict, subject: branch, reason, by: 'validator' })
  }
}

/** The last verdict on a session's record. */
export function verdictOn(session: Session): Chunk<'verdict'> | undefined {
  return session.chunks.findLast(chunk => chunk.kind === 'verdict')
}

function judge(session: Session, from: number): { passed: boolean; reason: string } {
  const ran = session.chunks
    .slice(from)
    .findLast(chunk => chunk.kind === 'tool-result' && chunk.tool === 'run_shell_command')
  if (ran?.kind !== 'tool-result' || ran.outcome.kind !== 'value') {
    return { passed: false, reason: 'The tests were not run.' }
  }
  const { exitCode, stdout } = ran.outcome.value as { exitCode: number; stdout: string }
  const failed = failedTests(stdout)
  if (exitCode === 0) return { passed: true, reason: 'All tests pass (exit code 0).' }
  const names = failed.map(name => `"${name}"`).join(', ')
  return { passed: false, reason: `Exit code ${exitCode}; these tests fail: ${names || 'see the output'}.` }
}

/** The names of tests that failed, from output in the TAP format. */
export function failedTests(tap: string): string[] {
  const names = [...tap.matchAll(/^ *not ok \d+ - (.*)$/gm)].map(([, name]) => name as string)
  return [...new Set(names)].filter(name => !/\.[cm]?[jt]s$/.test(name))
}
