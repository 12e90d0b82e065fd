import type { LookupAddress } from 'node:dns'
import { BlockList, isIP } from 'node:net'

/** A host that commands may reach. */
export interface AllowedHost {
  /** In lower case. Behind `*.` it stands for every name below it. */
  readonly name: string
  readonly isWildcard: boolean
  /** The only port; without one, those of HTTP and HTTPS. */
  readonly port: number | undefined
}

/** `example.com`, `*.example.com`, `example.com:8443`, `127.0.0.1:8080`, `[::1]:8080`. Undefined for anything else. */
export function parseAllowed(entry: string): AllowedHost | undefined {
  const parts = /^(\*\.)?(?:\[([0-9a-f:.]+)\]|([a-z0-9_.-]+))(?::(\d{1,5}))?$/i.exec(entry)
  if (!parts) return undefined
  const name = (parts[2] ?? parts[3] ?? '').toLowerCase().replace(/\.$/, '')
  const port = parts[4] === undefined ? undefined : Number(parts[4])
  const isFine =
    name !== '' &&
    !(parts[1] !== undefined && isIP(name) !== 0) &&
    !(parts[2] !== undefined && isIP(name) !== 6) &&
    (port === undefined || (port >= 1 && port <= 65535))
  return isFine ? { name, isWildcard: parts[1] !== undefined, port } : undefined
}

/** The entry that lets a connection through, if one does. */
export function findAllowed(
  allowed: readonly AllowedHost[],
  host: string,
  port: number,
): AllowedHost | undefined {
  const name = host
    .toLowerCase()
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/\.$/, '')
  return allowed.find(entry => {
    const isPort = entry.port === undefined ? port === 80 || port === 443 : entry.port === port
    return isPort && (entry.isWildcard ? name.endsWith(`.${entry.name}`) : name === entry.name)
  })
}

/**
 * The first address that may be connected to. A public name may be made to lead to this machine or its neighbours by whoever owns it, so
 * that such addresses count only for an entry that names its port.
 */
export function usableAddress(
  addresses: readonly LookupAddress[],
  entry: AllowedHost,
): LookupAddress | undefined {
  return addresses.find(one => (entry.port !== undefined && !entry.isWildcard) || !isInternal(one))
}

function isInternal({ address, family }: LookupAddress): boolean {
  return internal.check(address, family === 6 ? 'ipv6' : 'ipv4')
}

/** This machine, private and link-local networks, and what is not an address of one host. IPv4 inside IPv6 is checked as IPv4 by Node. */
const internal = new BlockList()
for (const [network, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 3],
] as const) {
  internal.addSubnet(network, bits, 'ipv4')
}
for (const [network, bits] of [
  ['::', 127],
  ['64:ff9b::', 32],
  ['2002::', 16],
  ['fc00::', 7],
  ['fe80::', 9],
  ['ff00::', 8],
] as const) {
  internal.addSubnet(network, bits, 'ipv6')
}
