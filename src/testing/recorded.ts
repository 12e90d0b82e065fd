import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { cancelledError } from '../base/abort.ts'
import { digestOf } from '../base/digest.ts'
import { RathError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { toJson } from '../base/json.ts'
import type { Model, ModelAnswer, ModelContext, ModelDelta, ModelRequest } from '../model/spec.ts'
import { tell } from './deltas.ts'

export interface RecordedOptions {
  /** Asked for what is not recorded yet, and its answers are kept. Without it, a request that is not recorded fails. */
  readonly record?: Model
  /** The id that chunks record; that of `record`, or `recorded/model`, by default. */
  readonly id?: string
}

/** What one file holds: a request, and the answers it got, in the order asked. */
interface Recording {
  readonly model: string
  readonly request: ModelRequest
  /** Of those being asked now, some are not there yet, and some never come. */
  readonly exchanges: (Exchange | undefined)[]
}

interface Exchange {
  readonly answer: ModelAnswer
  readonly deltas: readonly ModelDelta[]
}

/**
 * A model that plays back what another one answered, from one JSON file a request in `folder`. A request is known by its digest,
 * so one that differs in anything is another one. The same request asked again gets the next answer recorded for it.
 */
export function recorded(folder: string, options: RecordedOptions = {}): Model {
  return new Recorded(folder, options)
}

class Recorded implements Model {
  readonly id: string
  readonly #folder: string
  readonly #source: Model | undefined
  /** How often each request was asked; and its file, read once. */
  readonly #asked = new Map<string, number>()
  readonly #files = new Map<string, Promise<Recording | undefined>>()
  /** One write at a time: each writes what is known by then. */
  #writing: Promise<void> = Promise.resolve()

  constructor(folder: string, { record, id = record?.id ?? 'recorded/model' }: RecordedOptions) {
    this.#folder = folder
    this.#source = record
    this.id = id
  }

  /** What is only played back costs nothing now. */
  get priced(): boolean | undefined {
    return this.#source ? this.#source.priced : true
  }

  async answer(request: ModelRequest, context: ModelContext): Promise<ModelAnswer> {
    const plain = toJson(request, 'a model request') as unknown as ModelRequest
    const digest = digestOf(plain)
    const n = this.#asked.get(digest) ?? 0
    this.#asked.set(digest, n + 1)
    let file = this.#files.get(digest)
    if (file === undefined) {
      file = this.#read(digest)
      this.#files.set(digest, file)
    }
    const recording = await file
    if (context.signal.aborted) throw cancelledError(context.signal)
    const exchange = recording?.exchanges[n]
    if (exchange) {
      if (context.onDelta && exchange.deltas.length > 0) exchange.deltas.forEach(context.onDelta)
      else if (context.onDelta) tell(exchange.answer.content, context.onDelta)
      return exchange.answer
    }
    if (!this.#source) throw this.#missing(digest, n, recording?.exchanges.length ?? 0)
    const deltas: ModelDelta[] = []
    const onDelta = (delta: ModelDelta) => {
      deltas.push(delta)
      context.onDelta?.(delta)
    }
    const answer = await this.#source.answer(request, { signal: context.signal, onDelta })
    await this.#keep(digest, plain, n, { answer, deltas })
    return answer
  }

  async #read(digest: string): Promise<Recording | undefined> {
    const path = this.#path(digest)
    try {
      return JSON.parse(await readFile(path, 'utf8')) as Recording
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
      throw new RathError('recording-missing', `${path} cannot be read. Remove it, and record it again.`, {
        cause: error,
      })
    }
  }

  #keep(digest: string, request: ModelRequest, n: number, exchange: Exchange): Promise<void> {
    const kept = this.#writing.then(async () => {
      const before = await this.#files.get(digest)
      const exchanges = [...(before?.exchanges ?? [])]
      exchanges[n] = exchange
      const recording: Recording = { model: this.id, request, exchanges }
      this.#files.set(digest, Promise.resolve(recording))
      await mkdir(this.#folder, { recursive: true })
      const temporary = join(this.#folder, `.${newId()}.tmp`)
      const written = { ...recording, exchanges: exchanges.filter(Boolean) }
      await writeFile(temporary, `${JSON.stringify(written, null, 2)}\n`)
      await rename(temporary, this.#path(digest))
    })
    this.#writing = kept.catch(() => {})
    return kept
  }

  #path(digest: string): string {
    return join(this.#folder, `${digest.slice(0, 24)}.json`)
  }

  #missing(digest: string, n: number, count: number): RathError {
    return new RathError(
      'recording-missing',
      count === 0
        ? `No answer to this request is recorded: ${this.#path(digest)} does not exist. Record it with recorded(folder, { record: model }), or see what changed in the request.`
        : `This request was asked ${n + 1} times, and ${this.#path(digest)} holds ${count} answers. Record the others with recorded(folder, { record: model }).`,
      { data: { digest, asked: n + 1, recorded: count } },
    )
  }
}
