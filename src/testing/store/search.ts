import assert from 'node:assert/strict'
import { Session } from '../../session/session.ts'
import type { ConformanceCase } from '../conformance.ts'
import { casesOn, type OpenStore, says, talk, user } from './case.ts'

export function searchCases(open: OpenStore): ConformanceCase[] {
  return casesOn(open, {
    async 'search finds the chunks in which all words of the query occur'({ store }) {
      const session = Session.create('empty').append(
        user('The red door is open'),
        says('The green door is shut', 'Guard'),
        user('A RED herring'),
      )
      await store.sessions.put(session)
      const found = async (query: string) =>
        (await store.sessions.search(query)).map(hit => hit.index).sort((a, b) => a - b)
      assert.deepEqual(await found('door'), [0, 1])
      assert.deepEqual(await found('Red'), [0, 2])
      assert.deepEqual(await found('open RED, door!'), [0])
      assert.deepEqual(await found('red shut'), [])
      assert.deepEqual(await found('doo'), [])
      const [hit] = await store.sessions.search('green')
      assert.deepEqual(
        { ...hit },
        {
          chunk: session.chunks.at(1)?.id,
          session: session.id,
          index: 1,
          kind: 'assistant',
          by: 'Guard',
          at: 1000,
          snippet: hit?.snippet,
        },
      )
      assert.match(hit?.snippet ?? '', /The green door is shut/)
    },

    async 'search sees what was added since the last search, by any connection'({ store, other }) {
      const session = talk(1)
      await store.sessions.put(session)
      assert.equal((await store.sessions.search('herring')).length, 0)
      await (await other()).sessions.append(session.id, [says('a herring')])
      assert.equal((await store.sessions.search('herring')).length, 1)
      assert.equal((await (await other()).sessions.search('herring')).length, 1)
    },

    async 'search finds words of every script'({ store }) {
      const lines = [
        '机器学习很有趣',
        'ひらがなとカタカナ',
        'हिन्दी में लिखा',
        'Καλημέρα κόσμε',
        'café au lait',
        'สวัสดีชาวโลก',
        'مَرْحَبًا',
        '한국어 문장',
      ]
      await store.sessions.put(Session.create('empty').append(...lines.map(line => says(line))))
      const queries = ['学习', '趣', 'カタカナ', 'हिन्दी', 'καλημερα', 'CAFE', 'ชาวโลก', 'مَرْحَبًا', '한국어']
      const found = [0, 0, 1, 2, 3, 4, 5, 6, 7]
      for (const [i, query] of queries.entries()) {
        assert.deepEqual(
          (await store.sessions.search(query)).map(hit => hit.index),
          [found[i]],
          query,
        )
      }
      assert.deepEqual(await store.sessions.search('学机'), [])
    },

    async 'search covers everything said and done'({ store }) {
      const session = Session.create('empty').append(
        {
          kind: 'assistant',
          toolCalls: [{ id: 'c', name: 'draw_picture', args: { prompt: 'aardvark', data: 'bison' } }],
        },
        {
          kind: 'tool-result',
          callId: 'c',
          tool: 'draw_picture',
          outcome: { kind: 'value', value: { from: 'caracal', nested: [{ type: 'dingo' }, 4711] } },
          files: [{ path: 'src/emu.ts', change: 'renamed', from: 'src/fox.ts', patch: '+gecko' }],
        },
        { kind: 'error', error: 'timeout', message: 'the heron left' },
        { kind: 'note', name: 'ibis', data: 'jaguar' },
        { kind: 'memory', op: 'recall', store: 'kiwi', query: 'lemur', injected: 'the marten' },
        { kind: 'route', candidates: [{ name: 'newt' }], choice: null, reason: 'owl' },
        { kind: 'approval', approval: 'a', question: 'the puma?', verdict: 'rejected', reason: 'quail' },
        {
          kind: 'user',
          content: [{ type: 'file', mediaType: 'text/plain', name: 'raven.txt', data: 'AAAA' }],
        },
      )
      await store.sessions.put(session)
      const words: Record<string, number> = {
        aardvark: 0,
        bison: 0,
        draw: 0,
        caracal: 1,
        dingo: 1,
        4711: 1,
        emu: 1,
        fox: 1,
        gecko: 1,
        heron: 2,
        ibis: 3,
        jaguar: 3,
        kiwi: 4,
        lemur: 4,
        marten: 4,
        newt: 5,
        owl: 5,
        puma: 6,
        quail: 6,
        rejected: 6,
        raven: 7,
      }
      for (const [word, index] of Object.entries(words)) {
        const hits = await store.sessions.search(word)
        assert.ok(
          hits.some(hit => hit.index === index),
          word,
        )
      }
    },

    async 'search finds words deep inside payloads that lie out of line, and shows their place'({ store }) {
      const output = `${'line of output\n'.repeat(20_000)}the needle is here\n${'more\n'.repeat(20_000)}`
      const session = talk(1).append({
        kind: 'tool-result',
        callId: 'c',
        tool: 'run',
        outcome: { kind: 'value', value: output },
      })
      await store.sessions.put(session)
      const [hit] = await store.sessions.search('needle')
      assert.equal(hit?.index, 1)
      assert.match(hit?.snippet ?? '', /the needle is here/)
    },

    async 'search by kind, and no more hits than asked for'({ store }) {
      const session = Session.create('empty').append(
        ...Array.from({ length: 30 }, (_, i) => (i % 2 ? says(`word ${i}`) : user(`word ${i}`))),
      )
      await store.sessions.put(session)
      assert.equal((await store.sessions.search('word')).length, 20)
      const said = await store.sessions.search('word', { kind: 'assistant', limit: 1000 })
      assert.equal(said.length, 15)
      assert.ok(said.every(hit => hit.kind === 'assistant'))
      assert.equal((await store.sessions.search('word', { limit: 3 })).length, 3)
      assert.deepEqual(await store.sessions.search('word', { kind: 'compress' }), [])
    },

    async 'operators of a query language are ordinary characters'({ store }) {
      const session = Session.create('empty').append(user('a AND b OR c NOT d NEAR e'), user('plain'))
      await store.sessions.put(session)
      const queries = [
        'plain OR',
        'NOT plain',
        '"plain',
        'plain*',
        'pl*',
        'words:plain',
        '(plain',
        '^plain',
        '-plain',
      ]
      queries.push(
        'plain"; DROP TABLE chunk; --',
        '{a b}: plain',
        'NEAR(plain a)',
        "'",
        '',
        '   ',
        '***',
        '\u0000',
        '\ud800',
      )
      for (const query of queries) await store.sessions.search(query)
      assert.deepEqual(
        (await store.sessions.search('a and b or')).map(hit => hit.index),
        [0],
      )
      assert.deepEqual(await store.sessions.search('plain OR'), [])
      assert.deepEqual(await store.sessions.search('   '), [])
      assert.equal((await store.sessions.search('-plain*')).length, 1)
    },

    async 'a chunk shared by forks is found once, with the session that recorded it first'({ store }) {
      const trunk = Session.fromUserMessage('shared platypus')
      await store.sessions.put(trunk)
      for (const fork of trunk.forks(3)) await store.sessions.put(fork.append(says('own words')))
      const hits = await store.sessions.search('platypus')
      assert.deepEqual(
        hits.map(hit => hit.session),
        [trunk.id],
      )
    },

    async 'a shared chunk is still found when the session that recorded it was deleted'({ store }) {
      const trunk = Session.fromUserMessage('shared platypus')
      await store.sessions.put(trunk)
      const heir = trunk.fork('heir').append(says('own words'))
      await store.sessions.put(heir)
      await store.sessions.delete(trunk.id)
      await store.gc({ olderThan: 0 })
      await store.sessions.put(talk(1))
      assert.deepEqual(
        (await store.sessions.search('platypus')).map(hit => hit.session),
        [heir.id],
      )
    },

    async 'what only a deleted session had is not found, and takes no place from what is'({ store }) {
      const [kept, ...gone] = Array.from({ length: 4 }, (_, i) =>
        Session.fromUserMessage(['platypus', 'with', 'many', 'words'].slice(0, 4 - i).join(' ')),
      )
      for (const session of [kept as Session, ...gone]) await store.sessions.put(session)
      for (const { id } of gone) await store.sessions.delete(id)
      assert.deepEqual(
        (await store.sessions.search('platypus', { limit: 1 })).map(hit => hit.session),
        [kept?.id],
      )
    },

    async 'what gc freed is not found any more, and what comes after it is'({ store }) {
      const session = Session.fromUserMessage('platypus')
      await store.sessions.put(session)
      assert.equal((await store.sessions.search('platypus')).length, 1)
      await store.sessions.delete(session.id)
      await store.gc({ olderThan: 0 })
      assert.deepEqual(await store.sessions.search('platypus'), [])
      await store.sessions.put(Session.fromUserMessage('wombat'))
      assert.equal((await store.sessions.search('wombat')).length, 1)
    },

    async 'words longer than any word are found, too'({ store }) {
      const long = 'k9'.repeat(100)
      await store.sessions.put(Session.fromUserMessage(`the token ${long} was here`))
      assert.equal((await store.sessions.search(long)).length, 1)
      assert.equal((await store.sessions.search(`token ${'x'.repeat(200)}`)).length, 0)
    },
  })
}
