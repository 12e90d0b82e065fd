import type { Sandbox } from '@alibaba-group/opensandbox'
import { newId } from '../../../base/ids.ts'
import type { ShellOptions, ShellResult } from '../../shell/shell.ts'
import type { ExecOutput } from '../../spec.ts'
import { startStream } from './stream.ts'

/** Output up to this many bytes comes with the answer; more is fetched as a file. */
const inline = 64 * 1024

/** Only text arrives as it was, so output is kept in a file and comes as base64, or is left there to be fetched. */
const carrier = `
_in=$1
_out=$2
_script=$3
shift 3
if [ -n "$_in" ]; then exec < "$_in"; rm -f "$_in"; else exec < /dev/null; fi
(umask 077; : > "$_out") || exit 1
/bin/sh -c "$_script" sh "$@" > "$_out"
_code=$?
if [ "$(stat -c %s "$_out")" -gt ${inline} ]; then echo @; else base64 < "$_out"; rm -f "$_out"; fi
exit "$_code"`

/** Runs a script with bytes in and bytes out, which commands of the server have not. */
export async function runScript(
  sandbox: Sandbox,
  script: string,
  args: readonly string[],
  { input }: ShellOptions = {},
): Promise<ShellResult> {
  const name = `/tmp/.openrath-${newId()}`
  const [inFile, outFile] = [input === undefined ? '' : `${name}.in`, `${name}.out`]
  if (input !== undefined) await upload(sandbox, inFile, input)
  const kept = { stdout: '', stderr: '' }
  const decoder = new TextDecoder()
  const keep = ({ stream, data }: ExecOutput) => {
    kept[stream] += decoder.decode(data)
    return true
  }
  const argv = ['/bin/sh', '-c', carrier, 'sh', inFile, outFile, script, ...args]
  const exitCode = await (await startStream(sandbox, { argv }, keep)).ended
  const isFile = kept.stdout.trim() === '@'
  const output = isFile ? await fetchFile(sandbox, outFile) : Buffer.from(kept.stdout, 'base64')
  return { exitCode: exitCode ?? -1, output: new Uint8Array(output), errors: kept.stderr }
}

/** For the eyes of the sandbox's user. A mode is octal digits read as a decimal number. */
export async function upload({ files }: Sandbox, path: string, data: Uint8Array): Promise<void> {
  await files.writeFiles([{ path, data, mode: 600 }])
}

async function fetchFile({ files }: Sandbox, path: string): Promise<Uint8Array> {
  const bytes = await files.readBytes(path)
  await files.deleteFiles([path])
  return bytes
}
