import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ExecdPaths, LifecyclePaths } from '@alibaba-group/opensandbox/internal'

// The bodies of the two interfaces, as the client's own package has them from the server's description.
type Json<R> = R extends { content: { 'application/json': infer T } } ? T : never
export type CreateRequest = LifecyclePaths['/sandboxes']['post']['requestBody']['content']['application/json']
export type Created = Json<LifecyclePaths['/sandboxes']['post']['responses'][202]>
export type SandboxInfo = Json<LifecyclePaths['/sandboxes/{sandboxId}']['get']['responses'][200]>
export type SandboxList = Json<LifecyclePaths['/sandboxes']['get']['responses'][200]>
export type Snapshot = Json<LifecyclePaths['/snapshots/{snapshotId}']['get']['responses'][200]>
export type Endpoint = Json<
  LifecyclePaths['/sandboxes/{sandboxId}/endpoints/{port}']['get']['responses'][200]
>
export type Renewal = Json<
  LifecyclePaths['/sandboxes/{sandboxId}/renew-expiration']['post']['responses'][200]
>
export type RunRequest = ExecdPaths['/command']['post']['requestBody']['content']['application/json']
export type StreamEvent = ExecdPaths['/command']['post']['responses'][200]['content']['text/event-stream']
export type FilesInfo = Json<ExecdPaths['/files/info']['get']['responses'][200]>

export interface Call {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
}

export async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = []
  for await (const piece of request) pieces.push(piece as Buffer)
  return Buffer.concat(pieces)
}

/** Answers with a body of the type that the interface asks for. */
export function answer<T = never>({ response }: Call, status: number, body?: NoInfer<T>): void {
  const text = body === undefined ? '' : JSON.stringify(body)
  response.writeHead(status, {
    ...(text && { 'content-type': 'application/json' }),
    ...(status !== 204 && { 'content-length': Buffer.byteLength(text) }),
  })
  response.end(text)
}

export function refuse({ response }: Call, status: number, code: string): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ code, message: `${code} (${status})` }))
}
