import { BlockList, isIP } from 'node:net'

/**
 * Networks that are nobody's on the internet, or this machine's own: loopback, private, link-local (where clouds keep their keys), carrier,
 * documentation, multicast, reserved, and the prefixes that wrap IPv4 addresses in IPv6 ones.
 */
const subnets = {
  ipv4: [
    ...[
      '0.0.0.0/8',
      '10.0.0.0/8',
      '100.64.0.0/10',
      '127.0.0.0/8',
      '169.254.0.0/16',
      '172.16.0.0/12',
      '192.0.0.0/24',
    ],
    ...[
      '192.0.2.0/24',
      '192.88.99.0/24',
      '192.168.0.0/16',
      '198.18.0.0/15',
      '198.51.100.0/24',
      '203.0.113.0/24',
    ],
    ...['224.0.0.0/4', '240.0.0.0/4'],
  ],
  ipv6: [
    ...['::/96', '::ffff:0:0/96', '64:ff9b::/96', '64:ff9b:1::/48', '100::/64', '2001::/23', '2001:db8::/32'],
    ...['2002::/16', 'fc00::/7', 'fe80::/10', 'fec0::/10', 'ff00::/8'],
  ],
} as const

// One list for both would take every IPv4 address for its form in IPv6, and so for wrapped.
const notPublic = { ipv4: listOf('ipv4'), ipv6: listOf('ipv6') }

/** Whether an IP address belongs to the open internet. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address)
  if (family === 0) return false
  const type = family === 6 ? 'ipv6' : 'ipv4'
  return !notPublic[type].check(address, type)
}

function listOf(type: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList()
  for (const subnet of subnets[type]) {
    const [network = '', bits] = subnet.split('/')
    list.addSubnet(network, Number(bits), type)
  }
  return list
}
