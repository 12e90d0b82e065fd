import type Docker from 'dockerode'
import { RathError } from '../../../base/errors.ts'

/** Where a port of a container can be reached from this machine. */
export function addressOf({ NetworkSettings }: Docker.ContainerInspectInfo, port: number): string {
  const published = NetworkSettings.Ports?.[`${port}/tcp`]?.[0]?.HostPort
  if (published) return `http://127.0.0.1:${published}`
  const networks = Object.values(NetworkSettings.Networks ?? {})
  const address = networks.find(({ IPAddress }) => IPAddress)?.IPAddress
  if (address) return `http://${address}:${port}`
  throw new RathError(
    'sandbox-unsupported',
    `Port ${port} cannot be reached: the container has no network. Open it with { network: 'bridge', ports: [${port}] }.`,
    { data: { port } },
  )
}
