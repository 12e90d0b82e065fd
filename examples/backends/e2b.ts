// A backend of your own in one file: the microVMs of E2B. Give it to createRuntime({ sandboxes: [e2bBackend()] }), and
// session.to('e2b') works there. `npm install e2b`; the key is E2B_API_KEY. Run it: node examples/backends/e2b.ts
import { CommandExitError, FileNotFoundError, Sandbox as Machine } from 'e2b'
import { RathError } from 'openrath'
import type {
  ExecHandle,
  ExecOptions,
  ExecOutput,
  ExecResult,
  Sandbox,
  SandboxBackend,
  SandboxCapabilities,
  SandboxFiles,
  SearchMatch,
} from 'openrath/sandbox'

const capabilities: SandboxCapabilities = {
  isolation: 'microvm',
  // What is false here is not promised, and testSandbox() does not ask for it.
  enforced: {
    paths: false,
    environment: true,
    processTree: false,
    fileRead: true,
    fileWrite: true,
    network: false,
    memory: true,
    processes: false,
  },
  stdin: false,
  streaming: true,
  binaryOutput: false,
}
const root = '/home/user/workspace'
const quote = (word: string) => `'${word.replaceAll("'", `'\\''`)}'`

export function e2bBackend(): SandboxBackend {
  return {
    name: 'e2b',
    capabilities,
    async open(spec) {
      const machine = await (typeof spec === 'string' ? Machine.create(spec) : Machine.create())
      await machine.files.makeDir(root)
      return sandboxOn(machine)
    },
    attach: async id => sandboxOn(await Machine.connect(id)),
  }
}

function sandboxOn(machine: Machine): Sandbox {
  const close = async () => void (await machine.kill())
  return {
    id: machine.sandboxId,
    backend: 'e2b',
    cwd: root,
    capabilities,
    files: filesOf(machine),
    exec: (command, options) => run(machine, command, options),
    expose: async port => `https://${machine.getHost(port)}`,
    snapshot: async () => (await machine.createSnapshot()).snapshotId,
    async fork(count) {
      const forks = await machine.fork({ count })
      return forks.map(fork => {
        if (fork instanceof Error) throw fork
        return sandboxOn(fork)
      })
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

function run(machine: Machine, command: string | readonly string[], options: ExecOptions = {}): ExecHandle {
  const { cwd = root, env = {}, timeout = 0, outputLimit = 1024 * 1024 } = options
  const line = typeof command === 'string' ? command : command.map(quote).join(' ')
  const kept = { stdout: '', stderr: '' }
  const queue: ExecOutput[] = []
  let wake = () => {}
  let hasEnded = false
  const add = (stream: 'stdout' | 'stderr') => (text: string) => {
    kept[stream] += text
    queue.push({ stream, data: new TextEncoder().encode(text) })
    wake()
  }
  const start = performance.now()
  const started = machine.commands.run(line, {
    background: true,
    cwd: cwd.startsWith('/') ? cwd : `${root}/${cwd}`,
    envs: { ...env },
    timeoutMs: timeout,
    onStdout: add('stdout'),
    onStderr: add('stderr'),
  })
  const kill = () => void started.then(handle => handle.kill()).catch(() => {})
  options.signal?.addEventListener('abort', kill, { once: true })

  async function end(): Promise<ExecResult> {
    const exitCode = await started
      .then(handle => handle.wait())
      .then(
        result => result.exitCode,
        error => {
          if (error instanceof CommandExitError) return error.exitCode
          throw new RathError('sandbox-failed', `E2B: ${String(error)}`, { cause: error })
        },
      )
      .finally(() => {
        hasEnded = true
        wake()
      })
    if (options.signal?.aborted) throw new RathError('cancelled', 'The command was cancelled.')
    const truncated = Math.max(kept.stdout.length, kept.stderr.length) > outputLimit
    const [stdout, stderr] = [kept.stdout, kept.stderr].map(text =>
      new TextEncoder().encode(text.slice(-outputLimit)),
    )
    const timedOut = timeout > 0 && performance.now() - start >= timeout
    return {
      exitCode,
      stdout,
      stderr,
      truncated,
      timedOut,
      durationMs: performance.now() - start,
    } as ExecResult
  }

  async function* follow(): AsyncGenerator<ExecOutput> {
    while (!hasEnded || queue.length > 0) {
      const next = queue.shift()
      if (next !== undefined) yield next
      else {
        await new Promise<void>(resolve => {
          wake = resolve
        })
      }
    }
  }
  const result = end()
  result.catch(() => {})
  return { result, kill, [Symbol.asyncIterator]: follow }
}

function filesOf({ files, commands }: Machine): SandboxFiles {
  const at = (path: string) => (path.startsWith('/') ? path : `${root}/${path}`)
  const missing = (path: string) => (error: unknown) => {
    if (!(error instanceof FileNotFoundError)) throw error
    throw new RathError('path-missing', `There is no ${path} in the workspace.`, { cause: error })
  }
  return {
    async read(path, { start = 0, end } = {}) {
      const bytes = await files.read(at(path), { format: 'bytes' }).catch(missing(path))
      return bytes.subarray(start, end)
    },
    async write(path, data, { mode } = {}) {
      await files.write(at(path), typeof data === 'string' ? data : new Blob([new Uint8Array(data)]))
      if (mode !== undefined) await commands.run(`chmod ${mode.toString(8)} ${quote(at(path))}`)
    },
    async stat(path) {
      if (!(await files.exists(at(path)))) return null
      const { type, size, mode, modifiedTime } = await files.getInfo(at(path))
      const kind = type === 'dir' ? 'directory' : 'file'
      return { kind, size, mode, modified: modifiedTime?.getTime() ?? 0 }
    },
    async list(path) {
      const entries = await files.list(at(path)).catch(missing(path))
      const kindOf = (entry: (typeof entries)[number]) => (entry.type === 'dir' ? 'directory' : 'file')
      return entries.map(entry => ({
        name: entry.name,
        kind: entry.symlinkTarget === undefined ? kindOf(entry) : 'symlink',
      }))
    },
    mkdir: async path => void (await files.makeDir(at(path))),
    remove: path => files.remove(at(path)).catch(missing(path)),
    rename: async (from, to) => void (await files.rename(at(from), at(to)).catch(missing(from))),
    async search({ text, glob = '*', path = '.', regex = false, limit = 100 }) {
      const found = text === undefined ? '' : `-exec grep -Hn${regex ? 'E' : 'F'} -e ${quote(text)} {} +`
      const line = `cd ${root} && find ${quote(path)} -type f -name ${quote(glob)} ${found || '-print'} | sort`
      const { stdout } = await commands.run(line)
      const matches = stdout.split('\n').flatMap((hit): SearchMatch[] => {
        const [, name, number, rest] = /^(?:\.\/)?(.+?):(\d+):(.*)$/.exec(hit) ?? []
        if (text === undefined) return hit ? [{ path: hit.replace(/^\.\//, '') }] : []
        return name && rest !== undefined ? [{ path: name, line: Number(number), text: rest }] : []
      })
      return { matches: matches.slice(0, limit), truncated: matches.length > limit, skipped: 0 }
    },
  }
}

if (import.meta.main) {
  const backend = e2bBackend()
  console.log(`backend: ${backend.name}, a ${backend.capabilities.isolation}`)
  if (process.env.E2B_API_KEY === undefined) console.log('not opened: E2B_API_KEY is not set')
  else {
    await using sandbox = await backend.open(undefined)
    const { stdout } = await sandbox.exec('uname -s').result
    console.log(`opened: ${new TextDecoder().decode(stdout)}`)
  }
}
