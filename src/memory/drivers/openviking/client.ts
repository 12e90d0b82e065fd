import { cancelledError, onAbort } from '../../../base/abort.ts'
import { RathError, show } from '../../../base/errors.ts'
import { isPlainObject, type JsonObject } from '../../../base/json.ts'
import { misshapen, type Refusal, toMemoryError, unreachable } from './errors.ts'

export interface ClientOptions {
  readonly url: string
  readonly key?: string
  readonly account?: string
  readonly user?: string
  readonly fetch?: typeof fetch
  /** Waits between tries; the real one by default. */
  readonly sleep?: (ms: number, signal?: AbortSignal) => Promise<void>
  readonly random?: () => number
}

export interface Call {
  readonly query?: Readonly<Record<string, string | number | boolean>>
  readonly body?: JsonObject
  readonly form?: FormData
  readonly signal?: AbortSignal | undefined
  /** Doing it twice is like doing it once, so that it may be sent again when nobody knows whether it arrived. GET and DELETE are. */
  readonly idempotent?: boolean
  /** The server does something before it answers, perhaps with a model. What is POSTed and not idempotent does. */
  readonly works?: boolean
  /** Whether a result has the shape that the caller reads. */
  readonly shape?: (result: unknown) => boolean
}

const attempts = 5
const firstWaitMs = 250
const longestWaitMs = 30_000
/** A server that asks for more is not waited for. */
const mostPatienceMs = 60_000
/** An agent waits for what is looked up before it answers. */
const lookUpMs = 30_000
/** Semantic processing on the server, which a write waits for, may call a model. */
const workMs = 300_000

/** Requests to an OpenViking server: who asks, the envelope of its answers, another try when it is busy. */
export class VikingClient {
  readonly #url: string
  readonly #headers: Readonly<Record<string, string>>
  readonly #fetch: typeof fetch
  readonly #sleep: (ms: number, signal?: AbortSignal) => Promise<void>
  readonly #random: () => number

  constructor(options: ClientOptions) {
    this.#url = checkUrl(options.url)
    this.#headers = {
      ...(options.key !== undefined && { 'X-API-Key': options.key }),
      ...(options.account !== undefined && { 'X-OpenViking-Account': options.account }),
      ...(options.user !== undefined && { 'X-OpenViking-User': options.user }),
    }
    this.#fetch = options.fetch ?? fetch
    this.#sleep = options.sleep ?? sleep
    this.#random = options.random ?? Math.random
  }

  /** What the server answers; its refusal is an error whose `data.code` is the server's own. */
  async call<T>(method: 'GET' | 'POST' | 'DELETE', path: string, call: Call = {}): Promise<T> {
    const { signal, idempotent = method !== 'POST', works = !idempotent, shape } = call
    for (let attempt = 1; ; attempt++) {
      const refusal = await this.#once<T>(method, path, call, works ? workMs : lookUpMs)
      if ('result' in refusal) {
        if (shape === undefined || shape(refusal.result)) return refusal.result
        throw misshapen(refusal.result, `${method} ${path}`, this.#url)
      }
      const error = toMemoryError(refusal, `${method} ${path}`, this.#url)
      const again =
        refusal.status === 429 || refusal.status === 503 || (refusal.lost && !refusal.late && idempotent)
      const wait =
        refusal.retryAfterMs ?? this.#random() * Math.min(longestWaitMs, firstWaitMs * 2 ** attempt)
      if (!again || attempt >= attempts || wait > mostPatienceMs) throw error
      await this.#sleep(wait, signal)
    }
  }

  /** Waits as the client does between its tries. */
  pause(ms: number, signal?: AbortSignal): Promise<void> {
    return this.#sleep(ms, signal)
  }

  async #once<T>(
    method: string,
    path: string,
    call: Call,
    timeoutMs: number,
  ): Promise<{ result: T } | Refusal> {
    const { query = {}, body, form, signal } = call
    if (signal?.aborted) throw cancelledError(signal)
    const url = new URL(this.#url + path)
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, String(value))
    const timeout = AbortSignal.timeout(timeoutMs)
    try {
      const response = await this.#fetch(url, {
        method,
        // A redirect would carry the key to wherever it leads.
        redirect: 'error',
        headers: { ...this.#headers, ...(body && { 'Content-Type': 'application/json' }) },
        signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
        ...(body && { body: JSON.stringify(body) }),
        ...(form && { body: form }),
      })
      return await answerOf<T>(response)
    } catch (error) {
      if (signal?.aborted) throw cancelledError(signal)
      if (error instanceof RathError) throw error
      return unreachable(error, timeout.aborted)
    }
  }
}

async function answerOf<T>(response: Response): Promise<{ result: T } | Refusal> {
  const text = await response.text()
  const envelope = parsed(text)
  if (response.ok && envelope && envelope.status !== 'error' && !envelope.error) {
    return { result: envelope.result as T }
  }
  const error = isPlainObject(envelope?.error) ? envelope.error : {}
  const wait = retryAfter(response.headers.get('retry-after'))
  return {
    status: response.status,
    code: typeof error.code === 'string' ? error.code : undefined,
    message: typeof error.message === 'string' ? error.message : text.slice(0, 200),
    ...(wait !== undefined && { retryAfterMs: wait }),
    lost: false,
  }
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isPlainObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** Seconds, or a date. */
function retryAfter(header: string | null): number | undefined {
  if (header === null) return undefined
  const ms = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - Date.now()
  return Number.isNaN(ms) ? undefined : Math.max(0, ms)
}

function checkUrl(url: string): string {
  const address = URL.canParse(url) ? new URL(url) : undefined
  if (!address || !/^https?:$/.test(address.protocol) || address.username || address.password) {
    throw new RathError(
      'invalid-argument',
      `${show(url)} is not the address of an OpenViking server: give one such as http://localhost:1933, and its key in OPEN_VIKING_API_KEY.`,
    )
  }
  return url.replace(/\/+$/, '')
}

function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      link?.[Symbol.dispose]()
      resolve()
    }, ms)
    const stop = () => {
      clearTimeout(timer)
      reject(cancelledError(signal as AbortSignal))
    }
    const link = signal && onAbort(signal, stop)
  })
}
