import { mkdirSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { passingTests } from '../../demo/repository.ts'
import type { Session } from '../../session/session.ts'

/** A branch that was merged, or left out, and what was said of it. Its session has the branch's name as its tag. */
export interface JudgedBranch {
  readonly branch: string
  readonly session: string
  readonly verdict: 'accept' | 'reject'
  readonly reason: string
}

/** Lets `npx rath` in a folder be this very command, with the Node that it runs on. */
export function linkCommand(folder: string): void {
  const bin = join(folder, 'node_modules', '.bin')
  const main = realpathSync(process.argv[1] as string)
  mkdirSync(bin, { recursive: true })
  writeFileSync(join(bin, 'rath'), `#!/bin/sh\nexec '${process.execPath}' '${main}' "$@"\n`, { mode: 0o755 })
}

/** What to type next, a line each with what it is for. */
export function nextCommands(
  session: Session,
  branches: readonly JudgedBranch[],
): [line: string, purpose: string][] {
  const line = changedLine(session)
  const broken = branches.flatMap(({ branch, verdict, reason }) => {
    const test = passingTests.find(name => verdict === 'reject' && reason.includes(`"${name}"`))
    return test === undefined ? [] : [{ branch, test }]
  })
  return [
    ['npx rath replay last', 'the whole run again from its record: nothing is asked, nothing is run'],
    ...(line === undefined
      ? []
      : [[`npx rath blame ${line}`, 'who wrote that line, and from what'] as [string, string]]),
    ...broken
      .slice(0, 1)
      .map(({ branch, test }): [string, string] => [
        `npx rath bisect ${branch} -- node --test --test-name-pattern="${test}"`,
        'which edit broke that test',
      ]),
    ['npx rath dossier last --md', 'what happened, for a review'],
    ['npx rath resume last', 'goes on with a run; this one is done and gives its result'],
    ['npx rath memory list', 'what is remembered now'],
  ]
}

/** The first line that the last edit changed, as `FILE:LINE`. */
function changedLine(session: Session): string | undefined {
  const edit = session.chunks.findLast(
    chunk => chunk.kind === 'tool-result' && (chunk.files?.length ?? 0) > 0,
  )
  const file =
    edit?.kind === 'tool-result' ? edit.files?.find(({ change }) => change !== 'deleted') : undefined
  const lines = file?.patch?.split('\n') ?? []
  let at = 0
  for (const text of lines) {
    const [, start] = /^@@ -\S+ \+(\d+)/.exec(text) ?? []
    if (start !== undefined) at = Number(start)
    else if (at > 0 && text.startsWith('+')) return `${file?.path}:${at}`
    else if (at > 0 && !text.startsWith('-')) at++
  }
  return undefined
}
