import type { Json } from '../../base/json.ts'
import type { Event } from '../../run/graph/history.ts'
import type { Chunk } from '../../session/chunk.ts'
import type { AnswerPart } from '../../session/part.ts'
import { textOf } from '../../session/part.ts'
import { spentBy } from '../../session/usage.ts'
import type { Cutter } from './cutter.ts'
import type { Fact, Step } from './dossier.ts'
import { argumentsOf, driftIn, toolStep } from './tool-step.ts'

/** Every event as a step. Linear in events. */
export function stepsOf(events: readonly Event[], cutter: Cutter): Step[] {
  const results = resultsOf(events)
  return events.map((event, i) => {
    const { n, chunk, session, line, inFinal } = event
    return {
      n,
      kind: chunk.kind,
      chunk: chunk.id,
      index: chunk.index,
      session: session.id,
      branch: line.index,
      at: chunk.at,
      ...(chunk.by !== undefined && { by: chunk.by }),
      inFinal,
      ...detailOf(event, results, cutter, driftBefore(events, i)),
    }
  })
}

const usual: ReadonlySet<string | undefined> = new Set(['stop', 'tool-calls'])

type Detail = Partial<
  Pick<Step, 'text' | 'reasoning' | 'model' | 'prompt' | 'usage' | 'calls' | 'tool' | 'facts'>
>

/** What the note right before a call says that somebody else had changed. */
function driftBefore(events: readonly Event[], i: number): readonly string[] {
  const before = events[i - 1]
  return before && before.line === events[i]?.line ? driftIn(before.chunk) : []
}

function detailOf(
  { chunk, line }: Event,
  results: Results,
  cutter: Cutter,
  drift: readonly string[],
): Detail {
  const spent = spentBy(chunk)
  const usage = spent ? { usage: spent } : {}
  const model = 'model' in chunk && chunk.model !== undefined ? { model: chunk.model } : {}
  switch (chunk.kind) {
    case 'system':
    case 'user':
      return { ...said(textOf(chunk.content), cutter), ...facts(attachments(chunk.content)) }
    case 'assistant': {
      const reasoning = chunk.content
        .flatMap(part => (part.type === 'reasoning' ? [part.text] : []))
        .join('\n')
      const calls = chunk.content.flatMap(part => {
        if (part.type !== 'tool-call') return []
        const step = results.stepOf(line.index, part.id, chunk)
        return [
          { name: part.name, ...(step === undefined ? { args: argumentsOf(part.args, cutter) } : { step }) },
        ]
      })
      return {
        ...said(textOf(chunk.content), cutter),
        ...(reasoning !== '' && { reasoning: cutter.keep(reasoning) }),
        ...model,
        ...(chunk.prompt !== undefined && { prompt: chunk.prompt }),
        ...usage,
        ...(calls.length > 0 && { calls }),
        ...facts([
          ...fact('finish reason', usual.has(chunk.finishReason) ? undefined : chunk.finishReason),
          ...attachments(chunk.content),
        ]),
      }
    }
    case 'tool-result':
      return { tool: toolStep(chunk, results.argsOf(line.index, chunk.callId), cutter, drift) }
    default:
      return { ...said(chunk.text, cutter), ...model, ...usage, ...facts(factsOf(chunk)) }
  }
}

function factsOf(chunk: Chunk): Fact[] {
  switch (chunk.kind) {
    case 'memory':
      return [
        ...fact('operation', chunk.op),
        ...fact('store', chunk.store),
        ...fact('hits', chunk.hits?.length),
      ]
    case 'route':
      return fact('candidates', chunk.candidates.map(({ name }) => name).join(', '))
    case 'approval':
      return [
        ...fact('tool', chunk.tool),
        ...fact('decided by', chunk.decidedBy),
        ...fact('approval', chunk.approval),
      ]
    case 'effect':
      return [
        ...fact('effect', chunk.effect),
        ...fact('request', chunk.request === undefined ? undefined : JSON.stringify(chunk.request)),
        ...fact('tool call', chunk.callId),
        ...fact('sessions inside', chunk.sessions?.map(({ session }) => session).join(', ')),
      ]
    case 'verdict':
      return fact('score', chunk.score)
    case 'merge':
      return [
        ...fact('chunks of each branch', chunk.branches.map(({ chunks }) => chunks).join(', ')),
        ...(chunk.conflicts ?? []).flatMap(({ path, settled, by }) =>
          fact(`conflict in ${path}`, by === undefined ? settled : `${settled}, by ${by}`),
        ),
      ]
    case 'compress':
      return fact('chunks it stands for', chunk.replaced.length)
    case 'error':
      return [...fact('attempt', chunk.attempt), ...fact('retry', chunk.retry)]
    default:
      return []
  }
}

function said(text: string, cutter: Cutter): Detail {
  return text === '' ? {} : { text: cutter.keep(text) }
}

function facts(found: readonly Fact[]): Detail {
  return found.length > 0 ? { facts: found } : {}
}

function fact(name: string, value: string | number | undefined): Fact[] {
  return value === undefined || value === '' ? [] : [{ name, value: String(value) }]
}

/** Pictures and files are named, not shown. */
function attachments(content: readonly AnswerPart[]): Fact[] {
  return content.flatMap(part => {
    if (part.type !== 'image' && part.type !== 'file') return []
    const name = 'name' in part ? ` ${part.name}` : ''
    const size =
      part.data === undefined ? `at ${part.url}` : `${Math.floor((part.data.length * 3) / 4)} bytes`
    return fact(`${part.type}${name}`, `${part.mediaType}, ${size}`)
  })
}

interface Results {
  /** The result of a call. Ids repeat: the first result on the same line after the answer is the one. */
  stepOf(line: number, callId: string, answer: Chunk): number | undefined
  argsOf(line: number, callId: string): Json | undefined
}

function resultsOf(events: readonly Event[]): Results {
  const args = new Map<string, Json>()
  const asked = new Map<string, Chunk>()
  const steps = new Map<Chunk, Map<string, number>>()
  for (const { n, chunk, line } of events) {
    if (chunk.kind === 'assistant') {
      for (const part of chunk.content) {
        if (part.type !== 'tool-call') continue
        asked.set(`${line.index} ${part.id}`, chunk)
        args.set(`${line.index} ${part.id}`, part.args)
      }
    } else if (chunk.kind === 'tool-result') {
      const answer = asked.get(`${line.index} ${chunk.callId}`)
      if (answer) steps.set(answer, (steps.get(answer) ?? new Map()).set(chunk.callId, n))
    }
  }
  return {
    stepOf: (_, callId, answer) => steps.get(answer)?.get(callId),
    argsOf: (line, callId) => args.get(`${line} ${callId}`),
  }
}
