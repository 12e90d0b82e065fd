import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { findAllowed, parseAllowed, usableAddress } from '../../src/sandbox/drivers/isolated/allowed-hosts.ts'
import { isolated, testHere } from './isolated-here.ts'
import { out } from './make.ts'

async function serve() {
  const server = createServer((request, response) => response.end(`${request.method} ${request.url}`))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const close = () => new Promise<void>(resolve => server.close(() => resolve()))
  return { port, [Symbol.asyncDispose]: close }
}

/** Asks through the proxy that the environment names, over HTTP and through a tunnel. */
const ask = (url: string) => `python3 - <<'END'
import http.client, os, socket, urllib.parse, urllib.request
try: print('http', urllib.request.urlopen('${url}').read().decode())
except Exception as error: print('http', error)
proxy, target = urllib.parse.urlparse(os.environ.get('http_proxy', 'http://127.0.0.1:1')), urllib.parse.urlparse('${url}')
try:
    tunnel = http.client.HTTPConnection(proxy.hostname, proxy.port)
    tunnel.set_tunnel(target.hostname, target.port or 80)
    tunnel.request('GET', target.path)
    print('tunnel', tunnel.getresponse().read().decode())
except Exception as error: print('tunnel', error)
try: print('direct', socket.create_connection((target.hostname, target.port or 80), 3))
except Exception as error: print('direct', type(error).__name__)
END`

testHere('a host that is allowed is reached through the proxy, and others are refused', async () => {
  await using allowed = await serve()
  await using other = await serve()
  await using sandbox = await isolated.open({ network: { allow: [`127.0.0.1:${allowed.port}`] } })
  const to = async (port: number, host = '127.0.0.1') =>
    out(await sandbox.exec(ask(`http://${host}:${port}/path?q=1`)).result).split('\n')
  expect(await to(allowed.port)).toEqual([
    'http GET /path?q=1',
    'tunnel GET /path',
    'direct ConnectionRefusedError',
    '',
  ])
  for (const lines of [await to(other.port), await to(allowed.port, 'localhost')]) {
    expect(lines[0]).toMatch(/http HTTP Error 403: Forbidden/)
    expect(lines[1]).toMatch(/tunnel .*403 Forbidden/)
  }
})

testHere('the exit code, the streams and the end of a command are the same behind the proxy', async () => {
  await using sandbox = await isolated.open({ network: { allow: ['example.com'] } })
  const { exitCode, stdout, stderr } = await sandbox.exec('cat; echo err >&2; exit 7', { stdin: 'in' }).result
  expect([exitCode, ...[stdout, stderr].map(bytes => new TextDecoder().decode(bytes))]).toEqual([
    7,
    'in',
    'err\n',
  ])
  expect((await sandbox.exec('kill -9 $$').result).exitCode).toBe(137)
  expect((await sandbox.exec('sleep 1000', { timeout: 300 }).result).timedOut).toBe(true)
  await expect(sandbox.exec(['no-such-program-anywhere']).result).rejects.toMatchObject({
    code: 'sandbox-failed',
  })
})

testHere('a name that leads to this machine is refused unless its port is named', async () => {
  await using server = await serve()
  await using sandbox = await isolated.open({ network: { allow: ['localhost', `localhost:${server.port}`] } })
  expect(out(await sandbox.exec(ask(`http://localhost/`)).result)).toMatch(/^http HTTP Error 403/)
  expect(out(await sandbox.exec(ask(`http://localhost:${server.port}/x`)).result)).toMatch(/^http GET \/x/)
})

test('entries of the list are hosts, and fit whole names and ports', () => {
  const fits = (entry: string, host: string, port: number) => {
    const parsed = parseAllowed(entry)
    return parsed !== undefined && findAllowed([parsed], host, port) !== undefined
  }
  const yes: [string, string, number][] = [
    ['example.com', 'example.com', 443],
    ['example.com', 'EXAMPLE.com.', 80],
    ['*.example.com', 'a.b.example.com', 443],
    ['example.com:8443', 'example.com', 8443],
    ['[::1]:80', '[::1]', 80],
  ]
  const no: [string, string, number][] = [
    ['example.com', 'evil-example.com', 443],
    ['example.com', 'example.com.evil.org', 443],
    ['example.com', 'a.example.com', 443],
    ['example.com', 'example.com', 22],
    ['*.example.com', 'example.com', 443],
    ['example.com:8443', 'example.com', 443],
  ]
  for (const one of yes) expect(fits(...one), one.join(' ')).toBe(true)
  for (const one of no) expect(fits(...one), one.join(' ')).toBe(false)
  for (const bad of ['', '*', 'http://a', 'a/b', 'a:0', 'a:99999', 'a b', '*.127.0.0.1', '[a]']) {
    expect(parseAllowed(bad), bad).toBeUndefined()
  }
})

test('addresses inside this machine or its networks are not used for a public name', () => {
  const open = parseAllowed('example.com')
  const named = parseAllowed('example.com:80')
  if (!open || !named) throw new Error('these are entries')
  const four = [
    '127.0.0.1',
    '10.1.2.3',
    '172.20.0.1',
    '192.168.1.1',
    '169.254.169.254',
    '100.64.0.1',
    '0.0.0.0',
  ]
  const six = ['::1', '::', 'fd00::1', 'fe80::1', '::ffff:127.0.0.1', '::ffff:10.0.0.1', '64:ff9b::7f00:1']
  for (const address of [...four, ...six]) {
    const found = [{ address, family: address.includes(':') ? 6 : 4 }]
    expect(usableAddress(found, open), address).toBeUndefined()
    expect(usableAddress(found, named), address).toBe(found[0])
  }
  const both = [
    { address: '127.0.0.1', family: 4 },
    { address: '93.184.216.34', family: 4 },
  ]
  expect(usableAddress(both, open)).toBe(both[1])
})
