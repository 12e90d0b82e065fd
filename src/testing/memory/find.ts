import assert from 'node:assert/strict'
import type { MemoryCapabilities, MemoryFilter, NewMemory } from '../../memory/spec.ts'
import { found, listed, type MemoryCases, notes, remembered } from './case.ts'

export function findCases({ vectors }: MemoryCapabilities): MemoryCases {
  return {
    async 'nothing that fits is an empty list'({ store }) {
      assert.deepEqual((await store.find('anything')).hits, [])
      await store.write(notes.map(text => ({ text })))
      for (const query of ['zebra', 'quantum chromodynamics', '斑马', '', '   ', '?!…', 'the of and']) {
        assert.deepEqual(await found(store, query), [], query)
      }
    },

    async 'the entry that a question is about comes first'({ store, again }) {
      await store.write(notes.map(text => ({ text })))
      const asked = {
        'What does Ada like to drink in the morning?': notes[0],
        'why did the billing deployment fail': notes[1],
        'python indentation': notes[3],
        'Which instrument does Bruno play?': notes[5],
      }
      for (const one of [store, await again()]) {
        for (const [query, text] of Object.entries(asked)) {
          assert.equal((await found(one, query))[0], text, query)
        }
      }
    },

    async 'a plain question finds its note among 1, 3 and 10, and a question about something else finds none'({
      store,
    }) {
      for (const { note, others, questions } of plainQuestions) {
        const ids: string[] = []
        for (const more of [[note], others.slice(0, 2), others.slice(2, 9)]) {
          for (const { id } of await store.write(more.map(text => ({ text })))) ids.push(id)
          const among = `among ${ids.length}`
          for (const query of questions)
            assert.equal((await found(store, query))[0], note, `${query} ${among}`)
          // How alike a model finds two texts is the model's.
          if (vectors) continue
          for (const query of strangeQuestions)
            assert.deepEqual(await found(store, query), [], `${query} ${among}`)
        }
        for (const id of ids) await store.forget(id)
      }
    },

    async 'hits carry the entry and a score between 0 and 1, best first'({ store }) {
      await store.write(notes.map(text => ({ text, scope: 'user/ada', tags: ['note'] })))
      const { hits } = await store.find('billing service database', { floor: 0, limit: 100 })
      assert.ok(hits.length > 0)
      for (const [i, { score, ...entry }] of hits.entries()) {
        assert.ok(score >= 0 && score <= 1, `a score of ${score}`)
        assert.ok(i === 0 || score <= (hits[i - 1]?.score as number), 'worse before better')
        assert.deepEqual(await store.read(entry.id), entry)
      }
    },

    async 'an entry that fits better scores higher, and a good fit scores well in any company'({ store }) {
      const score = async (query: string, text: string) =>
        (await store.find(query, { floor: 0, limit: 100 })).hits.find(hit => hit.text === text)?.score ?? 0
      const text = 'The violin of the amateur orchestra was stolen.'
      await remembered(store, text)
      const alone = await score('amateur orchestra violin', text)
      await store.write(notes.map(note => ({ text: note })))
      const inCompany = await score('amateur orchestra violin', text)
      const inPart = await score('violin lessons tuesday evening downtown', text)
      assert.ok(alone > 0.5, `${alone} alone`)
      assert.ok(inCompany > 0.5, `${inCompany} in company`)
      assert.ok(inPart < inCompany, `${inPart} for a fit in part, ${inCompany} for a good one`)
    },

    async 'an asker does not see what belongs to another user or agent by name'({ store }) {
      const scopes = ['user', 'user/ada', 'user/bob', 'agent', 'agent/cook', 'team/cook', 'session/1']
      await store.write(scopes.map(scope => ({ text: 'The violin was stolen.', scope })))
      const seen = async (asker?: string) => {
        const { hits } = await store.find('violin stolen', { floor: 0, limit: 100, ...(asker && { asker }) })
        return hits.map(({ scope }) => scope).sort()
      }
      const all = [...scopes].sort()
      assert.deepEqual(await seen(), all)
      const without = (...others: string[]) => all.filter(scope => !others.includes(scope))
      assert.deepEqual(await seen('user/ada'), without('user/bob', 'agent/cook'))
      assert.deepEqual(await seen('agent/cook'), without('user/ada', 'user/bob'))
      assert.deepEqual(await seen('agent/coo'), without('user/ada', 'user/bob', 'agent/cook'))
    },

    async 'a floor leaves out what scores below it'({ store }) {
      await store.write(notes.map(text => ({ text })))
      const query = 'the failed deployment of the billing service and the payment gateway'
      const all = (await store.find(query, { floor: 0, limit: 100 })).hits
      assert.ok(all.length >= 2)
      const floor = all[0]?.score as number
      const best = (await store.find(query, { floor, limit: 100 })).hits
      assert.deepEqual(
        best.map(hit => hit.id),
        all.filter(hit => hit.score >= floor).map(hit => hit.id),
      )
      assert.ok(best.length < all.length)
    },

    async 'five hits by default, as many as asked for otherwise'({ store }) {
      await store.write(
        Array.from({ length: 12 }, (_, i) => ({ text: `The lighthouse keeper's log, page ${i}` })),
      )
      assert.equal((await found(store, 'lighthouse keeper log')).length, 5)
      assert.equal((await found(store, 'lighthouse keeper log', { limit: 2 })).length, 2)
      assert.equal((await found(store, 'lighthouse keeper log', { limit: 12 })).length, 12)
    },

    async 'any script is found in its own words'({ store }) {
      const texts = {
        '用户喜欢在早上喝绿茶。': '早上喝什么茶',
        '数据库的密码每三个月更换一次。': '数据库密码',
        '会議は金曜日の午後に移動しました。': '金曜日の会議',
        'Встреча перенесена на пятницу.': 'встреча в пятницу',
        '회의는 금요일로 옮겨졌습니다.': '회의 금요일',
        'Le café de la gare ferme à minuit.': 'café gare',
        'Die Straße nach Köln ist gesperrt.': 'Straße Köln',
      }
      await store.write(Object.keys(texts).map(text => ({ text })))
      for (const [text, query] of Object.entries(texts)) {
        assert.equal((await found(store, query))[0], text, query)
      }
    },

    async 'identifiers, versions and addresses are found as they are written'({ store }) {
      const texts = {
        'We pinned the parser to v1.3 for now.': 'v1.3',
        'Write to ada@example.org about the contract.': 'ada@example.org',
        'The bug is in parseHttpHeader of the proxy.': 'parseHttpHeader',
        'Set MAX_RETRY_COUNT in the environment.': 'MAX_RETRY_COUNT',
      }
      await store.write([...Object.keys(texts), ...notes].map(text => ({ text })))
      for (const [text, query] of Object.entries(texts)) {
        assert.equal((await found(store, query))[0], text, query)
      }
    },

    async 'finding by words says so'({ store }) {
      await remembered(store, 'The tide is high.')
      const { hits, mode, fellBack } = await store.find('tide', { mode: 'words' })
      assert.equal(hits.length, 1)
      assert.equal(mode, 'words')
      assert.equal(fellBack, undefined)
    },

    async 'a filter means the same to list and to find'({ store }) {
      await store.write(filtered)
      for (const [filter, texts] of filters) {
        const what = JSON.stringify(filter)
        const names = texts.map(text => `memo ${text}`)
        assert.deepEqual(await listed(store, filter), names, `list ${what}`)
        const hits = await found(store, 'memo', { ...filter, floor: 0, limit: 100 })
        assert.deepEqual(hits.sort(), names, `find ${what}`)
      }
    },

    async 'a filter leaves its limit of hits, however many others fit better'({ store }) {
      await store.write([
        ...Array.from({ length: 60 }, () => ({ text: 'otter otter otter', scope: 'user/eve' })),
        { text: 'One otter among many other animals of the river bank.', scope: 'user/ada' },
      ])
      const hits = await found(store, 'otter', { scope: 'user/ada', floor: 0 })
      assert.deepEqual(hits, ['One otter among many other animals of the river bank.'])
    },
  }
}

const otherNotes = [
  'Bruno plays the violin in an amateur orchestra.',
  'Our office in Lisbon moves to the third floor in March.',
  'The quarterly report is due on the second Friday.',
  'Never restart the payment gateway during business hours.',
  'Marta is allergic to peanuts.',
  'The staging cluster has three nodes.',
  'Invoices go to the accountant in Porto.',
  'The gym membership ends in autumn.',
  'Ada prefers tea with lemon in the morning.',
]

const otherNotesInChinese = [
  '用户喜欢在早上喝绿茶。',
  '办公室三月搬到里斯本。',
  '小王对花生过敏。',
  '季度报告在第二个星期五提交。',
  '测试集群一共三个节点。',
  '发票寄给波尔图的会计。',
  '健身卡秋天到期。',
  '猫叫豆豆，住在奶奶家。',
  '合同由律师保管。',
]

/** Questions in words that their note has in part, with words of asking around them. */
const plainQuestions = [
  {
    note: 'My desk lamp is broken',
    others: otherNotes,
    questions: [
      'My lamp broke again…',
      'My lamp broke again, please send a replacement.',
      'What about the lamp?',
    ],
  },
  {
    note: 'The team writes its scripts in Python.',
    others: otherNotes,
    questions: ['preferred programming language Python', 'Do you still know how much Python we use?'],
  },
  {
    note: 'Kestrel listens on port 7070.',
    others: otherNotes,
    questions: ['kestrel upgrade instructions please', 'Which port was it that kestrel listened on?'],
  },
  {
    note: 'The database is backed up to the Tokyo data center at three every night.',
    others: otherNotes,
    questions: ['When is the database backed up?', 'Please tell me where the Tokyo data center is'],
  },
  {
    note: '数据库每天凌晨三点备份到东京机房。',
    others: otherNotesInChinese,
    questions: ['备份在什么时候', '数据库什么时候备份？', '请问东京机房里有什么？'],
  },
  {
    note: '我的台灯坏了。',
    others: otherNotesInChinese,
    questions: ['台灯又坏了，怎么办？', '请问什么坏了？'],
  },
]

/** Questions that none of the notes is about; some share an everyday word with one. */
const strangeQuestions = [
  'What is the capital of France?',
  'When does the ferry leave in the morning?',
  'Who won the football match yesterday?',
  'Could you please tell me something new?',
  '法国的首都是哪里？',
  '昨天的足球比赛谁赢了？',
  '你好，请问你能告诉我什么？',
]

const filtered: readonly NewMemory[] = [
  { text: 'memo a', scope: 'user/ada', category: 'fact', tags: ['x', 'y'], at: 1000 },
  { text: 'memo b', scope: 'user/eve', category: 'preference', tags: ['x'], at: 2000, standing: 'rejected' },
  { text: 'memo c', scope: 'username', category: 'fact', metadata: { team: 'a', size: 3 }, at: 3000 },
  {
    text: 'memo d',
    scope: 'agent/ada',
    category: 'own kind',
    metadata: { team: 'b', deep: { a: [1] } },
    at: 4000,
  },
  { text: 'memo e', scope: 'user', tags: ['%', "'; --"], at: 5000 },
]

const filters: readonly (readonly [MemoryFilter, readonly string[]])[] = [
  [{}, ['a', 'b', 'c', 'd', 'e']],
  [{ scope: 'user/ada' }, ['a']],
  [{ scope: 'user' }, ['a', 'b', 'e']],
  [{ scope: ['user/eve', 'agent'] }, ['b', 'd']],
  [{ scope: 'user/a' }, []],
  [{ scope: 'us%' }, []],
  [{ category: 'fact' }, ['a', 'c', 'e']],
  [{ category: ['preference', 'own kind'] }, ['b', 'd']],
  [{ tags: ['x'] }, ['a', 'b']],
  [{ tags: ['x', 'y'] }, ['a']],
  [{ tags: ['%'] }, ['e']],
  [{ tags: ["'; --", '%'] }, ['e']],
  [{ metadata: { team: 'a' } }, ['c']],
  [{ metadata: { size: 3, team: 'a' } }, ['c']],
  [{ metadata: { size: '3' } }, []],
  [{ metadata: { deep: { a: [1] } } }, ['d']],
  [{ since: 2000 }, ['b', 'c', 'd', 'e']],
  [{ until: 2000 }, ['a']],
  [{ since: 2000, until: 4000 }, ['b', 'c']],
  [{ standing: 'rejected' }, ['b']],
  [{ standing: 'adopted', scope: 'user' }, ['a', 'e']],
]
