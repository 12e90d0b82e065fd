import { show } from '../../../base/errors.ts'
import { isPlainObject, type Problem, refuse } from '../../../base/json.ts'
import type { SandboxSpec } from '../../spec.ts'

/** What `session.to('local', spec)` may say. A text is the `path`. */
export interface LocalSpec {
  /** The folder to work in; made if it is not there. Without one it is a new folder that `close` removes. */
  readonly path?: string
  /** Set for every command. The session records it: give secrets by name, with `passEnv`. */
  readonly env?: Readonly<Record<string, string>>
  /** Names whose values commands get from this process besides the harmless ones: `['GITHUB_TOKEN']`. */
  readonly passEnv?: readonly string[]
}

const fields: readonly string[] = ['path', 'env', 'passEnv'] satisfies (keyof LocalSpec)[]

export function parseLocalSpec(spec: SandboxSpec | undefined): LocalSpec {
  if (spec === undefined) return {}
  const given: unknown = typeof spec === 'string' ? { path: spec } : spec
  const problems: Problem[] = []
  const need = (fine: boolean, path: string, message: string) => {
    if (!fine) problems.push({ path, message })
  }
  need(isPlainObject(given), 'spec', `must be a path or an object, not ${show(spec)}`)
  const { path, env = {}, passEnv = [], ...rest } = isPlainObject(given) ? given : {}
  for (const name of Object.keys(rest)) {
    problems.push({ path: name, message: `is not known; there are ${fields.join(', ')}` })
  }
  const isPath = typeof path === 'string' && path !== '' && !path.includes('\0')
  need(path === undefined || isPath, 'path', `must name a folder, not ${show(path)}`)
  const isText = (value: unknown) => typeof value === 'string'
  need(
    isPlainObject(env) && Object.values(env).every(isText),
    'env',
    `must be names with texts, not ${show(env)}`,
  )
  need(
    Array.isArray(passEnv) && passEnv.every(isText),
    'passEnv',
    `must be a list of names, not ${show(passEnv)}`,
  )
  refuse('invalid-argument', 'The place cannot be opened: the spec of local is wrong', problems)
  return given as LocalSpec
}
