import { tool } from '../tool.ts'
import { inSandbox } from './readable.ts'
import { allFiles } from './resources.ts'

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
