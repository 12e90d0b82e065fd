import { show } from '../../../base/errors.ts'
import { isPlainObject, type Problem, refuse } from '../../../base/json.ts'
import type { SandboxSpec } from '../../spec.ts'

/** What `session.to('opensandbox', spec)` may say. A text is the `image`. */
export interface OpenSandboxSpec {
  /** What the server makes the sandbox of. It has `/bin/sh` and the usual tools, those of busybox at least. */
  readonly image?: string
  /** A name that `snapshot()` gave: the sandbox starts with its files. In place of `image`. */
  readonly snapshot?: string
  /** Set for every command. The session records it: give secrets by name, with `passEnv`. */
  readonly env?: Readonly<Record<string, string>>
  /** Names whose values commands get from this process: `['GITHUB_TOKEN']`. */
  readonly passEnv?: readonly string[]
  /** The hosts that commands may reach, by the server's egress policy; without it, what the server allows. */
  readonly hosts?: readonly string[]
  readonly limits?: {
    /** Bytes; 2 GiB by default. */
    readonly memory?: number
    /** 1 by default; may be a fraction. */
    readonly cpus?: number
  }
  /** Seconds that the sandbox outlives this process when nobody closes it; 1800 by default. */
  readonly expires?: number
}

const fields = ['image', 'snapshot', 'env', 'passEnv', 'hosts', 'limits', 'expires']

export function parseOpenSandboxSpec(
  spec: SandboxSpec | undefined,
  usualImage: string | undefined,
): OpenSandboxSpec {
  const given: unknown = typeof spec === 'string' ? { image: spec } : (spec ?? {})
  const problems: Problem[] = []
  const need = (fine: boolean, path: string, message: string) => {
    if (!fine) problems.push({ path, message })
  }
  need(isPlainObject(given), 'spec', `must be an image or an object, not ${show(spec)}`)
  const { image = usualImage, snapshot, expires = 1800, ...rest } = isPlainObject(given) ? given : {}
  const { env = {}, passEnv = [], hosts = [], limits = {}, ...unknown } = rest
  for (const name of Object.keys(unknown)) {
    problems.push({ path: name, message: `is not known; there are ${fields.join(', ')}` })
  }
  const isName = (value: unknown) => isText(value) && value !== ''
  if (snapshot === undefined) need(isName(image), 'image', `must be a text, not ${show(image)}`)
  else need(isName(snapshot), 'snapshot', `must be a text, not ${show(snapshot)}`)
  const isEnvironment = isPlainObject(env) && Object.values(env).every(isText)
  need(isEnvironment, 'env', `must be names with texts, not ${show(env)}`)
  for (const [name, value] of Object.entries({ passEnv, hosts })) {
    need(Array.isArray(value) && value.every(isText), name, `must be a list of texts, not ${show(value)}`)
  }
  // The server lets nothing live for less than a minute.
  need(Number.isInteger(expires) && Number(expires) >= 60, 'expires', `must be seconds, 60 or more`)
  need(isPlainObject(limits), 'limits', `must be an object, not ${show(limits)}`)
  for (const [name, value] of Object.entries(isPlainObject(limits) ? limits : {})) {
    const isKnown = name === 'memory' || name === 'cpus'
    need(
      isKnown && Number(value) > 0 && Number.isFinite(value),
      `limits.${name}`,
      `must be memory or cpus with a number above 0, not ${show(value)}`,
    )
  }
  refuse('invalid-argument', 'The place cannot be opened: the spec of opensandbox is wrong', problems)
  return { ...(image !== undefined && { image }), ...(given as object) } as OpenSandboxSpec
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}
