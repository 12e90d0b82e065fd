import { randomUUID } from 'node:crypto'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import {
  answer,
  bodyOf,
  type Call,
  type Created,
  type CreateRequest,
  type Endpoint,
  type Renewal,
  refuse,
  type SandboxInfo,
  type SandboxList,
  type Snapshot,
} from './answer.ts'
import { Box, copyTree, type UserNamespace } from './box.ts'

/** The part of the server that makes, copies and ends sandboxes. */
export class Lifecycle {
  readonly boxes: Map<string, Box> = new Map()
  readonly snapshots: Map<string, Snapshot> = new Map()
  readonly #base: string
  readonly #origin: () => string
  readonly #namespace: UserNamespace | undefined

  constructor(base: string, origin: () => string, namespace: UserNamespace | undefined) {
    this.#base = base
    this.#origin = origin
    this.#namespace = namespace
  }

  async handle(call: Call): Promise<void> {
    const [, kind, id = '', what, port] = call.path.split('/')
    const route = `${call.method} /${kind}${id && '/id'}${what ? `/${what}` : ''}${port ? '/port' : ''}`
    if (route === 'POST /sandboxes') return this.#create(call)
    if (route === 'GET /sandboxes') return this.#list(call)
    if (kind === 'snapshots') return this.#snapshot(call, route, id)
    const box = this.boxes.get(id)
    if (box === undefined) return refuse(call, 404, 'SANDBOX_NOT_FOUND')
    switch (route) {
      case 'GET /sandboxes/id':
        return answer<SandboxInfo>(call, 200, { ...this.#info(box), image: { uri: 'stand-in' } })
      case 'DELETE /sandboxes/id':
        this.boxes.delete(id)
        box.remove()
        return answer(call, 204)
      case 'POST /sandboxes/id/renew-expiration': {
        const { expiresAt } = JSON.parse(String(await bodyOf(call.request))) as Renewal
        box.expiresAt = expiresAt
        return answer<Renewal>(call, 200, { expiresAt })
      }
      case 'GET /sandboxes/id/endpoints/port':
        return answer<Endpoint>(call, 200, {
          endpoint: `${this.#origin()}/boxes/${id}/${port}`,
          headers: { 'X-EXECD-ACCESS-TOKEN': box.token },
        })
      case 'POST /sandboxes/id/snapshots':
        return this.#take(call, box)
      default:
        return refuse(call, 404, 'NOT_FOUND')
    }
  }

  close(): void {
    for (const box of this.boxes.values()) box.remove()
  }

  async #create(call: Call): Promise<void> {
    const {
      image,
      snapshotId,
      env = {},
      timeout,
    } = JSON.parse(String(await bodyOf(call.request))) as CreateRequest
    if ((image === undefined) === (snapshotId === undefined)) return refuse(call, 400, 'INVALID_REQUEST')
    if (snapshotId !== undefined && this.snapshots.get(snapshotId)?.status.state !== 'Ready') {
      return refuse(call, 404, 'SNAPSHOT_NOT_FOUND')
    }
    const from = snapshotId === undefined ? undefined : join(this.#base, snapshotId)
    const namespace = this.#namespace
    const box = new Box(this.#base, env as Record<string, string>, { from, namespace })
    if (timeout) box.expiresAt = new Date(Date.now() + timeout * 1000).toISOString()
    this.boxes.set(box.id, box)
    answer<Created>(call, 202, this.#info(box))
  }

  #list(call: Call): void {
    const items = [...this.boxes.values()].map(box => this.#info(box))
    const pagination = { page: 1, pageSize: 20, totalItems: items.length, totalPages: 1, hasNextPage: false }
    answer<SandboxList>(call, 200, { items, pagination })
  }

  #info({ id, createdAt, expiresAt }: Box) {
    const entrypoint = ['tail', '-f', '/dev/null']
    return { id, createdAt, entrypoint, status: { state: 'Running' }, ...(expiresAt && { expiresAt }) }
  }

  /** Accepted at once, and ready a moment later. */
  #take(call: Call, box: Box): void {
    const id = randomUUID()
    const snapshot = { id, sandboxId: box.id, createdAt: new Date().toISOString() }
    this.snapshots.set(id, { ...snapshot, status: { state: 'Creating' } })
    answer<Snapshot>(call, 202, { ...snapshot, status: { state: 'Creating' } })
    setImmediate(() => {
      mkdirSync(join(this.#base, id))
      copyTree(box.folder, join(this.#base, id))
      this.snapshots.set(id, { ...snapshot, status: { state: 'Ready' } })
    })
  }

  async #snapshot(call: Call, route: string, id: string): Promise<void> {
    const snapshot = this.snapshots.get(id)
    if (snapshot === undefined) return refuse(call, 404, 'SNAPSHOT_NOT_FOUND')
    if (route === 'GET /snapshots/id') return answer<Snapshot>(call, 200, snapshot)
    if (route !== 'DELETE /snapshots/id') return refuse(call, 404, 'NOT_FOUND')
    this.snapshots.delete(id)
    rmSync(join(this.#base, id), { recursive: true, force: true })
    answer(call, 204)
  }
}
