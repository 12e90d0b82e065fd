/** Fields of a chunk that hold JSON of a caller's, a tool's or a provider's own making: names inside mean nothing to us. */
const own = new Set(['args', 'request', 'value', 'detail', 'extras', 'ranOn', 'spec', 'answer', 'data'])

export function isOwn(name: string): boolean {
  return own.has(name)
}

/** An image's or a file's content. The `data` of a note is somebody's own. */
export function isBytes(name: string, holder: object): boolean {
  return name === 'data' && 'mediaType' in holder
}
