import type { FileStat, Sandbox } from '../../sandbox/spec.ts'
import type { ToolContent } from '../spec.ts'
import { tool } from '../tool.ts'
import { ToolError } from '../tool-error.ts'
import { inSandbox } from './readable.ts'
import { fileResources } from './resources.ts'

/** Larger files are not loaded to show a part of them. */
const largest = 50 * 1024 * 1024
/** Larger images are refused by every provider. */
const largestImage = 10 * 1024 * 1024
/** Characters that one call returns. */
const most = 1024 * 1024

export const readWorkspaceFile = tool<{ path: string; from?: number; to?: number }>({
  name: 'read_workspace_file',
  description: 'Read a text file or an image of the workspace. For a part of a text, give the lines.',
  input: {
    type: 'object',
    properties: {
      path: { type: 'string', description: 'Path in the workspace.' },
      from: { type: 'integer', minimum: 1, description: 'First line, counted from 1.' },
      to: { type: 'integer', minimum: 1, description: 'Last line, included.' },
    },
    required: ['path'],
    additionalProperties: false,
  },
  effect: 'read',
  resource: ({ path }) => fileResources(path),
  run: ({ path, from, to }, context) =>
    inSandbox(context, async sandbox => {
      const found = await sandbox.files.stat(path)
      if (found !== null && found.size > largest) throw tooLarge(path, found)
      const bytes = await sandbox.files.read(path)
      const mediaType = imageType(bytes)
      if (mediaType !== undefined) return image(path, bytes, mediaType)
      return part(textOf(bytes, path), path, from, to)
    }),
})

function image(path: string, data: Uint8Array, mediaType: string): ToolContent {
  if (data.length > largestImage) {
    throw new ToolError(
      'threw',
      `${path} is an image of ${data.length} bytes, too large to look at; make a smaller copy.`,
    )
  }
  return {
    content: [{ type: 'image', mediaType, data }],
    value: { path, mediaType, bytes: data.length },
  }
}

function part(text: string, path: string, from: number | undefined, to: number | undefined): string {
  const isWhole = from === undefined && to === undefined
  const [start, end] = isWhole ? [0, text.length] : linesOf(text, path, from ?? 1, to ?? Infinity)
  if (end - start <= most) return text.slice(start, end)
  throw new ToolError(
    'threw',
    `That is ${end - start} characters, and ${most} can be read at once; ${path} has ${count(text)} lines: give from and to, or search in it.`,
  )
}

/** Where the first line begins and the last one ends, its line feed included. */
function linesOf(text: string, path: string, from: number, to: number): [number, number] {
  if (to < from) throw new ToolError('invalid-arguments', `to (${to}) is before from (${from}).`)
  let start = 0
  for (let line = 1; line < from; line++) {
    const feed = text.indexOf('\n', start)
    if (feed < 0 || feed + 1 === text.length) {
      throw new ToolError('invalid-arguments', `${path} has ${line} lines; there is no line ${from}.`)
    }
    start = feed + 1
  }
  let end = start
  for (let line = from; line <= to && end < text.length; line++) {
    const feed = text.indexOf('\n', end)
    end = feed < 0 ? text.length : feed + 1
  }
  return [start, end]
}

function count(text: string): number {
  return text.split('\n').length - (text.endsWith('\n') ? 1 : 0)
}

function tooLarge(path: string, { size }: FileStat): ToolError {
  return new ToolError(
    'threw',
    `${path} has ${size} bytes, too many to read; look at a part of it with a command such as head, tail, sed -n or grep.`,
  )
}

/** The text of a file, for a tool that changes it. */
export async function readText(sandbox: Sandbox, path: string): Promise<string> {
  const found = await sandbox.files.stat(path)
  if (found !== null && found.size > largest) throw tooLarge(path, found)
  return textOf(await sandbox.files.read(path), path)
}

/**
 * The text in a file's bytes, every character kept, a NUL among them too. What is not UTF-8 text is refused with another way to look at it. So is
 * what is full of NULs: UTF-16 and many binary formats happen to be valid UTF-8.
 */
function textOf(bytes: Uint8Array, path: string): string {
  const nuls = countNuls(bytes)
  if (nuls * 10 > bytes.length) throw notText(path, bytes, `${nuls} of them NUL, as in UTF-16 or binary data`)
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw notText(path, bytes, 'not UTF-8')
  }
}

function countNuls(bytes: Uint8Array): number {
  let count = 0
  for (let at = bytes.indexOf(0); at >= 0; at = bytes.indexOf(0, at + 1)) count++
  return count
}

function notText(path: string, { length }: Uint8Array, why: string): ToolError {
  return new ToolError(
    'threw',
    `${path} is not a text file (${length} bytes, ${why}). Look at it with a command such as file, xxd or strings, or convert it.`,
  )
}

const signatures: readonly (readonly [mediaType: string, at: number, bytes: string])[] = [
  ['image/png', 0, '\x89PNG\r\n\x1a\n'],
  ['image/jpeg', 0, '\xff\xd8\xff'],
  ['image/gif', 0, 'GIF87a'],
  ['image/gif', 0, 'GIF89a'],
  ['image/webp', 8, 'WEBP'],
]

/** The media type of an image that models can look at, by how it begins and not by its name. */
function imageType(bytes: Uint8Array): string | undefined {
  const beginning = String.fromCharCode(...bytes.subarray(0, 16))
  const found = signatures.find(([, at, expected]) => beginning.startsWith(expected, at))
  return found?.[0] === 'image/webp' && !beginning.startsWith('RIFF') ? undefined : found?.[0]
}
