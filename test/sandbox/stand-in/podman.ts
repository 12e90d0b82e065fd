import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import Docker from 'dockerode'

export interface Engine extends AsyncDisposable {
  readonly docker: Docker
  readonly socket: string
  /** With a shell that finds programs by their paths. */
  readonly image: string
  /** With busybox for its shell too, which prefers its own `ps` to the other. */
  readonly busybox: string
}

/** Podman with a storage of its own and an image made on the spot; a text says why there is none. */
export async function startPodman(): Promise<Engine | string> {
  if (process.getuid?.() !== 0) return 'needs root, to run Podman with a storage of its own'
  for (const program of ['podman', 'runc', 'busybox', 'tar']) {
    if (spawnSync('sh', ['-c', `command -v ${program}`]).status !== 0) return `needs ${program}`
  }
  const base = mkdtempSync(join(tmpdir(), 'openrath-podman-'))
  const socket = join(base, 'socket')
  const service = startService(base, socket)
  const engine = { docker: new Docker({ socketPath: socket }), socket }
  const stop = async () => {
    service.kill('SIGTERM')
    if (service.exitCode === null && service.signalCode === null) await once(service, 'exit')
    killMonitors(base)
    unmountBelow(base)
    // What was killed may be writing still.
    rmSync(base, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 })
  }
  try {
    while (!existsSync(socket) && service.exitCode === null) await pause(10)
    const image = await importImage(engine.docker, base, 'sh')
    const busybox = await importImage(engine.docker, base, 'busybox')
    // What a machine may forbid is tried first.
    const container = await engine.docker.createContainer({ Image: image, Cmd: ['/bin/true'] })
    await container.start().finally(() => container.remove({ force: true }))
    return { ...engine, image, busybox, [Symbol.asyncDispose]: stop }
  } catch (error) {
    await stop()
    return `Podman cannot run a container here: ${(error as Error).message}`
  }
}

function startService(base: string, socket: string): ChildProcess {
  // The usual limits of Podman are higher than a machine without CAP_SYS_RESOURCE lets them be.
  const limits = '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]\n'
  // Two processes wait behind every command until its exit code is no longer asked for, five minutes by default.
  const delay = '[engine]\nexit_command_delay = 30\n'
  writeFileSync(join(base, 'containers.conf'), limits + delay)
  const places = [
    '--root',
    join(base, 'storage'),
    '--runroot',
    join(base, 'run'),
    '--tmpdir',
    join(base, 'tmp'),
  ]
  const kinds = ['--storage-driver', 'vfs', '--runtime', 'runc', '--cgroup-manager', 'cgroupfs']
  const args = [...places, ...kinds, 'system', 'service', '--time=0', `unix://${socket}`]
  return spawn('podman', args, {
    stdio: 'ignore',
    // Where its monitors leave a file `oom` when a container takes too much memory.
    cwd: base,
    env: { ...process.env, CONTAINERS_CONF: join(base, 'containers.conf') },
  })
}

/** Busybox for everything, but for the programs that some builds of it have not: `ps` with options, and `nohup`. */
async function importImage(docker: Docker, base: string, shell: 'sh' | 'busybox'): Promise<string> {
  const root = join(base, `image-${shell}`)
  for (const name of ['bin', 'tmp', 'etc', 'proc', 'sys', 'dev'])
    mkdirSync(join(root, name), { recursive: true })
  const applets = output('busybox', '--list').trim().split('\n')
  const copied = ['busybox', 'ps', 'nohup', ...(shell === 'sh' ? ['sh'] : [])]
  for (const name of applets.filter(applet => !copied.includes(applet))) {
    symlinkSync('busybox', join(root, 'bin', name))
  }
  for (const name of copied) {
    copyFileSync(pathOf(name), join(root, 'bin', name))
    for (const [library] of output('ldd', pathOf(name)).matchAll(/\/\S+/g)) {
      mkdirSync(dirname(join(root, library)), { recursive: true })
      copyFileSync(library, join(root, library))
    }
  }
  writeFileSync(join(root, 'etc/passwd'), 'root:x:0:0:root:/:/bin/sh\n')
  const archive = spawnSync('tar', ['-C', root, '-c', '.'], { maxBuffer: 1024 ** 3 }).stdout
  const progress = await docker.importImage(Readable.from([archive]))
  let text = ''
  for await (const piece of progress) text += String(piece)
  // With a name, since Podman removes an image that has none together with the last one that was made of it.
  const [id] = /sha256:[0-9a-f]{64}/.exec(text) as RegExpExecArray
  await docker.getImage(id).tag({ repo: 'localhost/openrath-test', tag: shell })
  return `localhost/openrath-test:${shell}`
}

/** What Podman leaves to wait behind commands that have ended: those of this storage alone. */
function killMonitors(base: string): void {
  for (const pid of readdirSync('/proc').map(Number).filter(Number.isInteger)) {
    try {
      const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
      if (words[0]?.endsWith('/conmon') && words.some(word => word.startsWith(base)))
        process.kill(pid, 'SIGKILL')
    } catch {
      // It has ended meanwhile.
    }
  }
}

/** What a container that did not start leaves: otherwise the folder is busy, and the reason why it did not start is lost. */
function unmountBelow(base: string): void {
  const mounted = readFileSync('/proc/mounts', 'utf8').split('\n')
  for (const path of mounted.map(line => line.split(' ')[1]).filter(path => path?.startsWith(`${base}/`))) {
    spawnSync('umount', ['-l', path as string])
  }
}

function pathOf(program: string): string {
  return output('sh', '-c', `command -v ${program}`).trim()
}

function output(program: string, ...args: string[]): string {
  return spawnSync(program, args, { encoding: 'utf8' }).stdout
}
