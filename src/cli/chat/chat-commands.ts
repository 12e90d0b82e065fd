import { RathError } from '../../base/errors.ts'
import type { Runtime } from '../../run/runtime.ts'
import { isPlacedFolder, rootLane } from '../../session/lane.ts'
import type { Session } from '../../session/session.ts'
import { chunkLines } from '../chunk-print.ts'
import type { Output } from '../output.ts'
import { count, oneLine } from '../text.ts'

/** What a command of the conversation may look at and change. */
export interface Conversation {
  readonly output: Output
  readonly session: Session
  readonly branch: string
  readonly branches: { load(branch: string): Promise<Session | undefined>; names(): Promise<string[]> }
  readonly runtime: Pick<Runtime, 'places'>
  goTo(session: Session, branch?: string): Promise<void>
  leave(): void
}

export interface ChatCommand {
  readonly usage: string
  readonly purpose: string
  run(chat: Conversation, rest: string): Promise<void> | void
}

export const chatCommands: Readonly<Record<string, ChatCommand>> = {
  fork: {
    usage: '/fork [NAME]',
    purpose: 'a branch from here, with files of its own; you go on in it',
    async run(chat, rest) {
      const names = await chat.branches.names()
      const name = rest || `branch-${names.length + 1}`
      if (names.includes(name))
        return chat.output.print(`There is a branch ${name}; /switch ${name} goes there.`)
      if (!/^[\w.-]+$/.test(name))
        return chat.output.print('A branch has a name of letters, digits, dots and dashes.')
      await chat.goTo(chat.session, chat.branch)
      await chat.goTo(chat.session.fork(name), name)
      chat.output.print(`On ${name} now. Nothing you do here touches ${names[0] ?? 'main'}, until /merge.`)
    },
  },
  branches: {
    usage: '/branches',
    purpose: 'the branches there are',
    async run(chat) {
      const names = await chat.branches.names()
      for (const name of names.length > 0 ? names : [chat.branch]) {
        const session = name === chat.branch ? chat.session : await chat.branches.load(name)
        const said = session ? `${count(session.length, 'chunk')}, ${oneLine(session.text, 60)}` : ''
        chat.output.print(`${name === chat.branch ? '*' : ' '} ${name.padEnd(16)} ${said}`)
      }
    },
  },
  switch: {
    usage: '/switch NAME',
    purpose: 'go on in another branch',
    async run(chat, rest) {
      const session = await named(chat, rest)
      await chat.goTo(session, rest)
      chat.output.print(`On ${rest} now, ${count(session.length, 'chunk')}.`)
    },
  },
  merge: {
    usage: '/merge NAME [ours|theirs|markers]',
    purpose: 'bring what was said and the files of another branch into this one; the word settles conflicts',
    async run(chat, rest) {
      const [, name = rest, onConflict] = /^(.*?)\s+(ours|theirs|markers)$/.exec(rest) ?? []
      const other = await named(chat, name)
      if (name === chat.branch) return chat.output.print('That is the branch you are on.')
      const merged = await mergedWith(chat.session, other, onConflict as 'ours' | undefined)
      await chat.goTo(merged)
      chat.output.print(`${name} is merged into ${chat.branch}: ${count(merged.length, 'chunk')}.`)
    },
  },
  undo: {
    usage: '/undo',
    purpose: 'take back your last message, the answer, and what it did to the files',
    async run(chat) {
      const { session, output, runtime } = chat
      const asked = session.chunks.slice().findLastIndex(chunk => chunk.kind === 'user')
      if (asked < 1) return output.print('There is nothing to take back.')
      const undone = session.chunks.slice(asked)
      const calls = undone.filter(chunk => chunk.kind === 'tool-result')
      const { backend = 'local', spec } = session.placement ?? {}
      // A rewound session gets files of its own; one that worked in the folder itself goes on there.
      const isInFolder = isPlacedFolder(session.lineage.lane ?? rootLane)
      const rewound = session.rewind(asked - 1)
      const before = isInFolder ? rewound.to(backend, spec) : rewound
      const tree = calls.find(chunk => chunk.before !== undefined)?.before
      // What was placed again has begun nowhere yet; the session that is undone has.
      runtime.places.check({ session })
      if (isInFolder && tree !== undefined) await runtime.places.restore({ session: before }, tree)
      await chat.goTo(before)
      const files = [...new Set(calls.flatMap(chunk => chunk.files ?? []).map(({ path }) => path))]
      const mended = files.length > 0 ? `; ${files.join(', ')} as before` : ''
      output.print(`Taken back: ${count(undone.length, 'chunk')}${mended}.`)
    },
  },
  why: {
    usage: '/why',
    purpose: 'what the last answer came from: messages, tools, model, cost',
    run(chat) {
      const { session, output } = chat
      const asked = session.chunks.slice().findLastIndex(chunk => chunk.kind === 'user')
      if (asked < 0) return output.print('Nothing was asked yet.')
      for (const chunk of session.chunks.slice(asked)) output.print(chunkLines(chunk, output, false))
      const last = session.chunks.findLast(chunk => chunk.kind === 'assistant')
      if (last?.kind !== 'assistant') return
      const { model, prompt, usage, id } = last
      const facts = [
        model && `model ${model}`,
        prompt && `prompt ${prompt.slice(0, 12)}`,
        usage && count(usage.totalTokens, 'token'),
        `chunk ${id.slice(0, 12)}`,
      ]
      output.print(
        output.paint(
          'dim',
          `     ${facts.filter(Boolean).join(', ')}; ${count(session.usage.totalTokens, 'token')} in all`,
        ),
      )
    },
  },
  help: {
    usage: '/help',
    purpose: 'this list',
    run: ({ output }) => {
      for (const { usage, purpose } of Object.values(chatCommands))
        output.print(`${usage.padEnd(14)} ${purpose}`)
      output.print('Ctrl-C cancels an answer and keeps the conversation.')
    },
  },
  quit: { usage: '/quit', purpose: 'leave; rath chat goes on here', run: chat => chat.leave() },
}

/** Says how to settle a conflict in the words of the chat. */
async function mergedWith(
  session: Session,
  other: Session,
  onConflict: 'ours' | 'theirs' | 'markers' | undefined,
): Promise<Session> {
  try {
    return await session.merge(other, onConflict ? { onConflict } : {})
  } catch (error) {
    if (!(error instanceof RathError) || error.code !== 'merge-conflict') throw error
    const [first = ''] = error.message.split('\nMerge with onConflict')
    throw new RathError(error.code, `${first}\nSettle them: /merge NAME ours, theirs or markers.`, {
      data: error.data,
    })
  }
}

async function named(chat: Conversation, name: string): Promise<Session> {
  const session = name === chat.branch ? chat.session : name && (await chat.branches.load(name))
  if (session) return session
  const names = await chat.branches.names()
  throw new RathError(
    'invalid-argument',
    `There is no branch ${JSON.stringify(name)}; there are ${names.join(', ') || chat.branch}.`,
  )
}
