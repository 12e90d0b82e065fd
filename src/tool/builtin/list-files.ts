import type { Json } from '../../base/json.ts'
import type { FileEntry, SandboxFiles } from '../../sandbox/spec.ts'
import type { Tool } from '../spec.ts'
import { tool } from '../tool.ts'
import { inSandbox } from './readable.ts'
import { allFiles, fileResources } from './resources.ts'

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

/** A tool whose `path` is the workspace when the model gives none. Filled in before the policy looks, so that a rule about paths sees it. */
export function inWorkspaceByDefault(tool: Tool): Tool {
  return Object.freeze({
    ...tool,
    parse: async (args: Json) => ({ path: '.', ...((await tool.parse(args)) as object) }),
  })
}

export const workspacePathExists = tool<{ path: string }>({
  name: 'workspace_path_exists',
  description: 'Tell whether there is a file or a folder at a path of the workspace.',
  input: {
    type: 'object',
    properties: { path: { type: 'string', description: 'Path in the workspace.' } },
    required: ['path'],
    additionalProperties: false,
  },
  effect: 'read',
  // A folder is there once a file was written into it, so it waits for every write.
  resource: ({ path }) => [...new Set([...fileResources(path), allFiles])],
  run: ({ path }, context) =>
    inSandbox(context, async ({ files }) => {
      const found = await files.stat(path)
      return found === null ? { exists: false } : { exists: true, kind: found.kind }
    }),
})

export const searchWorkspace = tool<{
  query: string
  path?: string
  glob?: string
  regex?: boolean
  limit?: number
}>({
  name: 'search_workspace',
  description:
    'Find lines in the text files of the workspace. Upper and lower case differ. Leaves out .git and node_modules unless `path` is in them.',
  input: {
    type: 'object',
    properties: {
      query: { type: 'string', minLength: 1, description: 'Text to find in a line.' },
      path: { type: 'string', description: 'Folder or file to search; the workspace by default.' },
      glob: { type: 'string', minLength: 1, description: 'Only files like this: *.ts, src/**/*.test.ts' },
      regex: { type: 'boolean', description: 'query is a JavaScript regular expression; false by default.' },
      limit: { type: 'integer', minimum: 1, maximum: 1000, description: 'Matches at most; 100 by default.' },
    },
    required: ['query'],
    additionalProperties: false,
  },
  effect: 'read',
  resource: () => allFiles,
  run: ({ query, ...rest }, context) =>
    inSandbox(context, async ({ files }) => {
      const { signal } = context
      const { matches, truncated, skipped } = await files.search({ text: query, ...rest, signal })
      return {
        matches: matches.map(({ path, line = 0, text = '' }) => ({ path, line, text })),
        ...(truncated && { truncated }),
        ...(skipped > 0 && { skipped }),
      }
    }),
})
