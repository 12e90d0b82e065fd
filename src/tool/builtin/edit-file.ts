import { tool } from '../tool.ts'
import { ToolError } from '../tool-error.ts'
import { nearestPlace } from './nearest-place.ts'
import { readText } from './read-file.ts'
import { inSandbox } from './readable.ts'
import { changedFile } from './resources.ts'

export const editWorkspaceFile = tool<{ path: string; old: string; new: string; all?: boolean }>({
  name: 'edit_workspace_file',
  description:
    'Replace a piece of a text file of the workspace. `old` must be in it exactly once, to the last space; give lines around it to make it so, or `all` to replace every one.',
  input: {
    type: 'object',
    properties: {
      path: { type: 'string', description: 'Path in the workspace.' },
      old: { type: 'string', minLength: 1, description: 'The text as it stands in the file.' },
      new: { type: 'string', description: 'What shall stand there instead.' },
      all: { type: 'boolean', description: 'Replace every occurrence; false by default.' },
    },
    required: ['path', 'old', 'new'],
    additionalProperties: false,
  },
  effect: 'workspace',
  resource: ({ path }) => changedFile(path),
  run: ({ path, old, new: replacement, all = false }, context) =>
    inSandbox(context, async sandbox => {
      if (old === replacement) throw new ToolError('invalid-arguments', 'old and new are the same text.')
      const text = await readText(sandbox, path)
      const places = occurrences(text, old)
      const [first] = places
      if (first === undefined) throw notThere(text, old, path)
      if (places.length > 1 && !all) throw ambiguous(text, places, path)
      const pieces = text.split(old)
      await sandbox.files.write(path, pieces.join(replacement))
      return { path, replaced: pieces.length - 1, line: lineAt(text, first) }
    }),
})

function occurrences(text: string, old: string): number[] {
  const places: number[] = []
  for (let at = text.indexOf(old); at >= 0; at = text.indexOf(old, at + old.length)) places.push(at)
  return places
}

function lineAt(text: string, index: number): number {
  let line = 1
  for (let at = text.indexOf('\n'); at >= 0 && at < index; at = text.indexOf('\n', at + 1)) line++
  return line
}

function notThere(text: string, old: string, path: string): ToolError {
  const near = nearestPlace(text, old)
  const hint = near ? `\n${near.why}\n${near.shown}` : ' Read the file and try again.'
  return new ToolError('threw', `The text is not in ${path} as given; nothing was changed.${hint}`)
}

function ambiguous(text: string, places: readonly number[], path: string): ToolError {
  const lines = places.slice(0, 10).map(at => lineAt(text, at))
  const more = places.length > lines.length ? ' …' : ''
  return new ToolError(
    'threw',
    `The text is in ${path} ${places.length} times, at lines ${lines.join(', ')}${more}; nothing was changed. ` +
      'Give more of the lines around the one you mean, or all: true.',
    { detail: { lines } },
  )
}
