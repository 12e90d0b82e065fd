export interface PieceOptions {
  /** Characters of a piece at most. Default 1,200: about 200 words of English. */
  readonly size?: number
  /** Characters that a piece repeats of the one before it. Default 150. */
  readonly overlap?: number
}

/**
 * A text as pieces that can be found one by one. It is divided between paragraphs where it can be, else between sentences, else between
 * words, and each piece repeats the end of the one before, so that a sentence on the border is whole in one of them.
 */
export function piecesOf(text: string, { size = 1_200, overlap = 150 }: PieceOptions = {}): string[] {
  const pieces: string[] = []
  let start = 0
  while (start < text.length) {
    const end = text.length - start <= size ? text.length : borderBefore(text, start, start + size)
    const piece = text.slice(start, end).trim()
    if (piece !== '') pieces.push(piece)
    if (end >= text.length) break
    start = Math.max(start + 1, wordAfter(text, end - overlap, end))
  }
  return pieces
}

/** Best first: an empty line, a line, the end of a sentence, a space. Each only in the last third, so that pieces do not become tiny. */
const borders = [/\n\s*\n/g, /\n/g, /[.!?…]["'”’)\]]*\s|[。！？]/g, /\s/g]

function borderBefore(text: string, start: number, limit: number): number {
  const from = start + Math.floor(((limit - start) * 2) / 3)
  const last = text.slice(from, limit)
  for (const border of borders) {
    let end = -1
    for (const match of last.matchAll(border)) end = match.index + match[0].length
    if (end > 0) return from + end
  }
  return betweenPairs(text, limit)
}

function wordAfter(text: string, from: number, end: number): number {
  const space = text.slice(from, end).search(/\s\S/)
  return space < 0 ? betweenPairs(text, from) : from + space + 1
}

/** Never inside a surrogate pair. */
function betweenPairs(text: string, index: number): number {
  const code = text.charCodeAt(index)
  return code >= 0xdc00 && code <= 0xdfff ? index - 1 : index
}
