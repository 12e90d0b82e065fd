import type Docker from 'dockerode'
import { type GuardMount, recordFolder } from '../../host/guard.ts'
import type { DockerSpec } from './docker-spec.ts'
import { ownLabels, ownName } from './owner.ts'

const usualMemory = 2 * 1024 ** 3
const usualProcesses = 512

/**
 * Process 1 of every container: it waits, collects what others leave behind, and ends when it is told to. Its session is how the commands' own
 * processes are told from it.
 */
const keeper = 'trap "exit 0" TERM; while :; do sleep 2147483647 & wait $!; done'

/** How a container is made for a spec. */
export function createOptions(
  spec: DockerSpec,
  image: string,
  folder: MountedFolder | undefined,
  sandbox: string,
): Docker.ContainerCreateOptions & { readonly name: string } {
  const { network = 'none', ports = [], limits = {} } = spec
  const { memory = usualMemory, processes = usualProcesses, cpus } = limits
  const bindings = ports.map(port => [`${port}/tcp`, [{ HostIp: '127.0.0.1', HostPort: '' }]] as const)
  return {
    name: ownName(),
    Image: image,
    Entrypoint: ['/bin/sh'],
    Cmd: ['-c', keeper],
    WorkingDir: '/',
    // The keeper is the container's own, whoever commands run as.
    User: '0',
    Labels: ownLabels(sandbox, { ...keptSpec(spec), ...(folder !== undefined && { path: folder.path }) }),
    ExposedPorts: Object.fromEntries(ports.map(port => [`${port}/tcp`, {}])),
    HostConfig: {
      NetworkMode: network,
      Memory: memory,
      // As much as the memory: nothing is swapped.
      MemorySwap: memory,
      PidsLimit: processes,
      ...(cpus !== undefined && { NanoCpus: Math.round(cpus * 1e9) }),
      SecurityOpt: ['no-new-privileges'],
      ...(folder !== undefined && { Mounts: mountsOf(folder) }),
      PortBindings: Object.fromEntries(bindings.map(([port, hosts]) => [port, [...hosts]])),
    },
  }
}

/** A folder of this machine that commands work in. */
export interface MountedFolder {
  readonly path: string
  /** An empty folder that is seen in place of the record. */
  readonly record: string
  readonly guarded: readonly GuardMount[]
}

function mountsOf({ path, record, guarded }: MountedFolder): Docker.MountConfig {
  const mount = (Source: string, Target: string, ReadOnly: boolean): Docker.MountSettings => ({
    Type: 'bind',
    Source,
    Target,
    ReadOnly,
  })
  return [
    mount(path, '/workspace', false),
    ...guarded.map(one => mount(`${path}/${one.path}`, `/workspace/${one.path}`, one.isReadOnly)),
    mount(record, `/workspace/${recordFolder}`, true),
  ]
}

/** A spec without what only the first opening needs. */
export function keptSpec({ image: _, snapshot: __, ...kept }: DockerSpec): DockerSpec {
  return kept
}
