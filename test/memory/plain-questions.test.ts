import { expect, onTestFinished, test } from 'vitest'
import { localMemory } from '../../src/memory/drivers/local/local-memory.ts'
import type { MemoryStore } from '../../src/memory/spec.ts'
import { temporaryFolder } from '../store/folder.ts'

async function storeOf(texts: readonly string[]): Promise<MemoryStore> {
  const folder = temporaryFolder()
  const store = await localMemory({ durability: 'normal' }).open({ path: folder.path })
  onTestFinished(async () => {
    await store.close()
    folder[Symbol.dispose]()
  })
  await store.write(texts.map(text => ({ text })))
  return store
}

const [people, things, places] = [
  'Marta Bruno Ada Chen Olga Pedro Yuki Hana Omar Lena Igor Nadia'.split(' '),
  'invoice contract ladder bicycle sofa printer poster ticket parcel guitar kettle blanket carpet mirror bottle'.split(
    ' ',
  ),
  'Lisbon Porto Vienna Oslo Dublin Prague Lyon Bergen Turin Ghent Bremen Malmo Riga Basel'.split(' '),
]
const [whoZh, whatZh, whereZh] = [
  '小王 小李 老张 阿梅 建国 丽华 志强 秀英 国庆 文静'.split(' '),
  '发票 合同 梯子 自行车 沙发 打印机 海报 门票 包裹 吉他 水壶 毯子 镜子'.split(' '),
  '里斯本 维也纳 奥斯陆 都柏林 布拉格 里昂 都灵 巴塞尔 里加 不来梅'.split(' '),
]
const pick = (list: readonly string[], n: number) => list[n % list.length] as string

/** Notes of a household and an office, no two alike. */
const english = (n: number) =>
  `${pick(people, n)} took the ${pick(things, n * 7)} number ${n} to ${pick(places, n * 3)} on the ${(n % 28) + 1}th.`
const chinese = (n: number) =>
  `${pick(whoZh, n)}在${(n % 28) + 1}号把第${n}个${pick(whatZh, n * 7)}送到${pick(whereZh, n * 3)}。`

const sizes = [1, 3, 10, 1_000, 10_000]

const known = {
  English: {
    other: english,
    note: 'The database is backed up to the Tokyo data center at three every night.',
    questions: [
      'When is the database backed up?',
      'database backup instructions please',
      'Where is the data center in Tokyo?',
    ],
    strange: [
      'What is the capital of France?',
      'When does the ferry leave in the morning?',
      'Who won the football match?',
      'Could you please tell me something new?',
    ],
  },
  Chinese: {
    other: chinese,
    note: '数据库每天凌晨三点备份到东京机房。',
    questions: ['备份在什么时候', '数据库什么时候备份？', '东京机房在哪里？'],
    strange: [
      '法国的首都是哪里？',
      '昨天的足球比赛谁赢了？',
      '渡轮早上几点开？',
      '你好，请问你能告诉我什么？',
    ],
  },
}

const scores = new Map<string, number[]>()

for (const [language, { other, note, questions, strange }] of Object.entries(known)) {
  for (const size of sizes) {
    test(`${language} among ${size.toLocaleString('en')}: a plain question finds its note, one about something else nothing`, async () => {
      const store = await storeOf([note, ...Array.from({ length: size - 1 }, (_, n) => other(n))])
      for (const query of questions) {
        const { hits } = await store.find(query)
        expect(hits[0]?.text, query).toBe(note)
        expect(hits[0]?.score, query).toBeGreaterThan(0.3)
        expect(hits, query).toHaveLength(1)
        const key = `${language} ${questions.indexOf(query)}`
        scores.set(key, [...(scores.get(key) ?? []), hits[0]?.score as number])
      }
      for (const query of strange) expect((await store.find(query)).hits, query).toEqual([])
    })
  }
}

test('a score means the same in a store of any size and in both languages', () => {
  for (const [key, all] of scores) {
    expect(all, key).toHaveLength(sizes.length)
    expect(Math.max(...all) - Math.min(...all), `${key}: ${all}`).toBeLessThan(0.2)
  }
  for (const question of [0, 2]) {
    for (const [i, score] of (scores.get(`English ${question}`) ?? []).entries()) {
      const twin = scores.get(`Chinese ${question}`)?.[i] as number
      expect(
        Math.abs(score - twin),
        `question ${question} among ${sizes[i]}: ${score}, ${twin}`,
      ).toBeLessThan(0.2)
    }
  }
})

test('each word that no entry has costs a little, and one that everybody uses less', async () => {
  const store = await storeOf(['Kestrel listens on port 7070.', english(1), english(2)])
  const score = async (query: string) => (await store.find(query, { floor: 0 })).hits[0]?.score ?? 0
  const [alone, polite, everyday, unknown] = [
    await score('kestrel'),
    await score('please tell me more about kestrel, thanks'),
    await score('kestrel problem this week'),
    await score('kestrel certificate rotation'),
  ]
  expect(alone).toBeGreaterThan(polite)
  expect(polite).toBeGreaterThan(everyday)
  expect(everyday).toBeGreaterThan(unknown)
  expect(unknown).toBeGreaterThan(0.15)
})
