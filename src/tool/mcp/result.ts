import { isBase64 } from '../../base/base64.ts'
import { isPlainObject, type Json, type Problem } from '../../base/json.ts'
import { type Part, textOf } from '../../session/part.ts'
import type { Validate } from '../json-schema.ts'
import type { ToolContent } from '../spec.ts'
import { resultError, ToolError } from '../tool-error.ts'

/** What an MCP server answered, as a tool's result. Throws a `ToolError` when it says that it failed, or breaks its promise. */
export function readResult(answer: unknown, tool: string, output: Validate | undefined): ToolContent | Json {
  if (!isPlainObject(answer)) throw broken(tool, [{ path: 'result', message: 'is not an object' }])
  const blocks = Array.isArray(answer.content) ? answer.content : []
  const content = blocks.flatMap(block => partsOf(block))
  if (answer.isError === true) {
    const text = textOf(content) || 'the server gave no reason'
    throw new ToolError('threw', text, { detail: { isError: true } })
  }
  const structured = answer.structuredContent as Json | undefined
  if (output) {
    const problems =
      structured === undefined
        ? [{ path: 'structuredContent', message: 'is missing, though the tool declares an output schema' }]
        : output(structured, 'structuredContent')
    if (problems.length > 0) throw broken(tool, problems)
  }
  if (content.length === 0) return structured ?? null
  return structured === undefined ? { content } : { content, value: structured }
}

function broken(tool: string, problems: readonly Problem[]): ToolError {
  return resultError(tool, 'the MCP server answered something other than it declares', problems)
}

/** The kinds of content that MCP has. One that is not known, or not whole, becomes text: nothing is lost silently. */
function partsOf(block: unknown): Part[] {
  if (!isPlainObject(block)) return [text(JSON.stringify(block) ?? 'null')]
  const { type, data, mimeType } = block
  if (type === 'text' && typeof block.text === 'string') return block.text === '' ? [] : [text(block.text)]
  if (type === 'image' || type === 'audio') return [media(data, mimeType, `${type}`)]
  if (type === 'resource_link') return [text(link(block))]
  if (type === 'resource' && isPlainObject(block.resource)) return resource(block.resource)
  return [text(JSON.stringify(block))]
}

function resource({ uri, mimeType, text: said, blob }: Record<string, unknown>): Part[] {
  const name = typeof uri === 'string' && uri !== '' ? uri : 'resource'
  if (typeof said === 'string') return [text(`[${name}]\n${said}`)]
  return [text(`[${name}]`), media(blob, mimeType, name)]
}

function media(data: unknown, mimeType: unknown, name: string): Part {
  const mediaType = typeof mimeType === 'string' && mimeType !== '' ? mimeType : 'application/octet-stream'
  if (typeof data !== 'string' || !isBase64(data)) return text(`[${name} left out: its data is not base64]`)
  return mediaType.startsWith('image/')
    ? { type: 'image', mediaType, data }
    : { type: 'file', mediaType, data, name }
}

function link({ uri, name, description, mimeType }: Record<string, unknown>): string {
  const known = [name, mimeType, description].filter(part => typeof part === 'string' && part !== '')
  return `[resource ${String(uri)}${known.length > 0 ? `: ${known.join(', ')}` : ''}]`
}

function text(said: string): Part {
  return { type: 'text', text: said }
}
