import { tool } from '../tool.ts'
import { inSandbox } from './readable.ts'
import { allFiles, fileResources } from './resources.ts'

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
