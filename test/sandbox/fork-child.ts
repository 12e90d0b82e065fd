// Makes two branches in the folder that is named, says so, and does as it is told: `wait` to be killed, or `exit` without closing.
import { appendFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ForkedFolders, forkMethods } from '../../src/sandbox/workspace/fork/forked-folders.ts'

const [root = '', name = '', then = ''] = process.argv.slice(2)
const folders = await ForkedFolders.open(root, {
  methods: forkMethods.filter(method => method.name === name),
})
const base = { tree: 't', fill: (folder: string) => writeFile(join(folder, 'file'), 'base') }
const [one, two] = await Promise.all([folders.fork(base), folders.fork(base)])
await appendFile(join(one.host.path, 'file'), ' and one')
await writeFile(join(two.host.path, 'big'), new Uint8Array(500_000))
const holder = /^\/proc\/(\d+)\//.exec(one.host.path)?.[1]
process.stdout.write(`${JSON.stringify({ holder: holder && Number(holder) })}\n`)
if (then === 'wait') setInterval(() => {}, 1000)
