import { generateKeyPairSync } from 'node:crypto'
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Digest } from '../base/digest.ts'
import { RathError, show } from '../base/errors.ts'
import { platformOf } from '../base/platform.ts'
import { ownFolder } from '../model/project-config.ts'
import { processSurroundings } from '../model/surroundings.ts'
import { fingerprintOf } from './signature.ts'

export interface Keys {
  readonly name: string
  readonly fingerprint: Digest
  /** PEM. */
  readonly publicKey: string
}

export interface KeyPair extends Keys {
  /** PEM. Whoever has it can sign as you. */
  readonly privateKey: string
}

/** `keys` in `OPENRATH_HOME` or `~/.openrath`: a key that came with a project is somebody else's, too. */
export function keysFolder(): string {
  return join(ownFolder(processSurroundings()), 'keys')
}

/** Makes an Ed25519 pair as `NAME.pem` and `NAME.pub.pem`, readable by nobody else. A name that is taken is refused. */
export async function makeKeys(name = 'default', folder = keysFolder()): Promise<Keys> {
  checkName(name)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const pair = generateKeyPairSync('ed25519', {
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  })
  await writeNew(privatePath(folder, name), pair.privateKey)
  await writeNew(publicPath(folder, name), pair.publicKey)
  return { name, publicKey: pair.publicKey, fingerprint: fingerprintOf(pair.publicKey) }
}

/** The pair of that name. A private key that others can read is refused: it may have been used by anybody. */
export async function readKeys(name = 'default', folder = keysFolder()): Promise<KeyPair> {
  checkName(name)
  const path = privatePath(folder, name)
  const found = await stat(path).catch(() => undefined)
  if (found === undefined) {
    const others = (await listKeys(folder)).map(keys => keys.name)
    const known =
      others.length > 0 ? `There are ${others.join(', ')}.` : 'There are none yet: makeKeys makes a pair.'
    throw new RathError('credentials-missing', `There is no key ${show(name)} in ${folder}. ${known}`)
  }
  if (platformOf().modes && (found.mode & 0o077) !== 0) {
    throw new RathError(
      'credentials-exposed',
      `${path} can be read by others (mode ${(found.mode & 0o777).toString(8)}). Make a new pair, or chmod 600 it if nobody has.`,
    )
  }
  const privateKey = await readFile(path, 'utf8')
  const publicKey = await readFile(publicPath(folder, name), 'utf8')
  return { name, privateKey, publicKey, fingerprint: fingerprintOf(publicKey) }
}

/** The public halves of the pairs there are. */
export async function listKeys(folder = keysFolder()): Promise<Keys[]> {
  const files = await readdir(folder).catch(() => [])
  const names = files.flatMap(file => /^(.+)\.pub\.pem$/.exec(file)?.[1] ?? [])
  return Promise.all(
    names.sort().map(async name => {
      const publicKey = await readFile(publicPath(folder, name), 'utf8')
      return { name, publicKey, fingerprint: fingerprintOf(publicKey) }
    }),
  )
}

async function writeNew(path: string, text: string): Promise<void> {
  try {
    await writeFile(path, text, { mode: 0o600, flag: 'wx' })
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw cause
    throw new RathError('invalid-argument', `${path} is there already. Give the new pair another name.`, {
      cause,
    })
  }
}

function checkName(name: string): void {
  if (/^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$/.test(name) && !name.endsWith('.pub')) return
  throw new RathError(
    'invalid-argument',
    `A key is named by letters, digits, ".", "_", "@" and "-", such as "release", not ${show(name)}.`,
  )
}

function privatePath(folder: string, name: string): string {
  return join(folder, `${name}.pem`)
}

function publicPath(folder: string, name: string): string {
  return join(folder, `${name}.pub.pem`)
}
