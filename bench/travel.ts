import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SentFiles } from '../src/run/place/sent-files.ts'
import { dockerBackend } from '../src/sandbox/drivers/docker/driver.ts'
import { isolatedBackend } from '../src/sandbox/drivers/isolated/driver.ts'
import { localBackend } from '../src/sandbox/drivers/local/driver.ts'
import { openSandboxBackend } from '../src/sandbox/drivers/opensandbox/driver.ts'
import type { Sandbox, SandboxBackend } from '../src/sandbox/spec.ts'
import { ObjectStore } from '../src/sandbox/workspace/objects.ts'
import { KnownContent, RemoteWorkspace } from '../src/sandbox/workspace/remote.ts'
import { Workspace } from '../src/sandbox/workspace/workspace.ts'
import { openStore } from '../src/store/open.ts'
import { boxProblem } from '../test/sandbox/stand-in/box.ts'
import { startPodman } from '../test/sandbox/stand-in/podman.ts'
import { startStandIn } from '../test/sandbox/stand-in/server.ts'
import { type Bench, compareFigures, compareTime } from './harness.ts'

const size = 10_000
const name = `${size.toLocaleString('en')} files`
const few = { rounds: 5, warmUps: 1 }
type Report = Parameters<Bench>[0]

/** What it costs to look at a workspace of 10,000 files of 1 KB after one of them changed, on each backend, and to take it to another machine. */
export const bench: Bench = async report => {
  const base = mkdtempSync(join(tmpdir(), 'openrath-bench-'))
  try {
    await looks(base, report)
    await travels(base, report)
  } finally {
    rmSync(base, { recursive: true, force: true })
  }
}

async function looks(base: string, report: Report): Promise<void> {
  const objects = await ObjectStore.open(join(base, 'objects'))
  const engine = await startPodman()
  const standIn = boxProblem() === undefined ? await startStandIn() : undefined
  const places: [string, SandboxBackend | string][] = [
    ['local', localBackend()],
    ['isolated', isolatedBackend()],
    [
      'docker, by Podman',
      typeof engine === 'string' ? engine : dockerBackend({ socket: engine.socket, image: engine.busybox }),
    ],
    [
      'opensandbox, by the stand-in',
      standIn ? openSandboxBackend({ ...standIn, image: 'debian:12-slim' }) : (boxProblem() ?? ''),
    ],
  ]
  try {
    for (const [called, backend] of places) {
      const { available, reason } =
        typeof backend === 'string'
          ? { available: false, reason: backend }
          : ((await backend.probe?.()) ?? { available: true, reason: '' })
      if (available) await look(called, backend as SandboxBackend, objects, report)
      else console.error(`  ${called} is not measured: ${reason}`)
    }
  } finally {
    await standIn?.[Symbol.asyncDispose]()
    if (typeof engine !== 'string') await engine[Symbol.asyncDispose]()
    objects.close()
  }
}

async function look(
  called: string,
  backend: SandboxBackend,
  objects: ObjectStore,
  report: Report,
): Promise<void> {
  await using sandbox = await backend.open(undefined)
  const made = await sandbox.exec(makeFiles).result
  if (made.exitCode !== 0) throw new Error(new TextDecoder().decode(made.stderr))
  const workspace = await workspaceOf(sandbox, objects)
  await workspace.snapshot()
  let edits = 0
  const change = async () => {
    await sandbox.exec(`echo ${edits++} > d7/f7`).result
  }
  report(
    await compareTime(
      `snapshot after one of ${name} changed, ${called}`,
      { name: 'snapshot()', operations: 1, prepare: change, run: () => workspace.snapshot() },
      { name: 'a command that does nothing', operations: 1, run: () => sandbox.exec('true').result },
      few,
    ),
  )
}

/** As the runtime does: through the folder where there is one on this machine, else by commands. */
async function workspaceOf(sandbox: Sandbox, objects: ObjectStore): Promise<Workspace | RemoteWorkspace> {
  return sandbox.hostPath === undefined
    ? new RemoteWorkspace(sandbox, objects, new KnownContent())
    : Workspace.open(sandbox.hostPath, objects, { keep: false })
}

const makeFiles = `
i=0
line=$(printf '%01000d' 0)
while [ $i -lt 100 ]; do
  mkdir d$i
  j=0
  while [ $j -lt ${size / 100} ]; do echo "$i $j $line" > d$i/f$j; j=$((j+1)); done
  i=$((i+1))
done`

async function travels(base: string, report: Report): Promise<void> {
  const project = join(base, 'project')
  for (let i = 0; i < size; i++) {
    if (i % 100 === 0) mkdirSync(join(project, `d${i / 100}`), { recursive: true })
    writeFileSync(join(project, `d${Math.floor(i / 100)}`, `f${i % 100}`), textOf(i))
  }
  const objects = await ObjectStore.open(join(base, 'here'))
  const workspace = await Workspace.open(project, objects, { keep: false })
  const { tree } = await workspace.snapshot()
  const path = join(base, 'rath.db')
  const store = await openStore(`sqlite:${path}`)
  const sent = new SentFiles(
    async () => store,
    async () => objects,
    join(base, 'sent-here'),
  )
  const near = { trees: [], origin: 'bench' }
  const packs = (await sent.send([tree], near)) ?? []
  const bytesOf = async (ids: readonly string[]) => {
    let bytes = 0
    for (const id of ids) bytes += (await store.blobs.get(id)).length
    return bytes
  }
  report(
    compareFigures(
      `bytes sent to the store, ${name}`,
      { value: await bytesOf(packs), unit: 'bytes', name: 'the first time' },
      { value: size * textOf(0).length, unit: 'bytes', name: 'the files' },
    ),
  )
  writeFileSync(join(project, 'd7', 'f7'), 'changed')
  const next = (await workspace.snapshot()).tree
  const more = ((await sent.send([next], { ...near, trees: [tree] })) ?? []).filter(id => !packs.includes(id))
  report(
    compareFigures(
      `bytes sent to the store after one of ${name} changed`,
      { value: await bytesOf(more), unit: 'bytes' },
      { value: 'changed'.length, unit: 'bytes', name: 'the file' },
    ),
  )
  let edits = 0
  let last = next
  report(
    await compareTime(
      `sending a change of one of ${name}`,
      {
        name: 'to SQLite',
        operations: 1,
        prepare: async () => {
          writeFileSync(join(project, 'd7', 'f7'), `changed ${edits++}`)
          return (await workspace.snapshot()).tree
        },
        run: async (changed: string) => {
          await sent.send([changed], { ...near, trees: [last] })
          last = changed
        },
      },
      {
        name: 'a blob of 10 KB',
        operations: 1,
        run: () => store.blobs.put(new Uint8Array(10_000).fill(edits++ % 256)),
      },
      few,
    ),
  )
  let machines = 0
  report(
    await compareTime(
      `bringing ${name} to a new machine`,
      {
        name: 'from SQLite, and laid out',
        operations: 1,
        prepare: () => join(base, `machine-${machines++}`),
        run: async (machine: string) => {
          const there = await ObjectStore.open(join(machine, 'objects'))
          const bring = new SentFiles(
            async () => store,
            async () => there,
            machine,
          )
          await bring.bring([tree], packs)
          mkdirSync(join(machine, 'project'))
          const folder = await Workspace.open(join(machine, 'project'), there, { keep: false })
          await folder.restore(tree)
          there.close()
        },
        finish: (machine: string) => rmSync(machine, { recursive: true }),
      },
      {
        name: 'cp -r of the folder',
        operations: 1,
        prepare: () => join(base, `copy-${machines++}`),
        run: (copy: string) => execFileSync('cp', ['-r', project, copy]),
        finish: (copy: string) => rmSync(copy, { recursive: true }),
      },
      few,
    ),
  )
  await store.close()
  objects.close()
}

function textOf(i: number): string {
  return `${`${i} `.repeat(400)}`.slice(0, 1024)
}
