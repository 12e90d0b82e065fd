import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { localBackend } from '../../src/sandbox/drivers/local/driver.ts'
import { isolated } from './isolated-here.ts'
import { out, temporaryFolder } from './make.ts'

/** Into mounts that only a process of ours sees: as root without a user namespace, as others do it. */
const isRoot = process.getuid?.() === 0
const namespaces = ['--mount', '--propagation', 'private', ...(isRoot ? [] : ['--user', '--map-root-user'])]
const canMount = spawnSync('unshare', [...namespaces, 'true']).status === 0
if (!canMount) console.warn('Folders in another mount namespace are not tested: none can be made here.')

async function mountedFolder(base: string) {
  const at = join(base, 'branch')
  for (const name of ['lower', 'upper', 'work', 'branch']) mkdirSync(join(base, name))
  writeFileSync(join(base, 'lower/file'), 'of the base')
  const layers = `lowerdir=${base}/lower,upperdir=${base}/upper,workdir=${base}/work${isRoot ? '' : ',userxattr'}`
  const script = `mount -t overlay -o '${layers}' overlay '${at}' && echo up && read line`
  const holder = spawn('unshare', [...namespaces, 'sh', '-c', script], { stdio: ['pipe', 'pipe', 'inherit'] })
  await once(holder.stdout, 'data')
  const target = [
    '--target',
    String(holder.pid),
    '--mount',
    ...(isRoot ? [] : ['--user', '--preserve-credentials']),
  ]
  return {
    folder: { path: `/proc/${holder.pid}/root${at}`, inside: at, enter: ['nsenter', ...target, '--'] },
    upper: join(base, 'upper'),
    async [Symbol.asyncDispose]() {
      holder.stdin.end()
      await once(holder, 'exit')
      // The overlay leaves a folder there that nobody may enter.
      spawnSync('chmod', ['-R', 'u+rwx', join(base, 'work')])
    },
  }
}

for (const backend of [localBackend(), isolated]) {
  test.runIf(canMount)(
    `${backend.name} works in a folder that only lies in another mount namespace`,
    async ctx => {
      const { available, reason } = (await backend.probe?.()) ?? { available: true }
      if (!available) return ctx.skip(reason)
      using base = temporaryFolder()
      await using mounted = await mountedFolder(base.path)
      const { folder, upper } = mounted
      const sandbox = await backend.openIn?.(folder, { env: { A: 'b' } })
      if (sandbox === undefined) throw new Error('there is no openIn')
      expect([sandbox.cwd, sandbox.hostPath]).toEqual([folder.inside, folder.path])
      const run = async (command: string | string[], cwd?: string) =>
        out(await sandbox.exec(command, cwd === undefined ? {} : { cwd }).result)
      expect(await run('pwd; cat file')).toBe(`${folder.inside}\nof the base`)
      await sandbox.files.write('in/made', 'by a file call')
      expect(
        await run('pwd; cat made; echo "$A" > ../file; ln -s /etc away; ln -s "$PWD/made" same', 'in'),
      ).toBe(`${folder.inside}/in\nby a file call`)
      const text = async (path: string) => new TextDecoder().decode(await sandbox.files.read(path))
      expect([await text('file'), await text('in/same')]).toEqual(['b\n', 'by a file call'])
      expect(await text(`${folder.inside}/in/made`)).toBe('by a file call')
      for (const path of ['in/away/passwd', '../lower/file', join(base.path, 'lower/file'), '/etc/passwd']) {
        await expect(sandbox.files.read(path)).rejects.toMatchObject({ code: 'path-outside' })
      }
      await expect(sandbox.exec(['no-such-program']).result).rejects.toMatchObject({ code: 'sandbox-failed' })
      const kept = sandbox.exec('setsid sleep 1000 & echo up; wait')
      for await (const _ of kept) break
      await sandbox.close()
      expect((await kept.result).exitCode).not.toBe(0)
      expect(readFileSync(join(base.path, 'lower/file'), 'utf8')).toBe('of the base')
      expect(readFileSync(join(upper, 'file'), 'utf8')).toBe('b\n')
    },
  )
}
