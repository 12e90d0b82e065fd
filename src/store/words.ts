/** Scripts written without spaces: every character is a word, and so is every pair of neighbours. */
const unspaced =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u
const run = /[\p{L}\p{N}\p{M}]+/gu
const longestWord = 64

/** The words of a text as the index keeps them, separated by spaces. */
export function indexWords(text: string): string {
  return [...new Set(words(text, true))].join(' ')
}

/** The words that a chunk must have all of to match a query. */
export function queryWords(query: string): string[] {
  return [...new Set(words(query, false))]
}

function* words(text: string, everyCharacter: boolean): Generator<string> {
  for (const [found] of oneForm(text).matchAll(run)) {
    if (unspaced.test(found)) yield* pairs(found, everyCharacter)
    // What is longer is no word but a key or a digest, and its beginning tells it apart.
    else yield found.length > longestWord ? [...found].slice(0, longestWord).join('') : found
  }
}

/** One form for what people take for the same letters: case, width, and the accents of European scripts are set aside. */
function oneForm(text: string): string {
  return text
    .normalize('NFKD')
    .replace(/[\u0300-\u036f]/g, '')
    .normalize('NFC')
    .toLowerCase()
}

/** `机器学习` is indexed as its characters and `机器 器学 学习`, and asked for by the pairs alone. */
function* pairs(found: string, everyCharacter: boolean): Generator<string> {
  const characters = [...found]
  if (everyCharacter || characters.length === 1) yield* characters
  for (let i = 0; i + 1 < characters.length; i++) yield `${characters[i]}${characters[i + 1]}`
}

/** Text around the first of the words, on one line. */
export function snippetOf(text: string, wanted: readonly string[], width = 160): string {
  const flat = text.replace(/\s+/g, ' ')
  const first = firstPlace(flat, wanted) ?? 0
  const start = Math.max(0, first - width / 4)
  const end = Math.min(flat.length, start + width)
  return `${start > 0 ? '…' : ''}${flat.slice(start, end)}${end < flat.length ? '…' : ''}`.toWellFormed()
}

/** Where the first of the words begins; close to it where folding changes a text's length. */
export function firstPlace(text: string, wanted: readonly string[]): number | undefined {
  const folded = oneForm(text)
  const places = wanted.map(word => folded.indexOf(word)).filter(place => place >= 0)
  return places.length > 0 ? Math.min(...places) : undefined
}
