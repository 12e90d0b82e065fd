import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

/** An ordered text to remember, and questions about it with the ids of the entries that answer them. */
export interface Corpus {
  readonly name: string
  readonly entries: readonly { readonly id: string; readonly text: string; readonly series: string }[]
  readonly questions: readonly { readonly text: string; readonly relevant: readonly string[] }[]
}

const folder = process.env.OPENRATH_BENCH_DATA ?? resolve(import.meta.dirname, 'data')

/** Why a file cannot be measured on, or undefined when it is there. */
export function missing(file: keyof typeof sources): string | undefined {
  if (existsSync(join(folder, file))) return undefined
  return `${file} is not in ${folder}. ${sources[file]} Set OPENRATH_BENCH_DATA to the folder that holds it.`
}

const sources = {
  'locomo-1-5.json':
    'Take data/locomo10.json of github.com/snap-research/locomo (CC BY-NC 4.0, for measuring only), and keep its first five conversations.',
  'xquad-zh-part1.json':
    'Take xquad.zh.json of github.com/google-deepmind/xquad (CC BY-SA 4.0), or a part of it.',
} as const

interface LocomoTurn {
  readonly speaker: string
  readonly dia_id: string
  readonly text: string
  readonly blip_caption?: string
}

/** Conversations of LoCoMo: an entry for each turn, questions of the categories 1 to 4 whose evidence is named. */
export function locomo(): Corpus[] {
  const conversations = JSON.parse(readFileSync(join(folder, 'locomo-1-5.json'), 'utf8')) as {
    sample_id: string
    conversation: Record<string, unknown>
    qa: { question: string; evidence?: string[]; category: number }[]
  }[]
  return conversations.map(({ sample_id, conversation, qa }) => {
    const sessions = Object.keys(conversation).filter(key => /^session_\d+$/.test(key))
    const entries = sessions.flatMap(session =>
      (conversation[session] as LocomoTurn[]).map(turn => ({
        id: turn.dia_id,
        text: `${turn.speaker}: ${turn.text}${turn.blip_caption ? ` [shares ${turn.blip_caption}]` : ''}`,
        series: `${sample_id}/${session}`,
      })),
    )
    const known = new Set(entries.map(({ id }) => id))
    const questions = qa
      .filter(({ category }) => category >= 1 && category <= 4)
      .map(({ question, evidence = [] }) => ({
        text: question,
        relevant: [...new Set(evidence.flatMap(one => one.match(/D\d+:\d+/g) ?? []))].filter(id =>
          known.has(id),
        ),
      }))
      .filter(({ relevant }) => relevant.length > 0)
    return { name: sample_id, entries, questions }
  })
}

/** Chinese XQuAD: an entry for each sentence, in the order of its paragraph; the sentence with the answer is what is asked for. */
export function xquad(): Corpus {
  const { data } = JSON.parse(readFileSync(join(folder, 'xquad-zh-part1.json'), 'utf8')) as {
    data: {
      paragraphs: {
        context: string
        qas: { question: string; answers: { answer_start: number; text: string }[] }[]
      }[]
    }[]
  }
  const entries: { id: string; text: string; series: string }[] = []
  const questions: { text: string; relevant: string[] }[] = []
  for (const [p, { context, qas }] of data.flatMap(article => article.paragraphs).entries()) {
    const sentences = [...context.matchAll(/[^。！？]*[。！？]?/g)].filter(([text]) => text.trim() !== '')
    for (const [s, [text]] of sentences.entries()) entries.push({ id: `${p}.${s}`, text, series: `${p}` })
    for (const { question, answers } of qas) {
      const starts = answers.map(({ answer_start }) => answer_start)
      const holding = starts.map(start =>
        sentences.findIndex(({ 0: text, index }) => start < index + text.length),
      )
      questions.push({ text: question, relevant: holding.map(s => `${p}.${s}`) })
    }
  }
  return { name: 'XQuAD-zh', entries, questions }
}

/** One corpus as two that know nothing of each other: the first half of its series, and the rest. */
export function halves({ name, entries, questions }: Corpus): [Corpus, Corpus] {
  const series = [...new Set(entries.map(entry => entry.series))]
  const first = new Set(series.slice(0, series.length / 2))
  const half = (isFirst: boolean): Corpus => {
    const own = entries.filter(entry => first.has(entry.series) === isFirst)
    const ids = new Set(own.map(({ id }) => id))
    return {
      name,
      entries: own,
      questions: questions.filter(({ relevant }) => relevant.some(id => ids.has(id))),
    }
  }
  return [half(true), half(false)]
}
