import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { localMemory } from '../../../src/memory/drivers/local/local-memory.ts'
import type { MemoryBackend, MemoryStore } from '../../../src/memory/spec.ts'
import type { Message } from '../../../src/session/message.ts'
import { textOf } from '../../../src/session/part.ts'
import type { Session } from '../../../src/session/session.ts'

/** A folder for a test, gone when it ends. */
export function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'openrath-memory-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

/** A backend whose stores lie in a folder of the test, and what it was asked. */
export function watched(path = folder()): { backend: MemoryBackend; asked: string[] } {
  const local = localMemory({ folder: path, durability: 'normal' })
  const asked: string[] = []
  const backend: MemoryBackend = {
    ...local,
    async open(spec) {
      asked.push('open')
      const store = await local.open(spec)
      return new Proxy(store, {
        get(target, name) {
          const member = target[name as keyof MemoryStore]
          if (typeof member !== 'function') return member
          return (...args: unknown[]) => {
            asked.push(String(name))
            return (member as (...args: unknown[]) => unknown).apply(target, args)
          }
        },
      })
    },
  }
  return { backend, asked }
}

export async function open(path = folder()): Promise<MemoryStore> {
  const store = await localMemory({ durability: 'normal' }).open({ path })
  onTestFinished(() => store.close())
  return store
}

export const memories = (session: Session) => session.chunks.filter(chunk => chunk.kind === 'memory')

export const said = (messages: readonly Message[] = []): string[] =>
  messages.map(message => (message.role === 'tool' ? '' : textOf(message.content)))
