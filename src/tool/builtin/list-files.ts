import type { FileEntry, SandboxFiles } from '../../sandbox/spec.ts'
import { tool } from '../tool.ts'
import { inSandbox } from './readable.ts'
import { allFiles } from './resources.ts'

/** Entries of one list. */
const most = 1000
/** Shown, and not looked into: full of files that nobody asks for. */
const closed = new Set(['.git', 'node_modules'])

export const listWorkspaceFiles = tool<{ path?: string; depth?: number }>({
  name: 'list_workspace_files',
  description:
    'List the files and folders of the workspace; folders end with a slash. What is in .git and node_modules is listed only when you ask for that folder.',
  input: {
    type: 'object',
    properties: {
      path: { type: 'string', description: 'Folder to list; the workspace by default.' },
      depth: { type: 'integer', minimum: 1, maximum: 20, description: 'How many levels down; 1 by default.' },
    },
    additionalProperties: false,
  },
  effect: 'read',
  resource: () => allFiles,
  run: ({ path = '.', depth = 1 }, context) =>
    inSandbox(context, async ({ files }) => {
      const entries: string[] = []
      const { signal } = context
      const isWhole = await collect(files, path, '', depth, entries, signal)
      return isWhole ? { path, entries } : { path, entries, truncated: true }
    }),
})

/** False when there is more than fits. */
async function collect(
  files: SandboxFiles,
  folder: string,
  prefix: string,
  depth: number,
  entries: string[],
  signal: AbortSignal,
): Promise<boolean> {
  for (const { name, kind } of await read(files, folder, prefix === '')) {
    if (entries.length >= most || signal.aborted) return false
    const path = prefix + name
    entries.push(kind === 'directory' ? `${path}/` : path)
    const isOpen = kind === 'directory' && depth > 1 && !closed.has(name)
    if (isOpen && !(await collect(files, `${folder}/${name}`, `${path}/`, depth - 1, entries, signal))) {
      return false
    }
  }
  return true
}

/** A folder further down that cannot be read is empty to whoever lists; the one asked for is not. */
async function read(files: SandboxFiles, folder: string, isAsked: boolean): Promise<readonly FileEntry[]> {
  try {
    return await files.list(folder)
  } catch (error) {
    if (isAsked) throw error
    return []
  }
}
