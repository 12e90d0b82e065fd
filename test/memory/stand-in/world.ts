import { rank } from './rank.ts'

interface File {
  text: string
  modified: string
}

interface VikingSession {
  live: { role: string; content: string }[]
  archives: number
}

export interface Reply {
  readonly status: number
  readonly code?: string
  readonly message?: string
  readonly result?: unknown
}

const statusOf: Readonly<Record<string, number>> = {
  INVALID_ARGUMENT: 400,
  INVALID_URI: 400,
  NOT_FOUND: 404,
  ALREADY_EXISTS: 409,
  UNIMPLEMENTED: 501,
}

class Refused extends Error {
  readonly code: string
  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

type Body = Record<string, never> & {
  uri: string
  content: string
  mode: string
  query: string
  pattern: string
  limit: number
  score_threshold: number
  target_uri: string | string[]
  root_uri: string
  operations: { uri: string; content: string; mode: string }[]
  session_id: string
  messages: { role: string; content: string }[]
  temp_file_id: string
  to: string
  text: string
}

/** What one user of the stand-in has: files and folders, sessions, tasks. */
export class VikingWorld {
  broken = false
  readonly #home: string
  readonly #files = new Map<string, File>()
  readonly #folders = new Set<string>()
  readonly #sessions = new Map<string, VikingSession>()
  readonly #tasks = new Map<string, { polls: number; state: unknown }>()
  readonly #uploads = new Map<string, string>()
  #count = 0

  constructor(user: string) {
    this.#home = `viking://user/${user}`
  }

  answer(method: string, url: URL, given: unknown): Reply {
    const body = given as Body
    const uri = url.searchParams.get('uri') ?? ''
    const [, , , area = '', ...path] = url.pathname.split('/').map(decodeURIComponent)
    try {
      return { status: 200, result: this.#route(`${method} ${area}`, path, uri, url, body) }
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      return { status: statusOf[error.code] ?? 500, code: error.code, message: error.message }
    }
  }

  #route(what: string, path: readonly string[], uri: string, url: URL, body: Body): unknown {
    const [first = '', second = ''] = path
    if (what === 'GET content' && first === 'read') return this.#read(uri)
    if (what === 'POST content' && first === 'write') return this.#write([body])
    if (what === 'POST content' && first === 'batch-write') return this.#batch(body)
    if (what === 'GET fs' && first === 'tree') return this.#tree(uri)
    if (what === 'GET fs' && first === 'stat') return this.#stat(uri)
    if (what === 'POST fs' && first === 'mkdir') return this.#mkdir(body.uri)
    if (what === 'DELETE fs') return this.#remove(uri, url.searchParams.get('recursive') === 'true')
    if (what === 'POST search' && first === 'glob') return this.#glob(body)
    if (what === 'POST search' && (first === 'find' || first === 'search')) return this.#find(body)
    if (what === 'POST sessions' && first === '') return this.#createSession(body.session_id)
    if (what === 'POST sessions' && second === 'messages') return this.#addMessages(first, body)
    if (what === 'POST sessions' && second === 'commit') return this.#commit(first)
    if (what === 'GET tasks') return this.#task(first)
    if (what === 'POST resources' && first === 'temp_upload') return this.#upload(body.text)
    if (what === 'POST resources') return this.#addResource(body)
    throw new Refused('UNIMPLEMENTED', `${what} ${path.join('/')}`)
  }

  /** Canonical, without `~`; the user's own and the shared resources are all there is. */
  #at(uri: string): string {
    const full = uri.replace(/^viking:\/\/~(?=\/|$)/, this.#home).replace(/\/$/, '')
    const known =
      full === this.#home || full.startsWith(`${this.#home}/`) || /^viking:\/\/resources(\/|$)/.test(full)
    if (!known || full.split('/').includes('..')) throw new Refused('INVALID_URI', `Invalid URI: ${uri}`)
    return full
  }

  #read(given: string): string {
    const uri = this.#at(given)
    const file = this.#files.get(uri)
    if (file) return file.text
    if (this.#isFolder(uri)) throw new Refused('INVALID_ARGUMENT', `${uri} is a directory`)
    throw new Refused('NOT_FOUND', `File not found: ${uri}`)
  }

  #isFolder(uri: string): boolean {
    return this.#folders.has(uri) || [...this.#files.keys()].some(file => file.startsWith(`${uri}/`))
  }

  #write(operations: readonly { uri: string; content: string; mode?: string }[]): unknown {
    const targets = operations.map(({ uri, content, mode = 'replace' }) => {
      const file = this.#at(uri)
      const there = this.#files.has(file)
      if (typeof content !== 'string') throw new Refused('INVALID_ARGUMENT', 'content is required')
      if (mode === 'create' && there) throw new Refused('ALREADY_EXISTS', `File already exists: ${file}`)
      if (mode === 'replace' && !there) throw new Refused('NOT_FOUND', `File not found: ${file}`)
      if (!/\.(md|txt|json|ya?ml|toml|py|js|ts)$/.test(file))
        throw new Refused('INVALID_ARGUMENT', 'extension')
      return [file, content] as const
    })
    for (const [file, text] of targets) this.#put(file, text)
    return { uri: targets[0]?.[0], context_type: 'memory', content_updated: true, vector_status: 'complete' }
  }

  #put(file: string, text: string): void {
    this.#files.set(file, { text, modified: new Date().toISOString() })
  }

  #batch({ root_uri, operations }: Body): unknown {
    const root = this.#at(root_uri)
    if (!this.#isFolder(root)) throw new Refused('NOT_FOUND', `Directory not found: ${root}`)
    if (operations.length > 256) throw new Refused('INVALID_ARGUMENT', 'at most 256 operations')
    const uris = operations.map(operation => this.#at(operation.uri))
    if (new Set(uris).size < uris.length) throw new Refused('INVALID_ARGUMENT', 'duplicate targets')
    if (uris.some(uri => !uri.startsWith(`${root}/`)))
      throw new Refused('INVALID_ARGUMENT', 'outside of root')
    this.#write(operations)
    return { root_uri: root, created: uris, updated: [], unchanged: [] }
  }

  #tree(given: string): unknown {
    const uri = this.#at(given)
    if (!this.#isFolder(uri)) throw new Refused('NOT_FOUND', `Directory not found: ${uri}`)
    return [...this.#files]
      .filter(([file]) => file.startsWith(`${uri}/`))
      .map(([file, { text, modified }]) => ({
        name: file.slice(file.lastIndexOf('/') + 1),
        size: Buffer.byteLength(text),
        isDir: false,
        modTime: modified,
        rel_path: file.slice(uri.length + 1),
        uri: file,
      }))
  }

  #stat(given: string): unknown {
    const uri = this.#at(given)
    const name = uri.slice(uri.lastIndexOf('/') + 1)
    const file = this.#files.get(uri)
    if (file) return { name, size: Buffer.byteLength(file.text), isDir: false, modTime: file.modified, uri }
    if (this.#isFolder(uri)) return { name, size: 4096, isDir: true, modTime: new Date(0).toISOString(), uri }
    throw new Refused('NOT_FOUND', `Not found: ${uri}`)
  }

  #mkdir(given: string): unknown {
    const uri = this.#at(given)
    if (this.#isFolder(uri)) throw new Refused('ALREADY_EXISTS', `Directory exists: ${uri}`)
    this.#folders.add(uri)
    return { uri }
  }

  #remove(given: string, recursive: boolean): unknown {
    const uri = this.#at(given)
    this.#files.delete(uri)
    if (recursive)
      for (const file of this.#files.keys()) if (file.startsWith(`${uri}/`)) this.#files.delete(file)
    return { uri }
  }

  #glob({ pattern, uri }: Body): unknown {
    const below = this.#at(uri)
    const name = pattern.replace(/^\*\*\//, '')
    const matches = [...this.#files.keys()].filter(
      file => file.startsWith(`${below}/`) && file.endsWith(`/${name}`),
    )
    return { matches, count: matches.length }
  }

  #find({ query, target_uri, limit = 10, score_threshold = 0 }: Body): unknown {
    const targets = [target_uri].flat().map(uri => this.#at(uri))
    const files = [...this.#files].filter(([file]) => targets.some(target => file.startsWith(`${target}/`)))
    const scores = rank(
      query,
      files.map(([, { text }]) => text.replace(/\n<!-- openrath [^\n]*-->\n$/, '')),
    )
    const matched = files
      .map(([uri, { text }], i) => ({
        context_type: uri.includes('/memories/') ? 'memory' : 'resource',
        uri,
        level: 2,
        score: scores[i] as number,
        category: '',
        match_reason: '',
        abstract: text.slice(0, 100),
        overview: null,
      }))
      .filter(({ score }) => score > 0 && score >= score_threshold)
      .sort((a, b) => b.score - a.score)
      .slice(0, limit)
    return {
      memories: matched.filter(match => match.context_type === 'memory'),
      resources: matched.filter(match => match.context_type === 'resource'),
      skills: [],
      total: matched.length,
    }
  }

  #createSession(id: string): unknown {
    if (this.#sessions.has(id)) throw new Refused('ALREADY_EXISTS', `Session already exists: ${id}`)
    this.#sessions.set(id, { live: [], archives: 0 })
    return { session_id: id, auto_commit_policy: null }
  }

  #session(id: string): VikingSession {
    const session = this.#sessions.get(id)
    if (!session) throw new Refused('NOT_FOUND', `Session not found: ${id}`)
    return session
  }

  #addMessages(id: string, { messages }: Body): unknown {
    if (messages.length > 100) throw new Refused('INVALID_ARGUMENT', 'at most 100 messages')
    const session = this.#session(id)
    session.live.push(...messages)
    return { session_id: id, message_count: session.live.length, added: messages.length }
  }

  #commit(id: string): unknown {
    const session = this.#session(id)
    const messages = session.live
    if (messages.length === 0) {
      return { session_id: id, status: 'skipped', task_id: null, archive_uri: null, archived: false }
    }
    session.live = []
    const archive = `${this.#home}/sessions/${id}/history/archive_${String(++session.archives).padStart(3, '0')}`
    const task = `task-${++this.#count}`
    const broken = { task_id: task, status: 'failed', error: 'VLM_FAILED: no model is configured' }
    this.#tasks.set(task, {
      polls: 0,
      state: this.broken ? broken : this.#extract(task, id, archive, messages),
    })
    return { session_id: id, status: 'accepted', task_id: task, archive_uri: archive, archived: true }
  }

  /** Draws a memory of every message. */
  #extract(task: string, id: string, archive: string, messages: readonly { content: string }[]): unknown {
    const adds = messages.map(({ content }) => {
      const uri = `${this.#home}/memories/events/event_${++this.#count}.md`
      this.#put(uri, `Noted: ${content}`)
      return { uri, memory_type: 'events', after: content }
    })
    const diff = `${archive}/memory_diff.json`
    this.#put(diff, JSON.stringify({ archive_uri: archive, operations: { adds, updates: [], deletes: [] } }))
    return {
      task_id: task,
      task_type: 'session_commit',
      status: 'completed',
      result: {
        session_id: id,
        archive_uri: archive,
        memory_diff_uri: diff,
        memories_extracted: { events: adds.length },
      },
    }
  }

  /** Answers `running` the first time. */
  #task(id: string): unknown {
    const task = this.#tasks.get(id)
    if (!task) throw new Refused('NOT_FOUND', `Task not found: ${id}`)
    return task.polls++ === 0 ? { task_id: id, status: 'running', stage: null } : task.state
  }

  #upload(text: string): unknown {
    const id = `upload-${++this.#count}`
    this.#uploads.set(id, text)
    return { temp_file_id: id }
  }

  /** Divides a document at its headings. */
  #addResource({ temp_file_id, to }: Body): unknown {
    const upload = this.#uploads.get(temp_file_id)
    if (upload === undefined) throw new Refused('NOT_FOUND', `Temporary file not found: ${temp_file_id}`)
    const root = this.#at(to)
    this.#remove(root, true)
    const sections = upload.split(/^(?=#)/m).filter(section => section.trim() !== '')
    for (const [i, section] of sections.entries()) this.#put(`${root}/section_${i}.md`, section)
    this.#put(`${root}/.abstract.md`, upload.slice(0, 100))
    return { root_uri: root, status: 'success' }
  }
}
