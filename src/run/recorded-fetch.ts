import { fromBase64, toBase64 } from '../base/base64.ts'
import { sha256 } from '../base/digest.ts'
import type { Json, JsonObject } from '../base/json.ts'
import type { Effect } from '../tool/spec.ts'

type Through = (request: Json, work: () => Promise<Recorded>, rule: Effect) => Promise<Recorded>

interface Recorded {
  readonly status: number
  readonly statusText: string
  readonly headers: JsonObject
  /** Base64: a body may be anything. Null where there is none. */
  readonly body: string | null
}

/**
 * A fetch whose response is recorded. The key covers method, address and body; headers may hold what changes from day to day, and keys.
 */
export async function recordedFetch(
  url: string | URL,
  init: RequestInit,
  through: Through,
): Promise<Response> {
  const request = new Request(url, init)
  const body = request.body === null ? null : new Uint8Array(await request.arrayBuffer())
  const isRead = request.method === 'GET' || request.method === 'HEAD'
  const {
    status,
    statusText,
    headers,
    body: text,
  } = await through(
    { method: request.method, url: request.url, ...(body && { body: sha256(body) }) },
    async () => recorded(await fetch(request.url, { ...init, ...(body && { body }) })),
    isRead ? 'read' : 'external',
  )
  const bytes = text === null ? null : fromBase64(text)
  return new Response(bytes as Uint8Array<ArrayBuffer> | null, {
    status,
    statusText,
    headers: headers as Record<string, string>,
  })
}

/** Statuses whose responses must not have a body. */
const bodiless = new Set([101, 103, 204, 205, 304])

async function recorded(response: Response): Promise<Recorded> {
  const { status, statusText } = response
  const bytes = new Uint8Array(await response.arrayBuffer())
  const headers = Object.fromEntries(response.headers)
  // The body is recorded as it came out, whatever it was packed in.
  delete headers['content-encoding']
  delete headers['content-length']
  return { status, statusText, headers, body: bodiless.has(status) ? null : toBase64(bytes) }
}
