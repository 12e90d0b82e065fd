/** Where programs in a sandbox find the proxy. The loopback device is the sandbox's own. */
const proxyPort = 3128
/** Where the proxy's socket lies inside. */
const proxySocket = '/run/openrath/proxy.sock'

/** The number of the pipe that a command's shell is passed, to say that there is no such program. */
export const shellPipe = 6

/**
 * Runs in the sandbox in front of the command: programs speak TCP to their proxy, and the way out is a socket in the file system. It ends
 * as the command ends.
 */
export const forwarder = `
const net = require('node:net')
const { spawn } = require('node:child_process')
const [program, ...args] = process.argv.slice(1)
const server = net.createServer(near => {
  const far = net.connect(${JSON.stringify(proxySocket)})
  near.pipe(far).pipe(near)
  near.on('error', () => far.destroy()).on('close', () => far.destroy())
  far.on('error', () => near.destroy()).on('close', () => near.destroy())
})
server.listen(${proxyPort}, '127.0.0.1', () => {
  const child = spawn(program, args, { stdio: [0, 1, 2, 'ignore', 'ignore', 'ignore', ${shellPipe}] })
  child.on('exit', (code, signal) => process.exit(code ?? 128 + require('node:os').constants.signals[signal]))
})
`

/** What programs look at to find their proxy, in both spellings that are in use. */
export const proxyEnvironment: Readonly<Record<string, string>> = Object.fromEntries(
  ['http_proxy', 'https_proxy', 'HTTP_PROXY', 'HTTPS_PROXY']
    .map(name => [name, `http://127.0.0.1:${proxyPort}`])
    .concat([
      ['no_proxy', ''],
      ['NO_PROXY', ''],
      // Node's own fetch looks only when told to.
      ['NODE_USE_ENV_PROXY', '1'],
    ]),
)
