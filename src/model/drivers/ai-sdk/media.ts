import { fromBase64 } from '../../../base/base64.ts'
import type { FilePart, ImagePart, Part, TextPart } from '../../../session/part.ts'
import type { Dialect } from './dialect.ts'

/** A text file as its text, where the provider does not take it as a file. */
export function asText(part: ImagePart | FilePart, { textFiles }: Dialect): TextPart | undefined {
  return textFiles?.test(part.mediaType) ? undefined : textIn(part)
}

/**
 * What a tool gave, as the provider takes it. Nobody can take back a result, so what the provider would refuse, or its package leave
 * out, is named instead.
 */
export function inResult(content: readonly Part[], { resultMedia }: Dialect): Part[] {
  return content.map((part, i) => {
    if (part.type === 'text') return part
    const text = textIn(part)
    if (!text && (resultMedia === undefined || resultMedia.test(part.mediaType))) return part
    // Texts of a result are read as one.
    return { type: 'text', text: `${i > 0 ? '\n' : ''}${text ? text.text : unshown(part)}` }
  })
}

function unshown(part: ImagePart | FilePart): string {
  const where = part.url === undefined ? '' : `: ${part.url}`
  return `(${nameOf(part) ?? 'A file'} of type ${part.mediaType}, which cannot be shown to you${where})`
}

function textIn(part: ImagePart | FilePart): TextPart | undefined {
  if (part.data === undefined || !textual.test(part.mediaType)) return undefined
  const text = new TextDecoder().decode(fromBase64(part.data))
  const name = nameOf(part)
  const { extras } = part
  return { type: 'text', text: name ? `${name}:\n${text}` : text, ...(extras && { extras }) }
}

const textual =
  /^text\/|^application\/(json|jsonl|xml|yaml|x-yaml|toml|sql|javascript|typescript)\b|\+(json|xml|yaml)\b/

function nameOf(part: ImagePart | FilePart): string | undefined {
  return part.type === 'file' ? part.name : undefined
}
