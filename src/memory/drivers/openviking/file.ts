import { isPlainObject } from '../../../base/json.ts'
import type { Memory } from '../../spec.ts'
import { uriOf } from '../../uri.ts'
import type { Place } from './places.ts'

const start = '\n<!-- openrath '
const end = ' -->\n'

/** A file: the text, for the server to read and embed, and behind it what else is known, as a comment of Markdown. */
export function toFile(entry: Memory): string {
  const { id: _, uri: _uri, scope: _scope, category: _category, text, ...rest } = entry
  // The comment ends at the first `-->`, which must not be one of ours.
  const known = JSON.stringify(rest).replaceAll('>', '\\u003e')
  return `${text}${start}${known}${end}`
}

/** An entry of its file; of one that others wrote, what there is. */
export function fromFile(content: string, place: Place, modified: number): Memory {
  const { scope, category, id, own } = place
  const fixed = { id, uri: uriOf(scope, category, id), scope, category }
  const at = own ? content.lastIndexOf(start) : -1
  const known = at < 0 ? undefined : comment(content.slice(at + start.length))
  if (known) return { ...fixed, text: content.slice(0, at), ...known }
  const resource = scope.startsWith('resource/') ? scope.slice('resource/'.length) : undefined
  return {
    ...fixed,
    text: content,
    tags: [],
    metadata: {},
    at: modified,
    written: modified,
    source: resource === undefined ? {} : { resource },
    standing: 'adopted',
    version: 1,
  }
}

type Rest = Omit<Memory, 'id' | 'uri' | 'scope' | 'category' | 'text'>

function comment(text: string): Rest | undefined {
  try {
    const value: unknown = JSON.parse(text.slice(0, text.indexOf('-->')))
    return isPlainObject(value) ? (value as unknown as Rest) : undefined
  } catch {
    return undefined
  }
}
