import { createReadStream, statSync } from 'node:fs'
import { open, readFile } from 'node:fs/promises'
import type { Command } from 'commander'
import { printVerification } from '../../evidence/bundle/verification.ts'
import { verifyBundle } from '../../evidence/bundle/verify.ts'
import { type PageVerification, verifyPage } from '../../evidence/dossier/html/seal.ts'
import { examples, type JsonOption, type StoreOption, withJson, withStore } from '../command.ts'
import { exit, UsageError } from '../errors.ts'
import { findSession } from '../names.ts'
import type { Output } from '../output.ts'
import { whileWorking } from '../progress.ts'
import { openToRead } from '../runtime.ts'
import { count, plain } from '../text.ts'

interface Options extends StoreOption, JsonOption {
  readonly key?: readonly string[]
}

export function define(command: Command, output: Output): void {
  command
    .argument('<name>', 'a file of rath export or rath dossier, or a session or run of the store')
    .option('--key <files...>', 'public keys in PEM; one of them must have signed it')
    .action(async (name: string, options: Options) => {
      process.exitCode = isFile(name)
        ? await verifyFile(name, options, output)
        : await verifyKept(name, options, output)
    })
  withStore(withJson(command))
  examples(command, [
    ['rath verify run.jsonl', 'recompute every digest, from the file alone'],
    ['rath verify run.jsonl --key ada.pub.pem', 'and see that Ada signed it'],
    ['rath verify last', 'what the newest run made, in the store'],
    ['rath verify dossier.html', 'a page: that it is as it was written, and its heads against the store'],
  ])
}

/** A folder may be called like a session. */
function isFile(name: string): boolean {
  return statSync(name, { throwIfNoEntry: false })?.isDirectory() === false
}

async function verifyFile(file: string, options: Options, output: Output): Promise<number> {
  const { key = [], json } = options
  if (await isPage(file)) return await verifyDossier(file, options, output)
  const keys = await Promise.all(key.map(path => readFile(path, 'utf8')))
  const result = await whileWorking(output, 'verifying', () => verifyBundle(createReadStream(file), { keys }))
  if (json) output.json(result)
  else output.print(printVerification(result))
  return result.ok ? exit.done : exit.failed
}

async function isPage(file: string): Promise<boolean> {
  const handle = await open(file)
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(64), 0, 64, 0)
    return /^\s*<!doctype html/i.test(buffer.toString('latin1', 0, bytesRead))
  } catch {
    // A pipe cannot be looked into without taking from it.
    return false
  } finally {
    await handle.close()
  }
}

const largestPage = 128 * 1024 * 1024

/** A page holds words and the heads that cover them: those are looked up in the store. */
async function verifyDossier(file: string, options: Options, output: Output): Promise<number> {
  if (options.key !== undefined) {
    throw new UsageError(
      `${file} is a dossier page, which says who signed and carries no signature: verify the bundle with --key.`,
    )
  }
  if (statSync(file).size > largestPage)
    throw new UsageError(`${file} is longer than ${largestPage} bytes, and no page of rath dossier is.`)
  const page = await readFile(file, 'utf8')
  await using store = await openToRead(options).catch(() => undefined)
  const result = await whileWorking(output, 'verifying', () => verifyPage(page, store))
  if (options.json) output.json({ page: file, ...result })
  else printPage(result, output)
  return result.ok ? exit.done : exit.failed
}

function printPage({ ok, problem, heads }: PageVerification, output: Output): void {
  if (problem !== undefined) {
    output.print(`${output.paint('red', 'not verified')}: ${problem}`)
    return
  }
  const verified = heads.filter(({ found }) => found === 'verified').length
  const said = ok ? output.paint('green', 'ok') : output.paint('red', 'not verified')
  output.print(
    `${said}: the page is as it was written, and ${verified} of ${count(heads.length, 'head')} that it names ${verified === 1 ? 'is' : 'are'} in the store and verified.`,
  )
  for (const { session, head, found, reason } of heads)
    if (found !== 'verified')
      output.print(`  ${found.padEnd(8)} ${plain(session)} ${head.slice(0, 12)}: ${plain(reason ?? '')}`)
  if (heads.some(({ found }) => found === 'missing'))
    output.print(
      'What is missing cannot be verified here: name the store with --store, or get the bundle of rath export.',
    )
}

async function verifyKept(name: string, options: Options, output: Output): Promise<number> {
  if (options.key !== undefined) {
    throw new UsageError(
      `there is no file ${name}, and only files are signed: export ${name} with --sign, or leave out --key.`,
    )
  }
  await using store = await openToRead(options)
  const session = await store.sessions.get(await findSession(store, name))
  const result = session.verify()
  if (options.json) output.json({ session: session.id, head: session.head, ...result })
  else if (result.ok) {
    output.print(
      `${output.paint('green', 'ok')}: ${count(result.checked, 'chunk')} of session ${session.id}, head ${session.head}.`,
    )
  } else
    output.print(
      `${output.paint('red', 'altered')}: session ${session.id}: ${plain(result.problem?.reason ?? '')}`,
    )
  return result.ok ? exit.done : exit.failed
}
