import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Sandbox } from '../../sandbox/spec.ts'
import { ObjectStore } from '../../sandbox/workspace/objects.ts'
import { KnownContent, RemoteWorkspace } from '../../sandbox/workspace/remote.ts'
import { output, type SandboxCases, textOf } from './case.ts'

/** What fork, merge, rewind and resume need of a sandbox: its files become a tree, and a tree becomes its files, by commands alone. */
export function workspaceCases(): SandboxCases {
  return {
    'its files are kept as a tree and come back from it, whatever became of them': sandbox =>
      withWorkspace(sandbox, async workspace => {
        const { files } = sandbox
        await files.write('src/main.ts', 'one\n')
        await files.write(
          'src/deep/er/data.bin',
          Uint8Array.from({ length: 3000 }, (_, i) => i % 256),
        )
        await files.write('run.sh', '#!/bin/sh\n', { mode: 0o755 })
        await files.write('empty file', '')
        await output(sandbox, 'mkdir empty-folder; ln -s src/main.ts link; chmod 700 src/deep')
        const { tree } = await workspace.snapshot()
        const before = await listing(sandbox)
        await output(
          sandbox,
          'rm -rf src/deep link; echo two > src/main.ts; mkdir link; echo x > link/x; chmod 600 run.sh',
        )
        await files.write('new', 'new')
        assert.notEqual((await workspace.snapshot()).tree, tree)
        const report = await workspace.restore(tree)
        assert.deepEqual([report.tree, report.notRestored], [tree, []])
        assert.equal(await listing(sandbox), before)
        assert.equal(textOf(await files.read('link')), 'one\n')
        assert.equal((await files.read('src/deep/er/data.bin')).length, 3000)
      }),

    'a tree says what is in the files and not when they were written': sandbox =>
      withWorkspace(sandbox, async workspace => {
        await sandbox.files.write('a', 'same')
        const { tree } = await workspace.snapshot()
        await output(sandbox, 'cp a b; rm a; mv b a')
        assert.equal((await workspace.snapshot()).tree, tree)
        await sandbox.files.write('a', 'diff')
        assert.notEqual((await workspace.snapshot()).tree, tree)
      }),

    'names with spaces, quotes, line feeds and other scripts are kept and restored': sandbox =>
      withWorkspace(sandbox, async workspace => {
        const names = ['with space', "quo'te", 'line\nfeed', 'größe 🎈', '-dash', '$(x)', 'back\\slash']
        for (const name of names) await sandbox.files.write(name, name)
        const { tree } = await workspace.snapshot()
        await output(sandbox, 'rm -rf ./*')
        assert.equal((await workspace.restore(tree)).tree, tree)
        for (const name of names) assert.equal(textOf(await sandbox.files.read(name)), name)
      }),
  }
}

async function withWorkspace(
  sandbox: Sandbox,
  work: (workspace: RemoteWorkspace) => Promise<void>,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'openrath-conformance-'))
  const objects = await ObjectStore.open(folder)
  try {
    await work(new RemoteWorkspace(sandbox, objects, new KnownContent()))
  } finally {
    objects.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Every entry with its kind and mode. */
async function listing(sandbox: Sandbox): Promise<string> {
  const found = await output(
    sandbox,
    "find . -mindepth 1 -path ./.openrath -prune -o -exec stat -c '%a %F %n' {} +",
  )
  return found
    .split('\n')
    .filter(line => !line.endsWith(' .') && line !== '')
    .sort()
    .join('\n')
}
