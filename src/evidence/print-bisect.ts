import type { Bisection, FirstFailing, Probe } from './bisect.ts'
import { oneLine } from './one-line.ts'

export function printProbe({ state, answer, cause, producer, notRestored }: Probe): string {
  const missing = notRestored.length > 0 ? ` (${notRestored.length} files were never kept)` : ''
  return `${answer.padEnd(4)} state ${state}: ${described({ cause, producer })}${missing}`
}

export function printBisection(bisection: Bisection): string {
  const { result, first, suspects, states, probes } = bisection
  const cost = `${probes.length} of ${states} states checked`
  switch (result) {
    case 'passes':
      return `The check passes on the files as the session left them; ${cost}.${note(bisection)}`
    case 'fails-from-start':
      return `The check fails on the files as they were before the session; ${cost}.${note(bisection)}`
    case 'suspects':
      return [
        `It begins to fail in one of these, which could not be told apart; ${cost}.${note(bisection)}`,
        ...suspects.map(suspect => `  ${described(suspect)}`),
      ].join('\n')
    case 'found':
      return `First fails: ${described(first as FirstFailing)}; ${cost}.${note(bisection)}`
  }
}

function note({ changes, others }: Bisection): string {
  if (changes === 'several') return ` It broke more than once: also ${others.map(described).join(', ')}.`
  if (changes === 'assumed')
    return ' States in between were not checked: if it was mended and broken again, there are others.'
  return ''
}

function described({
  cause,
  producer,
}: Pick<FirstFailing, 'cause'> & { producer?: FirstFailing['producer'] | undefined }): string {
  if (producer === undefined) return 'the files before the session'
  const { index, by, tool, branch, chunk } = producer
  const where = `chunk ${index} ${chunk.slice(0, 12)}${branch ? ` on ${oneLine(branch)}` : ''}`
  if (cause === 'drift') return `a change by a person or another program, seen at ${where}`
  if (cause === 'merge') return `the merge at ${where}`
  return `${where}, ${oneLine([tool, by && `by ${by}`].filter(Boolean).join(' '))}`
}
