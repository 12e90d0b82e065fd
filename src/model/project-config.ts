import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Digest, sha256 } from '../base/digest.ts'
import { RathError, show } from '../base/errors.ts'
import { isPlainObject } from '../base/json.ts'
import { readObject, readText } from './json-file.ts'
import type { Surroundings } from './surroundings.ts'

/** What was answered when somebody was asked whether the config of a folder may be used. */
export type ConfigAnswer = 'agreed' | 'refused'

export interface ConfigTexts {
  readonly config: string | undefined
  readonly credentials: string | undefined
}

/**
 * The config that lies in the current folder, which whoever made the folder may have written: it decides nothing until the user has agreed to
 * it. An answer is for this folder and these contents, so that a changed config asks again.
 */
export interface ProjectConfig {
  readonly folder: string
  readonly path: string
  readonly texts: ConfigTexts
  readonly digest: Digest
  readonly answer?: ConfigAnswer
}

/** The user's own folder: `OPENRATH_HOME`, or `.openrath` at home. Nothing that comes with a project lies there. */
export function ownFolder({ env, home, files }: Surroundings): string {
  const named = env.OPENRATH_HOME
  if (!named) return join(home, '.openrath')
  const folder = named.replace(/^~(?=\/|$)/, home)
  if (files.stat(folder)?.isDirectory === false) {
    throw new RathError(
      'config-malformed',
      `OPENRATH_HOME is ${show(named)}, which is a file. Set it to a folder, or unset it to use ${join(home, '.openrath')}.`,
    )
  }
  return folder
}

/** Undefined where `OPENRATH_HOME` names another config, the current folder is home, or it has no config. */
export function projectConfig(surroundings: Surroundings): ProjectConfig | undefined {
  const { env, cwd, files } = surroundings
  const folder = join(cwd, '.openrath')
  const own = ownFolder(surroundings)
  if (env.OPENRATH_HOME || (files.real?.(folder) ?? folder) === (files.real?.(own) ?? own)) return undefined
  const texts = textsIn(folder, surroundings)
  if (texts.config === undefined) return undefined
  const digest = sha256(JSON.stringify([texts.config, texts.credentials ?? null]))
  const kept = answersIn(surroundings)[folder]
  const answer = isPlainObject(kept) && kept.digest === digest ? kept.answer : undefined
  return {
    folder,
    path: join(folder, 'config.json'),
    texts,
    digest,
    ...((answer === 'agreed' || answer === 'refused') && { answer }),
  }
}

/** Each file is read once: what is agreed to is what is used. */
export function textsIn(folder: string, { files }: Surroundings): ConfigTexts {
  return {
    config: readText(join(folder, 'config.json'), files),
    credentials: readText(join(folder, 'credentials.json'), files),
  }
}

/** Keeps an answer in the user's own folder; without one, forgets what was answered before. */
export function keepAnswer(
  { folder, digest }: ProjectConfig,
  answer: ConfigAnswer | undefined,
  surroundings: Surroundings,
): void {
  const { [folder]: _, ...others } = answersIn(surroundings)
  const folders = answer === undefined ? others : { ...others, [folder]: { answer, digest } }
  const path = answersPath(surroundings)
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const written = `${path}.${process.pid}`
  writeFileSync(written, `${JSON.stringify({ version: 1, folders }, null, 2)}\n`, { mode: 0o600 })
  renameSync(written, path)
}

function answersIn(surroundings: Surroundings): Readonly<Record<string, unknown>> {
  const folders = readObject(answersPath(surroundings), surroundings)?.folders
  return isPlainObject(folders) ? folders : {}
}

function answersPath(surroundings: Surroundings): string {
  return join(ownFolder(surroundings), 'trusted-configs.json')
}
