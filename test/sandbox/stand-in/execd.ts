import { randomUUID } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'
import type { Readable } from 'node:stream'
import {
  answer,
  bodyOf,
  type Call,
  type FilesInfo,
  type RunRequest,
  refuse,
  type StreamEvent,
} from './answer.ts'
import { type Box, killGroup } from './box.ts'

/** How long execd holds a stream open behind the last event, for what may still come. */
const usualTail = 1000

/** The part of the server that lives in each sandbox: commands and files. */
export async function handleExecd(call: Call, box: Box): Promise<void> {
  switch (`${call.method} ${call.path}`) {
    case 'GET /ping':
      return answer(call, 200)
    case 'POST /command':
      return runCommand(call, box)
    case 'DELETE /command': {
      const command = box.running.get(call.query.get('id') ?? '')
      if (command === undefined) return refuse(call, 404, 'NOT_FOUND')
      killGroup(command.pid, 'SIGTERM')
      return answer(call, 200)
    }
    case 'POST /files/upload':
      return upload(call, box)
    case 'GET /files/download': {
      const path = box.hostPath(call.query.get('path') ?? '')
      if (path === undefined || !existsSync(path)) return refuse(call, 404, 'FILE_NOT_FOUND')
      call.response.writeHead(200, { 'content-type': 'application/octet-stream' })
      return void call.response.end(readFileSync(path))
    }
    case 'GET /files/info':
      return info(call, box)
    case 'DELETE /files':
      for (const path of call.query.getAll('path')) rmSync(box.hostPath(path) ?? '/nowhere', { force: true })
      return answer(call, 200)
    default:
      return refuse(call, 404, 'NOT_FOUND')
  }
}

/**
 * A stream of bare JSON objects with blank lines between, whatever its content type says: `init` with the id, lines of output without their
 * line feeds, an empty one as a line feed, and the end. A client that goes away does not stop the command.
 */
async function runCommand({ request, response }: Call, box: Box): Promise<void> {
  const { command, cwd = '/', envs = {}, timeout } = JSON.parse(String(await bodyOf(request))) as RunRequest
  const id = randomUUID()
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const send = (event: StreamEvent) =>
    response.destroyed || response.write(`${JSON.stringify({ ...event, timestamp: Date.now() })}\n\n`)
  send({ type: 'init', text: id })
  const start = performance.now()
  const child = box.start(command, cwd, envs as Record<string, string>)
  box.running.set(id, child)
  const timer = timeout ? setTimeout(() => killGroup(child.pid, 'SIGKILL'), timeout) : undefined
  const lines = [
    readLines(child.stdout as Readable, text => send({ type: 'stdout', text })),
    readLines(child.stderr as Readable, text => send({ type: 'stderr', text })),
  ]
  response.on('drain', () => {
    for (const stream of [child.stdout, child.stderr]) stream?.resume()
  })
  const [code, signal] = await new Promise<[number | null, string | null]>(resolve =>
    child.once('exit', (...end) => resolve(end)),
  )
  clearTimeout(timer)
  box.running.delete(id)
  // A process that still holds the pipes may write for as long as the tail lasts.
  const tail = Number(/^(\d+)ms$/.exec(box.env.EXECD_API_GRACE_SHUTDOWN ?? '')?.[1] ?? usualTail)
  const { promise: over, resolve: end } = Promise.withResolvers<void>()
  const holding = setTimeout(end, tail)
  response.once('close', end)
  box.gone.signal.addEventListener('abort', () => end())
  if (box.gone.signal.aborted) end()
  await Promise.race([Promise.all(lines), over])
  if (code === 0) send({ type: 'execution_complete', execution_time: performance.now() - start })
  else {
    const name = { SIGTERM: 'terminated', SIGKILL: 'killed' }[signal ?? ''] ?? signal
    const why = signal === null ? `exit status ${code}` : `signal: ${name}`
    const evalue = String(signal === null ? code : -1)
    send({ type: 'error', error: { ename: 'CommandExecError', evalue, traceback: [why] } })
  }
  await over
  clearTimeout(holding)
  response.end()
}

/** Bytes that are no UTF-8 become U+FFFD. False from `line` makes the stream wait. */
async function readLines(stream: Readable, line: (text: string) => boolean): Promise<void> {
  let rest: string[] = []
  stream.setEncoding('utf8')
  stream.on('data', (data: string) => {
    const [first = '', ...others] = data.split('\n')
    rest.push(first)
    let goOn = true
    for (const other of others) {
      const text = rest.join('')
      goOn = line(text === '' ? '\n' : text) && goOn
      rest = [other]
    }
    if (!goOn) stream.pause()
  })
  await new Promise<void>(resolve => stream.once('close', () => resolve()))
  const text = rest.join('')
  if (text !== '') line(text)
}

async function upload(call: Call, box: Box): Promise<void> {
  const headers = { 'content-type': call.request.headers['content-type'] ?? '' }
  const form = await new Response(new Uint8Array(await bodyOf(call.request)), { headers }).formData()
  const metadata = JSON.parse(await (form.get('metadata') as File).text()) as { path: string; mode?: number }
  const path = box.hostPath(metadata.path)
  if (path === undefined) return refuse(call, 400, 'INVALID_REQUEST')
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, new Uint8Array(await (form.get('file') as File).arrayBuffer()))
  // The digits of the number are read as octal ones: 644 is 0o644, and 0o644, which is 420, is 0o420.
  chmodSync(path, Number.parseInt(String(metadata.mode ?? 755), 8))
  answer(call, 200)
}

async function info(call: Call, box: Box): Promise<void> {
  const found: FilesInfo = {}
  for (const path of call.query.getAll('path')) {
    const real = box.hostPath(path)
    if (real === undefined || !lstatSync(real, { throwIfNoEntry: false })) {
      return refuse(call, 404, 'FILE_NOT_FOUND')
    }
    const { size, mode, mtime, birthtime } = statSync(real)
    const times = { modified_at: mtime.toISOString(), created_at: birthtime.toISOString() }
    const digits = Number((mode & 0o777).toString(8))
    found[path] = { path, size, mode: digits, owner: 'root', group: 'root', ...times }
  }
  answer<FilesInfo>(call, 200, found)
}
