import assert from 'node:assert/strict'
import type { Sandbox, SandboxCapabilities } from '../../sandbox/spec.ts'
import { refused } from '../refused.ts'
import { output, type SandboxCases, textOf } from './case.ts'

export function pathCases({ enforced }: SandboxCapabilities): SandboxCases {
  if (!enforced.paths) return {}
  return {
    async 'no file call leaves the workspace by .. or by an absolute path'(sandbox) {
      for (const path of ['..', '../x', 'a/../../x', '/etc/passwd', '/', `${sandbox.cwd}/../x`]) {
        await assertRefused(sandbox, path)
      }
    },

    async 'no file call leaves the workspace through a link'(sandbox) {
      await output(
        sandbox,
        'ln -s /etc away; ln -s .. up; ln -s /etc/passwd file; ln -s up/.. twice; mkdir in',
      )
      for (const path of ['away/hosts', 'up/x', 'twice/x', 'in/../up/x']) await assertRefused(sandbox, path)
      for (const path of ['away', 'up', 'file']) {
        await refused(sandbox.files.stat(path), 'path-outside')
        await refused(sandbox.files.write(path, 'x'), 'path-outside')
      }
    },

    async 'a link to nothing does not let a write out'(sandbox) {
      await output(sandbox, 'ln -s /tmp/openrath-not-there out; ln -s ../not-there up; ln -s inside in')
      await refused(sandbox.files.write('out', 'x'), 'path-outside')
      await refused(sandbox.files.write('up/deep', 'x'), 'path-outside')
      await refused(sandbox.files.mkdir('out'), 'path-outside')
      await sandbox.files.write('in', 'x')
      assert.equal(textOf(await sandbox.files.read('inside')), 'x')
      assert.equal((await sandbox.files.list('.')).find(({ name }) => name === 'in')?.kind, 'symlink')
    },

    async 'links that stay inside are followed, and links in a circle are refused'(sandbox) {
      await output(
        sandbox,
        'mkdir -p real/deep; echo yes > real/deep/f; ln -s real/deep short; ln -s b a; ln -s a b',
      )
      assert.equal(textOf(await sandbox.files.read('short/f')), 'yes\n')
      assert.equal(textOf(await sandbox.files.read('short/../deep/f')), 'yes\n')
      await refused(sandbox.files.read('a'), 'path-outside')
    },

    async 'a link that leads out can be removed and renamed, and what it leads to stays'(sandbox) {
      await output(sandbox, 'ln -s /etc away')
      await sandbox.files.rename('away', 'gone')
      await sandbox.files.remove('gone', { recursive: true })
      assert.deepEqual(await sandbox.files.list('.'), [])
      assert.equal(await output(sandbox, 'test -e /etc/passwd && echo there'), 'there\n')
    },

    async 'a command does not start in a folder outside'(sandbox) {
      await output(sandbox, 'ln -s / root; echo > file; mkdir in')
      for (const cwd of ['..', '/', 'root', 'root/tmp']) {
        await refused(sandbox.exec('true', { cwd }).result, 'path-outside')
      }
      await refused(sandbox.exec('true', { cwd: 'nothing' }).result, 'path-missing')
      await refused(sandbox.exec('true', { cwd: 'file' }).result, 'path-kind')
      assert.equal(await output(sandbox, 'pwd', { cwd: 'in' }), `${sandbox.cwd}/in\n`)
    },
  }
}

/** Every call with a path. */
async function assertRefused({ files }: Sandbox, path: string): Promise<void> {
  await files.write('mine', 'mine')
  const calls = {
    read: files.read(path),
    write: files.write(path, 'x'),
    stat: files.stat(path),
    list: files.list(path),
    mkdir: files.mkdir(path),
    remove: files.remove(path, { recursive: true }),
    'rename from': files.rename(path, 'stolen'),
    'rename to': files.rename('mine', path),
    search: files.search({ text: 'x', path }),
  }
  // All are under way; each is waited for, so that none fails unheard.
  const ends = await Promise.allSettled(Object.values(calls))
  for (const [i, end] of ends.entries()) {
    const name = `${Object.keys(calls)[i]} ${path}`
    assert.equal(end.status, 'rejected', name)
    await refused(Promise.reject((end as PromiseRejectedResult).reason), 'path-outside')
  }
}
