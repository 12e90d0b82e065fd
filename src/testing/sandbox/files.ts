import assert from 'node:assert/strict'
import { refused } from '../refused.ts'
import { output, type SandboxCases, textOf } from './case.ts'

export function fileCases(): SandboxCases {
  return {
    async 'a new sandbox is empty, and its workspace is an absolute path'({ files, cwd, id }) {
      assert.deepEqual(await files.list('.'), [])
      assert.ok(cwd.startsWith('/'))
      assert.ok(id.length > 0)
    },

    async 'bytes come back as they were written'({ files }) {
      const bytes = Uint8Array.from({ length: 70_000 }, (_, i) => (i * 7) % 256)
      await files.write('data.bin', bytes)
      assert.deepEqual(await files.read('data.bin'), bytes)
      await files.write('text', 'Größe 🎈\n')
      assert.equal(textOf(await files.read('./text')), 'Größe 🎈\n')
      await files.write('empty', '')
      assert.equal((await files.read('empty')).length, 0)
    },

    async 'commands and files see the same workspace'(sandbox) {
      await sandbox.files.write('from-files', 'one')
      assert.equal(await output(sandbox, 'cat from-files; printf two > from-command'), 'one')
      assert.equal(textOf(await sandbox.files.read('from-command')), 'two')
      assert.equal(textOf(await sandbox.files.read(`${sandbox.cwd}/from-command`)), 'two')
    },

    async 'a range of a file is read, whatever lies behind its end'({ files }) {
      await files.write('digits', '0123456789')
      const read = async (start?: number, end?: number) =>
        textOf(
          await files.read('digits', {
            ...(start !== undefined && { start }),
            ...(end !== undefined && { end }),
          }),
        )
      assert.equal(await read(2, 5), '234')
      assert.equal(await read(7), '789')
      assert.equal(await read(undefined, 3), '012')
      assert.equal(await read(8, 100), '89')
      assert.equal(await read(50, 60), '')
      assert.equal(await read(5, 2), '')
    },

    async 'writing makes the folders that are missing'({ files }) {
      await files.write('a/b/c.txt', 'deep')
      assert.equal((await files.stat('a/b'))?.kind, 'directory')
    },

    async 'a mode is kept when a file is written again, and set when it is given'(sandbox) {
      const { files } = sandbox
      await files.write('run.sh', 'echo 1', { mode: 0o755 })
      assert.equal((await files.stat('run.sh'))?.mode, 0o755)
      await files.write('run.sh', '#!/bin/sh\necho 2\n')
      assert.equal((await files.stat('run.sh'))?.mode, 0o755)
      assert.equal(await output(sandbox, './run.sh'), '2\n')
      await files.write('run.sh', '', { mode: 0o600 })
      assert.equal((await files.stat('run.sh'))?.mode, 0o600)
    },

    async 'a reader sees a file as it was or as it is, never a part of it'({ files }) {
      const versions = ['a', 'b'].map(letter => letter.repeat(200_000))
      await files.write('big', versions[0] as string)
      const writes = (async () => {
        for (let i = 0; i < 20; i++) await files.write('big', versions[i % 2] as string)
      })()
      for (let i = 0; i < 20; i++) assert.ok(versions.includes(textOf(await files.read('big'))))
      await writes
      assert.deepEqual(await files.list('.'), [{ name: 'big', kind: 'file' }])
    },

    async 'stat tells what is there, and null when nothing is'({ files }) {
      const start = Date.now()
      await files.write('file', '12345')
      await files.mkdir('folder')
      const { kind, size, modified = 0 } = (await files.stat('file')) ?? {}
      assert.deepEqual([kind, size], ['file', 5])
      // Another machine may have another clock.
      assert.ok(Math.abs(modified - start) < 24 * 60 * 60 * 1000)
      assert.equal((await files.stat('folder'))?.kind, 'directory')
      assert.equal((await files.stat('.'))?.kind, 'directory')
      assert.equal(await files.stat('nothing'), null)
      assert.equal(await files.stat('nothing/in/nothing'), null)
      assert.equal(await files.stat('file/inside'), null)
    },

    async 'list gives names and kinds in order, links not followed'(sandbox) {
      await output(sandbox, 'mkdir b; echo > a; echo > .hidden; ln -s a c; echo > b/inner')
      assert.deepEqual(await sandbox.files.list('.'), [
        { name: '.hidden', kind: 'file' },
        { name: 'a', kind: 'file' },
        { name: 'b', kind: 'directory' },
        { name: 'c', kind: 'symlink' },
      ])
      assert.deepEqual(await sandbox.files.list('b'), [{ name: 'inner', kind: 'file' }])
    },

    async 'mkdir makes parents, and does not mind what is there'({ files }) {
      await files.mkdir('a/b/c')
      await files.mkdir('a/b')
      assert.deepEqual(await files.list('a'), [{ name: 'b', kind: 'directory' }])
      await files.write('file', '')
      await refused(files.mkdir('file'), 'path-kind')
    },

    async 'remove takes a file, a link or an empty folder, and all of a folder when told to'(sandbox) {
      const { files } = sandbox
      await output(sandbox, 'mkdir -p full/inner empty; echo > full/inner/x; echo > file; ln -s full link')
      await files.remove('file')
      await files.remove('link')
      await files.remove('empty')
      assert.deepEqual(await files.list('.'), [{ name: 'full', kind: 'directory' }])
      await refused(files.remove('full'), 'path-kind')
      await files.remove('full', { recursive: true })
      assert.deepEqual(await files.list('.'), [])
      await refused(files.remove('file'), 'path-missing')
      await refused(files.remove('.', { recursive: true }), 'path-kind')
    },

    async 'rename moves files and folders, and replaces a file'({ files }) {
      await files.write('a/one', '1')
      await files.write('two', '2')
      await files.rename('a/one', 'two')
      assert.equal(textOf(await files.read('two')), '1')
      await files.rename('a', 'x/y/z')
      assert.equal((await files.stat('x/y/z'))?.kind, 'directory')
      const error = await refused(files.rename('nothing', 'x/new'), 'path-missing')
      assert.match(error.message, /nothing/)
    },

    async 'what is missing, or is something else, is said by path'({ files }) {
      await files.write('file', '')
      await files.mkdir('folder')
      const missing = await refused(files.read('no/such'), 'path-missing')
      assert.match(missing.message, /no\/such/)
      await refused(files.list('no-folder'), 'path-missing')
      await refused(files.read('folder'), 'path-kind')
      await refused(files.write('folder', ''), 'path-kind')
      await refused(files.list('file'), 'path-kind')
      await refused(files.write('file/inside', ''), 'path-kind')
    },

    async 'reading a pipe is refused and does not wait for a writer'(sandbox) {
      await output(sandbox, 'mkfifo pipe')
      await refused(sandbox.files.read('pipe'), 'path-kind')
    },

    async 'names with spaces, quotes, line feeds and other scripts are names like any other'(sandbox) {
      const names = [' a b ', `it's "x"`, 'new\nline', '$HOME', '日本', '-rf', '*', '字'.repeat(80)]
      for (const name of names) await sandbox.files.write(`odd/${name}`, name)
      const listed = (await sandbox.files.list('odd')).map(entry => entry.name)
      assert.deepEqual(listed, [...names].sort())
      for (const name of names) assert.equal(textOf(await sandbox.files.read(`odd/${name}`)), name)
      for (const name of names) await sandbox.files.remove(`odd/${name}`)
      assert.deepEqual(await sandbox.files.list('odd'), [])
    },
  }
}
