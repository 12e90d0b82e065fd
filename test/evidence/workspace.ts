import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { changesBetween } from '../../src/sandbox/workspace/changes.ts'
import { mergeTrees } from '../../src/sandbox/workspace/merge.ts'
import { ObjectStore } from '../../src/sandbox/workspace/objects.ts'
import { Workspace } from '../../src/sandbox/workspace/workspace.ts'
import type { SessionFiles } from '../../src/session/files.ts'
import { type Session, withFiles } from '../../src/session/session.ts'

export type Files = Readonly<Record<string, string>>

/** Files under a temporary folder, and sessions whose tool calls change them. */
export class TestFiles implements AsyncDisposable {
  readonly root: string
  readonly objects: ObjectStore
  #calls = 0

  private constructor(root: string, objects: ObjectStore) {
    this.root = root
    this.objects = objects
  }

  static async make(): Promise<TestFiles> {
    const root = await mkdtemp(join(tmpdir(), 'openrath-evidence-'))
    return new TestFiles(root, await ObjectStore.open(join(root, 'objects')))
  }

  /** How sessions whose calls are made here read and join them. */
  readonly port: SessionFiles = {
    changes: (from, to) => changesBetween(this.objects, from, to),
    join: async ({ base, found, sides }) => {
      const [ours, ...theirs] = sides.map(side => side.tree) as [string, ...string[]]
      const joined = await mergeTrees(this.objects, base ?? found ?? ours, ours, theirs, {
        settle: 'markers',
      })
      const conflicts = joined.settled.map(({ path, kind }) => ({ path, kind, settled: 'markers' }))
      return { tree: joined.tree as string, conflicts }
    },
  }

  /** The tree of these files. */
  async tree(files: Files): Promise<string> {
    const folder = await mkdtemp(join(this.root, 'files-'))
    for (const [path, text] of Object.entries(files)) {
      await mkdir(dirname(join(folder, path)), { recursive: true })
      await writeFile(join(folder, path), text)
    }
    const workspace = await Workspace.open(folder, this.objects, { keep: false })
    const { tree } = await workspace.snapshot()
    await rm(folder, { recursive: true })
    return tree
  }

  /** An answer that calls a tool, and its result, which leaves these files. */
  async call(session: Session, before: Files, after: Files, by = 'Coder'): Promise<Session> {
    const [from, to] = [await this.tree(before), await this.tree(after)]
    const id = `call-${++this.#calls}`
    const files = await changesBetween(this.objects, from, to)
    return withFiles(session, this.port).append(
      { kind: 'assistant', toolCalls: [{ id, name: 'edit', args: {} }], by, model: `model-of-${by}` },
      {
        kind: 'tool-result',
        callId: id,
        tool: 'edit',
        outcome: { kind: 'value', value: 'done' },
        before: from,
        tree: to,
        by,
        ...(files.length > 0 && { files }),
      },
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.objects.close()
    await rm(this.root, { recursive: true })
  }
}
