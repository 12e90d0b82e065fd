import { tool } from '../tool.ts'
import { inSandbox } from './readable.ts'
import { changedFile } from './resources.ts'

export const writeWorkspaceFile = tool<{ path: string; content: string }>({
  name: 'write_workspace_file',
  description:
    'Write a text file of the workspace, whole. Makes missing folders, and replaces what was there.',
  input: {
    type: 'object',
    properties: {
      path: { type: 'string', description: 'Path in the workspace.' },
      content: { type: 'string', description: 'Everything that the file shall hold.' },
    },
    required: ['path', 'content'],
    additionalProperties: false,
  },
  effect: 'workspace',
  resource: ({ path }) => changedFile(path),
  run: ({ path, content }, context) =>
    inSandbox(context, async ({ files }) => {
      const bytes = new TextEncoder().encode(content)
      const before = await files.stat(path)
      await files.write(path, bytes)
      return { path, bytes: bytes.length, created: before === null }
    }),
})
