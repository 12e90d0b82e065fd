import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { isPublicAddress, type Network, openInternet } from '../../src/memory/fetch-text.ts'
import { readResource } from '../../src/memory/resource.ts'
import { refusalOf } from '../session/make.ts'

/** A server of this machine that plays the internet: its names lead here, and only an address that stands for a private one is not public. */
async function internet(
  answer: (
    path: string,
    host: string,
  ) => { status?: number; headers?: Record<string, string>; body?: string | Uint8Array },
) {
  const asked: string[] = []
  const server = createServer((request, response) => {
    asked.push(`${request.headers.host}${request.url}`)
    const {
      status = 200,
      headers = { 'content-type': 'text/plain' },
      body = '',
    } = answer(request.url ?? '', request.headers.host ?? '')
    response.writeHead(status, headers).end(body)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const network: Network = {
    lookup: async host =>
      host === 'inside.example'
        ? ['10.0.0.7']
        : host === 'both.example'
          ? ['127.0.0.1', '10.0.0.7']
          : ['127.0.0.1'],
    isPublic: address => address === '127.0.0.1',
  }
  return { port, asked, network }
}

const text = (read: { entries: readonly { text: string }[] }) =>
  read.entries.map(entry => entry.text).join('\n')

test('a page of an allowed host is taken in as its words', async () => {
  const { port, network } = await internet(() => ({
    headers: { 'content-type': 'text/html; charset=utf-8' },
    body: '<h1>Tides</h1><script>steal()</script><p>High at &amp; noon.</p>',
  }))
  const url = `http://docs.example:${port}/tides`
  const read = await readResource({ url, allow: [`docs.example:${port}`] }, { network })
  expect(text(read)).toMatch(/Tides\s+High at & noon\./)
  expect(text(read)).not.toContain('steal')
  expect(read.scope).toBe(`resource/${url}`)
})

test('a redirect is checked like the first address, and nothing is asked where it must not lead', async () => {
  let location = ''
  const { port, network, asked } = await internet(() => ({ status: 302, headers: { location } }))
  const allow = [`docs.example:${port}`, `inside.example:${port}`]
  for (const to of [
    `http://evil.example:${port}/`,
    `http://inside.example:${port}/`,
    'file:///etc/passwd',
    'http://10.0.0.1/',
    `http://u:p@docs.example:${port}/`,
  ]) {
    location = to
    asked.length = 0
    const error = await refusalOf(readResource({ url: `http://docs.example:${port}/`, allow }, { network }))
    expect(error.code, to).toBe('resource-refused')
    expect(asked, to).toEqual([`docs.example:${port}/`])
    expect(error.message).not.toContain('u:p')
  }
  location = '/again'
  expect(
    (await refusalOf(readResource({ url: `http://docs.example:${port}/`, allow }, { network }))).message,
  ).toContain('redirects')
})

test('a host with one private address among its addresses is not asked', async () => {
  const { port, network, asked } = await internet(() => ({ body: 'x' }))
  const resource = { url: `http://both.example:${port}/`, allow: [`both.example:${port}`] }
  expect((await refusalOf(readResource(resource, { network }))).message).toContain('private network')
  expect(asked).toEqual([])
})

test('what is too large, no text, an error or slow is refused', async () => {
  const { port, network } = await internet(path => {
    if (path === '/large') return { body: 'x'.repeat(2_000) }
    if (path === '/image') return { headers: { 'content-type': 'image/png' } }
    return { status: 500 }
  })
  const allow = [`docs.example:${port}`]
  const refusal = (path: string) =>
    refusalOf(
      readResource({ url: `http://docs.example:${port}${path}`, allow }, { network, maximumBytes: 1_000 }),
    )
  expect((await refusal('/large')).message).toContain('1,000 bytes')
  expect((await refusal('/image')).message).toContain('image/png')
  expect((await refusal('/broken')).message).toContain('500')
})

test('a page is read in the charset that it names; in none that is known, or compressed, it is refused', async () => {
  const { port, network } = await internet(path => {
    const type = `text/plain; charset=${path.slice(1)}`
    if (path === '/gzip') return { headers: { 'content-type': 'text/plain', 'content-encoding': 'gzip' } }
    return { headers: { 'content-type': type }, body: Uint8Array.of(0xb3, 0xb1, 0xcf, 0xab) }
  })
  const read = (path: string) =>
    readResource({ url: `http://docs.example:${port}${path}`, allow: [`docs.example:${port}`] }, { network })
  expect(text(await read('/gb2312'))).toBe('潮汐')
  expect((await refusalOf(read('/klingon'))).message).toContain('its charset "klingon" is not known')
  expect((await refusalOf(read('/gzip'))).message).toContain('encoded as gzip')
})

test('a name that is never resolved is waited for no longer than a page', async () => {
  const network: Network = { lookup: () => new Promise(() => {}), isPublic: () => true }
  const resource = { url: 'http://docs.example/', allow: ['docs.example'] }
  const late = await refusalOf(readResource(resource, { network, timeoutMs: 1 }))
  expect([late.code, late.message]).toEqual(['resource-refused', expect.stringContaining('within 0.001 s')])
  const stop = new AbortController()
  const stopped = refusalOf(readResource(resource, { network }, stop.signal))
  stop.abort()
  expect((await stopped).code).toBe('cancelled')
})

test('addresses of this machine and of private networks are not public, in any notation', async () => {
  for (const address of [
    '127.0.0.1',
    '10.1.2.3',
    '172.20.0.1',
    '192.168.1.1',
    '169.254.169.254',
    '100.64.0.1',
    '0.0.0.0',
    '::1',
    '::',
    'fe80::1',
    'fd00::1',
    '::ffff:127.0.0.1',
    '::ffff:a9fe:a9fe',
    '64:ff9b::7f00:1',
    '2002:7f00:1::',
    'localhost',
    '',
  ])
    expect(isPublicAddress(address), address).toBe(false)
  for (const address of ['8.8.8.8', '1.1.1.1', '2606:4700:4700::1111', '172.32.0.1'])
    expect(isPublicAddress(address), address).toBe(true)
  for (const url of [
    'http://127.0.0.1/',
    'http://[::1]/',
    'http://2130706433/',
    'http://0x7f.1/',
    'http://localhost/',
  ]) {
    const error = await refusalOf(
      readResource({ url, allow: [new URL(url).hostname] }, { network: openInternet }),
    )
    expect(error.code, url).toBe('resource-refused')
    expect(error.message, url).toContain('private network')
  }
})
