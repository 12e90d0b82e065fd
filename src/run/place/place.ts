import { basename, dirname, isAbsolute, join, posix, relative } from 'node:path'
import type { JsonObject } from '../../base/json.ts'
import { realPath } from '../../sandbox/host/real-path.ts'
import type { Sandbox } from '../../sandbox/spec.ts'
import { type Lane, rootLane } from '../../session/lane.ts'
import { Hold } from './hold.ts'
import type { PlaceFiles } from './place-files.ts'

/** An open sandbox, the files in it where they can be kept, and whoever may change them now. */
export class Place {
  readonly sandbox: Sandbox
  /** Undefined where none are kept, or the backend's cannot be. */
  readonly files: PlaceFiles | undefined
  readonly hold = new Hold()
  /** Tells the placed folder from another of its name; undefined for copies of branches, and elsewhere. */
  folder: string | undefined
  /** No call of this process has looked at its files yet. */
  isNew = true
  readonly #runs = new Set<string>()
  readonly #elsewhere: { readonly lane: Lane } | undefined
  #realRoot: string | undefined
  /** Counts the calls that may have changed a place elsewhere. */
  #serial: number

  /** Of a place that this machine cannot look into: the lane that works in it, and the calls that changed it before this process began. */
  constructor(
    sandbox: Sandbox,
    files?: PlaceFiles,
    elsewhere?: { readonly lane: Lane; readonly serial?: number },
  ) {
    this.sandbox = sandbox
    this.files = files
    this.#elsewhere = elsewhere
    this.#serial = elsewhere?.serial ?? 0
  }

  /** Whether calls of this run have worked here: what is here is theirs then. */
  isUsedIn(run: string): boolean {
    return this.#runs.has(run)
  }

  useIn(run: string): void {
    this.#runs.add(run)
  }

  get serial(): number {
    return this.#serial
  }

  /** What the record says of where a call ran, which may have changed something. */
  ranOn(changed: boolean): JsonObject {
    const { backend, id, cwd } = this.sandbox
    return {
      backend,
      id,
      cwd,
      ...(this.folder !== undefined && { folder: this.folder }),
      ...this.#serialAfter(changed),
    }
  }

  /**
   * Which branch worked in a place elsewhere, so that it is found again, and a number: where nothing else tells two states of a place apart, a fork of an
   * older one is refused by it.
   */
  #serialAfter(changed: boolean): JsonObject {
    if (this.files !== undefined && this.#elsewhere === undefined) return {}
    const { lane = rootLane } = this.#elsewhere ?? {}
    if (changed) this.#serial++
    return { serial: this.#serial, ...(lane !== rootLane && { lane }) }
  }

  /** A path of the sandbox from the workspace on, with the links on its way resolved; undefined for one that leads outside. */
  relative(path: string): string | undefined {
    const { cwd, hostPath } = this.sandbox
    const inside = isAbsolute(path) ? posix.relative(cwd, path) : posix.normalize(path)
    const real = hostPath === undefined ? inside : this.#realRelative(hostPath, inside)
    return real === '..' || real.startsWith('../') ? undefined : real
  }

  #realRelative(root: string, path: string): string {
    this.#realRoot ??= realPath(root)
    const whole = join(root, path)
    return relative(this.#realRoot, join(realFolder(dirname(whole)), basename(whole)))
  }

  async close(): Promise<void> {
    try {
      await this.sandbox.close()
    } finally {
      await this.files?.close()
    }
  }
}

/** What is not there yet is taken as written. */
function realFolder(folder: string): string {
  try {
    return realPath(folder)
  } catch (error) {
    const parent = dirname(folder)
    if (parent === folder) throw error
    return join(realFolder(parent), basename(folder))
  }
}
