import { lookup as systemLookup } from 'node:dns'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { BlockList, isIP } from 'node:net'
import { cancelledError, untilAbort } from '../base/abort.ts'
import { RathError, show } from '../base/errors.ts'

/** How the network is reached; tests bring their own. */
export interface Network {
  lookup(host: string): Promise<readonly string[]>
  isPublic(address: string): boolean
}

export const openInternet: Network = {
  lookup: host =>
    new Promise((resolve, reject) => {
      systemLookup(host, { all: true }, (error, found) =>
        error ? reject(error) : resolve(found.map(({ address }) => address)),
      )
    }),
  isPublic: isPublicAddress,
}

export interface FetchLimits {
  readonly maximumBytes: number
  readonly timeoutMs: number
}

const mostRedirects = 5

/**
 * The text behind an address. Only hosts of the list are asked, wherever redirects lead; the address that was checked is the one that is
 * connected to, so a name that resolves differently the second time gains nothing. No credentials, cookies or proxies are used.
 */
export async function fetchText(
  url: string,
  allow: readonly string[],
  { maximumBytes, timeoutMs }: FetchLimits,
  network: Network,
  signal?: AbortSignal,
): Promise<{ readonly text: string; readonly type: string }> {
  const limited = AbortSignal.any([AbortSignal.timeout(timeoutMs), ...(signal ? [signal] : [])])
  try {
    let here = url
    for (let redirects = 0; redirects <= mostRedirects; redirects++) {
      const target = checkUrl(here, allow)
      // Asking for a name cannot be stopped, only left behind.
      const address = await untilAbort(addressOf(target, network), limited)
      const response = await ask(target, address, limited)
      const { statusCode = 0, headers } = response
      if (statusCode >= 300 && statusCode < 400 && headers.location !== undefined) {
        response.destroy()
        here = new URL(headers.location, target).href
        continue
      }
      if (statusCode !== 200) {
        response.destroy()
        throw refused(here, `it answered with status ${statusCode}`)
      }
      const type = headers['content-type'] ?? ''
      if (!/^(?:text\/|application\/(?:json|xml|xhtml\+xml|javascript|x-ndjson))/i.test(type)) {
        response.destroy()
        throw refused(here, `it is ${type || 'of no known type'}, and only text is taken in`)
      }
      const encoding = headers['content-encoding'] ?? 'identity'
      if (encoding !== 'identity') {
        response.destroy()
        throw refused(here, `it is encoded as ${encoding}, which was not asked for`)
      }
      return { text: decoded(await readAll(response, maximumBytes, here), type, here), type }
    }
    throw refused(url, `it redirects more than ${mostRedirects} times`)
  } catch (error) {
    if (signal?.aborted) throw cancelledError(signal)
    if (error instanceof RathError && error.code !== 'cancelled') throw error
    if (limited.aborted) throw refused(url, `it did not answer within ${timeoutMs / 1000} s`)
    throw refused(url, `it cannot be reached: ${(error as Error).message}`, error)
  }
}

function checkUrl(text: string, allow: readonly string[]): URL {
  const url = URL.parse(text)
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:'))
    throw refused(text, 'only http and https addresses are taken in')
  if (url.username !== '' || url.password !== '')
    throw refused(`${url.protocol}//…@${url.host}`, 'it holds credentials')
  if (
    !allow.some(
      host => host.toLowerCase() === url.host || (url.port === '' && host.toLowerCase() === url.hostname),
    )
  )
    throw refused(text, `${url.host} is not among the allowed hosts (${allow.join(', ') || 'none'})`)
  return url
}

/** One address of the host. If any of its addresses is not public, none is used. */
async function addressOf({ hostname, href }: URL, network: Network): Promise<string> {
  const host = hostname.replace(/^\[|\]$/g, '')
  const addresses = isIP(host) ? [host] : await network.lookup(host)
  const bad = addresses.find(address => !network.isPublic(address))
  if (bad !== undefined)
    throw refused(href, `${host} is ${bad}, an address of this machine or of a private network`)
  const [first] = addresses
  if (first === undefined) throw refused(href, `${host} has no address`)
  return first
}

function ask(url: URL, address: string, signal: AbortSignal): Promise<IncomingMessage> {
  const request = url.protocol === 'https:' ? httpsRequest : httpRequest
  return new Promise((resolve, reject) => {
    request(url, {
      signal,
      agent: false,
      headers: { accept: 'text/*, application/json;q=0.9', 'accept-encoding': 'identity' },
      lookup: (_host, options, callback) => {
        const family = isIP(address)
        if (options.all) callback(null, [{ address, family }])
        else callback(null, address, family)
      },
    })
      .on('response', resolve)
      .on('error', reject)
      .end()
  })
}

async function readAll(response: IncomingMessage, maximumBytes: number, url: string): Promise<Buffer> {
  const parts: Buffer[] = []
  let size = 0
  for await (const part of response) {
    size += (part as Buffer).length
    if (size > maximumBytes) {
      response.destroy()
      throw refused(url, `it has more than ${maximumBytes.toLocaleString('en')} bytes`)
    }
    parts.push(part as Buffer)
  }
  return Buffer.concat(parts)
}

/** In the charset that the server names. */
function decoded(bytes: Buffer, type: string, url: string): string {
  const [, charset = 'utf-8'] = /charset\s*=\s*"?([^\s;"]+)/i.exec(type) ?? []
  try {
    return new TextDecoder(charset).decode(bytes)
  } catch (cause) {
    throw refused(url, `its charset ${show(charset)} is not known`, cause)
  }
}

function refused(url: string, why: string, cause?: unknown): RathError {
  return new RathError('resource-refused', `${show(url)} was not taken in: ${why}.`, {
    ...(cause !== undefined && { cause }),
    data: { url },
  })
}

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
