// A memory backend of your own: mem0's REST API behind the same interface as ours, in a hundred lines and with fetch alone.
// Run with MEM0_API_KEY it asks mem0; without, a few lines at the end answer in its place.
import { RathError, type Session } from 'openrath'
import type { Memory, MemoryBackend, MemoryFilter, MemoryStore, NewMemory } from 'openrath/memory'

/** What mem0 knows of a memory. Everything that it has no field for travels in `metadata.rath`. */
interface Mem0 {
  id: string
  memory: string
  score?: number
  metadata: { rath: Omit<Memory, 'id' | 'uri' | 'text'> }
}

export function mem0(apiKey: string, ask: typeof fetch = fetch): MemoryBackend {
  const capabilities = { vectors: true, history: false, expiry: false, lanes: false, resources: false }
  const call = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const response = await ask(`https://api.mem0.ai${path}`, {
      method,
      headers: { Authorization: `Token ${apiKey}`, 'Content-Type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    if (response.ok) return (response.status === 204 ? undefined : await response.json()) as T
    const code = response.status === 404 ? 'memory-missing' : 'store-failed'
    throw new RathError(
      code,
      `mem0 answered ${response.status} to ${method} ${path}: ${await response.text()}`,
    )
  }
  return { name: 'mem0', capabilities, open: async spec => open(String(spec?.user ?? 'default')) }

  function open(user: string): MemoryStore {
    const filters = { user_id: user }
    const one = (ref: string) => `/v1/memories/${encodeURIComponent(ref.split('/').at(-1) ?? '')}/`
    const all = async (filter: MemoryFilter = {}) => {
      const found: Mem0[] = []
      for (let page = 1, more = true; more; page++) {
        const answer = await call<{ results: Mem0[]; next: string | null }>(
          'POST',
          `/v3/memories/?page=${page}`,
          { filters },
        )
        found.push(...answer.results)
        more = answer.next !== null
      }
      return found.map(toMemory).filter(entry => fits(entry, filter))
    }
    const store: MemoryStore = {
      name: `mem0:${user}`,
      backend: 'mem0',
      capabilities,
      async write(entries) {
        if (entries.some(entry => entry.lane || entry.expires)) throw unsupported('lanes or expiry')
        const known = entries.some(entry => entry.key) ? await all() : []
        const kept: Memory[] = []
        for (const entry of entries) {
          const rath = withDefaults(entry)
          const held = known.find(other => other.key === entry.key && other.scope === rath.scope)
          if (entry.key && held) kept.push(held)
          else {
            const messages = [{ role: 'user', content: entry.text }]
            const body = { messages, user_id: user, metadata: { rath }, infer: false }
            const { results } = await call<{ results: { id: string }[] }>('POST', '/v3/memories/add/', body)
            kept.push(toMemory({ id: results[0]?.id ?? '', memory: entry.text, metadata: { rath } }))
            known.push(...kept.slice(-1))
          }
        }
        return kept
      },
      async update(ref, { text, ...change }) {
        const { id, uri: _, text: before, ...old } = toMemory(await call<Mem0>('GET', one(ref)))
        const rath = { ...old, ...change, version: old.version + 1, written: Date.now() }
        return toMemory(await call<Mem0>('PUT', one(id), { text: text ?? before, metadata: { rath } }))
      },
      async read(ref) {
        return call<Mem0>('GET', one(ref)).then(toMemory, error => {
          if (error instanceof RathError && error.code === 'memory-missing') return null
          throw error
        })
      },
      async list({ limit = 50, cursor = '0', ...filter } = {}) {
        const entries = (await all(filter)).sort((a, b) => b.at - a.at)
        const end = Number(cursor) + limit
        const page = entries.slice(Number(cursor), end)
        return end < entries.length ? { entries: page, cursor: String(end) } : { entries: page }
      },
      async tree(uri = 'memory://') {
        return { uri, entries: (await all()).filter(entry => entry.uri.startsWith(uri)).length, children: [] }
      },
      async find(query, { limit = 5, floor = 0.3, ...filter } = {}) {
        const body = { query, filters, top_k: 100, threshold: floor }
        const { results } = await call<{ results: Mem0[] }>('POST', '/v3/memories/search/', body)
        const hits = results.map(result => ({ ...toMemory(result), score: result.score ?? 0 }))
        return { hits: hits.filter(hit => fits(hit, filter)).slice(0, limit), mode: 'both' }
      },
      async forget(what) {
        const found =
          typeof what === 'string'
            ? [await store.read(what)].filter(entry => entry !== null)
            : await all(what)
        for (const { id } of found) await call('DELETE', one(id))
        return found.length
      },
      async history() {
        throw unsupported('a history')
      },
      async ingest() {
        throw unsupported('resources')
      },
      async commit(session: Session, { scope = `session/${session.chunks.at(0)?.id}`, entries } = {}) {
        const before = new Set((await all({ scope })).map(entry => entry.id))
        const said = [...session.chunks].filter(
          ({ kind, text }) => (kind === 'user' || kind === 'assistant') && text,
        )
        const turns = said.map(({ id, kind, text, at }) => ({
          ...{ text: `${kind}: ${text}`, scope, category: 'turn', key: id, at, source: { chunks: [id] } },
        }))
        const kept = await store.write(entries?.map(entry => ({ scope, ...entry })) ?? turns)
        const written = kept.filter(entry => !before.has(entry.id))
        return { written, from: written.flatMap(entry => entry.source.chunks ?? []), settled: 0 }
      },
      async close() {},
      async [Symbol.asyncDispose]() {},
    }
    return store
  }
}

function withDefaults({
  text: _,
  lane: _lane,
  expires: _expires,
  ...entry
}: NewMemory): Mem0['metadata']['rath'] {
  const now = Date.now()
  const defaults = { scope: 'agent', category: 'fact', tags: [], metadata: {}, at: now, source: {} }
  return { ...defaults, standing: 'adopted', ...entry, written: now, version: 1 }
}

function toMemory({ id, memory, metadata: { rath } }: Mem0): Memory {
  return { ...rath, id, uri: `memory://${rath.scope}/${rath.category}/${id}`, text: memory }
}

function fits(
  entry: Memory,
  { scope, category, tags = [], since = -Infinity, until = Infinity }: MemoryFilter,
): boolean {
  const within = (one: string) => `${entry.scope}/`.startsWith(`${one}/`)
  return (
    (scope === undefined || [scope].flat().some(within)) &&
    (category === undefined || [category].flat().includes(entry.category)) &&
    tags.every(tag => entry.tags.includes(tag)) &&
    entry.at >= since &&
    entry.at < until
  )
}

function unsupported(what: string): RathError {
  return new RathError('memory-unsupported', `This mem0 backend does not do ${what}.`)
}

/** Answers as mem0 documents it, from a list. */
function pretended(): typeof fetch {
  const kept: Mem0[] = []
  return async (input, init) => {
    const { pathname } = new URL(String(input))
    const body = init?.body ? JSON.parse(String(init.body)) : {}
    const entry = kept.find(({ id }) => pathname === `/v1/memories/${id}/`)
    if (pathname === '/v3/memories/add/') {
      const id = `m${kept.length + 1}`
      kept.push({ id, memory: body.messages[0].content, metadata: body.metadata })
      return Response.json({ status: 'SUCCEEDED', results: [{ id, event: 'ADD' }] })
    }
    if (pathname === '/v3/memories/') return Response.json({ results: kept, next: null })
    if (pathname === '/v3/memories/search/') {
      const asked = String(body.query).toLowerCase().match(/\w+/g) ?? []
      const score = (text: string) =>
        asked.filter(word => text.toLowerCase().includes(word)).length / asked.length
      const results = kept
        .map(one => ({ ...one, score: score(one.memory) }))
        .filter(one => one.score >= body.threshold)
      return Response.json({ results: results.sort((a, b) => b.score - a.score) })
    }
    if (!entry) return Response.json({ error: 'Memory not found!' }, { status: 404 })
    if (init?.method === 'PUT') Object.assign(entry, { memory: body.text, metadata: body.metadata })
    if (init?.method === 'DELETE') kept.splice(kept.indexOf(entry), 1)
    return Response.json(entry)
  }
}

const key = process.env.MEM0_API_KEY
await using store = await (key ? mem0(key) : mem0('none', pretended())).open({ user: 'ada' })
const [tea] = await store.write([
  { text: 'Ada drinks tea in the morning.', scope: 'user/ada', category: 'preference' },
  { text: 'The proxy listens on port 8443.', key: 'port' },
])
await store.write([{ text: 'The proxy listens on port 8443.', key: 'port' }])
console.log(`kept: ${(await store.list()).entries.length}`)
for (const { text, scope } of (await store.find('tea morning')).hits) console.log(`found: ${text} (${scope})`)
const updated = await store.update(tea?.id ?? '', { text: 'Ada drinks coffee in the morning.' })
console.log(`updated: ${updated.text} version ${updated.version}`)
console.log(
  `forgotten: ${await store.forget({ scope: 'user' })}; zebras found: ${(await store.find('zebra')).hits.length}`,
)
await store.history('any').catch(error => console.log(`${error.code}: ${error.message}`))
