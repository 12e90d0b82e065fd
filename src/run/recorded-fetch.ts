import { fromBase64, toBase64 } from '../base/base64.ts'
import { sha256 } from '../base/digest.ts'
import type { Json } from '../base/json.ts'
import type { Effect } from '../tool/spec.ts'

type Through = (
  request: Json,
  work: () => Promise<Recorded>,
  rule: Effect,
) => Promise<Partial<Recorded> | null>

interface Recorded {
  readonly status: number
  readonly statusText: string
  /** Pairs: a response may set several cookies. Earlier versions wrote an object. */
  readonly headers: Json
  /** Base64: a body may be anything. Null where there is none. */
  readonly body: string | null
}

/**
 * A fetch whose response is recorded. The key covers method, address and body, without secrets; headers may hold what changes from day to day, and keys.
 */
export async function recordedFetch(
  url: string | URL,
  init: RequestInit,
  through: Through,
  clean: (body: Uint8Array) => Promise<Uint8Array>,
): Promise<Response> {
  const request = new Request(url, init)
  const body = request.body === null ? null : new Uint8Array(await request.arrayBuffer())
  const { method, headers: sent } = request
  const isRead = method === 'GET' || method === 'HEAD'
  const found = await through(
    { method, url: request.url, ...(body && { body: digestOf(await clean(body), sent) }) },
    // The type of a body is told by what it was made of, and no longer by its bytes.
    async () => recorded(await fetch(request.url, { ...init, method, headers: sent, ...(body && { body }) })),
    isRead ? 'read' : 'external',
  )
  // Whoever reviewed one that was cut off may know no more than that it happened.
  const { status = 200, statusText = '', headers = [], body: text = null } = found ?? {}
  const bytes = text === null ? null : fromBase64(text)
  return new Response(bytes as Uint8Array<ArrayBuffer> | null, {
    status,
    statusText,
    headers: headers as Record<string, string> | [string, string][],
  })
}

/** Without the line between the parts of a form, which is another one every time. */
function digestOf(body: Uint8Array, headers: Headers): string {
  const boundary = /^multipart\/.*boundary="?([^";]+)/i.exec(headers.get('content-type') ?? '')?.[1]
  return sha256(boundary ? Buffer.from(body).toString('latin1').replaceAll(boundary, '') : body)
}

/** Statuses whose responses must not have a body. */
const bodiless = new Set([101, 103, 204, 205, 304])

const ofPacking = new Set(['content-encoding', 'content-length'])

async function recorded(response: Response): Promise<Recorded> {
  const { status, statusText } = response
  const bytes = new Uint8Array(await response.arrayBuffer())
  // The body is recorded as it came out, whatever it was packed in.
  const headers = [...response.headers].filter(([name]) => !ofPacking.has(name))
  return { status, statusText, headers, body: bodiless.has(status) ? null : toBase64(bytes) }
}
