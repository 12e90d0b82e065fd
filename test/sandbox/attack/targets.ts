import { spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'

/** What there is on this machine to be attacked, outside the workspace. */
export interface Targets extends AsyncDisposable {
  readonly folder: string
  readonly secretFile: string
  /** In the environment of this process. */
  readonly key: string
  readonly tcp: number
  readonly udp: number
  readonly socket: string
  readonly abstract: string
  /** A process that only waits. */
  readonly victim: number
  readonly victimMark: string
  isVictimAlive(): boolean
  /** How many have got through to one of the servers. */
  visits(): number
}

export async function makeTargets(base: string): Promise<Targets> {
  const folder = join(base, 'outside')
  mkdirSync(folder)
  chmodSync(folder, 0o777)
  const secretFile = join(folder, 'secret')
  writeFileSync(secretFile, 'a secret of another user')
  const abstract = `openrath-attack-${process.pid}`
  const victimMark = `victim-of-${process.pid}`
  const key = process.env.OPENRATH_ATTACK_KEY as string
  const waiting = `while :; do sleep 1000; done # ${victimMark}`
  // With a group of its own, so that what the shell waits for ends with it.
  const victim = spawn('sh', ['-c', waiting], { stdio: 'ignore', detached: true })
  let visits = 0
  const listen = async (where: object) => {
    const server = createServer(client => {
      visits++
      client.on('error', () => {}).end()
    })
    server.listen(where)
    await once(server, 'listening')
    return server
  }
  const [tcp, path, nowhere] = [
    await listen({ port: 0, host: '127.0.0.1' }),
    await listen({ path: join(folder, 'socket'), writableAll: true }),
    await listen({ path: `\0${abstract}` }),
  ]
  const udp = createSocket('udp4', (_, { port, address }) => {
    visits++
    udp.send('y', port, address)
  })
  udp.bind(0, '127.0.0.1')
  await once(udp, 'listening')
  return {
    folder,
    secretFile,
    key,
    tcp: (tcp.address() as AddressInfo).port,
    udp: udp.address().port,
    socket: join(folder, 'socket'),
    abstract,
    victim: victim.pid as number,
    victimMark,
    isVictimAlive: () => victim.exitCode === null && victim.signalCode === null,
    visits: () => visits,
    async [Symbol.asyncDispose]() {
      process.kill(-(victim.pid as number), 'SIGKILL')
      for (const server of [tcp, path, nowhere]) server.close()
      udp.close()
    },
  }
}
