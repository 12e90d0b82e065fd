import snowball from 'snowball-stemmers'

/** Written into every index. An index made by another version is made anew. */
export const tokenizerVersion = 1

export interface Words {
  /** What an index keeps, in the order of the text; what stands there twice is here twice. */
  readonly terms: readonly string[]
  /** The words alone, for whoever looks at neighbours: no characters of scripts without spaces, no whole identifiers. */
  readonly sequence: readonly string[]
}

/**
 * The words of a text as memory searches for them, the same for an entry and for a question: no case, width or accents, no stop words,
 * English and Russian by their stems. Scripts without spaces give every character and every pair of neighbours; identifiers, versions and
 * addresses themselves and their parts.
 */
export function wordsOf(text: string): Words {
  const terms: string[] = []
  const sequence: string[] = []
  for (const [run] of oneForm(text).matchAll(runs)) {
    if (plain.test(run)) addWord(run.toLowerCase(), terms, sequence)
    else addCompound(run, terms, sequence)
  }
  return { terms, sequence }
}

const runs = /[\p{L}\p{N}\p{M}_]+(?:[@.'’:/+-]+[\p{L}\p{N}\p{M}_]+)*/gu
const plain = /^(?:[A-Z]?[a-z]+|[A-Z]+)$/
/** Scripts that are written without spaces, and Hangul, whose words carry their particles with them. */
export const unspaced =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}ー々〆]+/gu
// These are asked of texts that anybody wrote, so nothing in them can be divided in two ways: that would take the square of the length.
const email = /^[^\s@/:]+@(?=[^\s@/:]+\.)[^\s@/:]+$/
const version = /^v?(\d+(?:\.\d+)+(?:[-+][a-z\d.]+)?)$/i
const camel = /\p{Ll}\p{Lu}|\p{Lu}\p{Lu}\p{Ll}/u
/** Between the parts of `parseHttpHeader2`: before a capital that begins a word, and between letters and digits. */
const humps = /(?<=\p{Ll})(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})|(?<=\p{L})(?=\p{N})|(?<=\p{N})(?=\p{L})/u
const longestWord = 64

/** One form for what people take for the same letters. Case is kept, because it divides identifiers. */
export function oneForm(text: string): string {
  if (ascii.test(text)) return text
  return text
    .normalize('NFKD')
    .replace(/[\u0300-\u036f]/g, '')
    .normalize('NFC')
    .replaceAll('ß', 'ss')
}
const ascii = /^[\x20-\x7e\s]*$/

/** Anything but a word by itself: it may hold several scripts, an address, an identifier, or words joined by marks. */
function addCompound(run: string, terms: string[], sequence: string[]): void {
  const whole = run.toLowerCase()
  const numbered = version.exec(run)
  if (numbered) {
    // `v1.3` and `1.3` are one version, and neither is `1.2`.
    terms.push(clip((numbered[1] as string).toLowerCase()))
    return
  }
  if (email.test(run)) terms.push(clip(whole))
  for (const piece of run.split(/[@:/+-]+/)) {
    if (piece !== '') addPiece(piece, terms, sequence)
  }
}

function addPiece(piece: string, terms: string[], sequence: string[]): void {
  if (piece.includes('.')) {
    const numbered = version.exec(piece)
    if (numbered) {
      terms.push(clip((numbered[1] as string).toLowerCase()))
      return
    }
    if (fileName.test(piece)) terms.push(clip(piece.toLowerCase()))
  }
  for (const part of piece.split('.')) {
    const name = part.replace(contraction, '')
    if (identifier.test(name) && (name.includes('_') || camel.test(name))) {
      const parts = name.split('_').flatMap(word => word.split(humps))
      terms.push(clip(name.toLowerCase()))
      if (parts.length > 1) for (const word of parts) addScripts(word, terms, sequence)
    } else addScripts(name, terms, sequence)
  }
}
const fileName = /^[\w-]+(?:\.[\d_-]*[a-z][\w-]*)+$/i
const identifier = /^\w+$/
const contraction = /['’](?:s|m|re|ve|ll|d|t)$/i

function addScripts(word: string, terms: string[], sequence: string[]): void {
  let from = 0
  for (const { 0: found, index } of word.matchAll(unspaced)) {
    if (index > from) addWords(word.slice(from, index), terms, sequence)
    addCharacters(found, terms)
    from = index + found.length
  }
  if (from < word.length) addWords(from === 0 ? word : word.slice(from), terms, sequence)
}

function addWords(text: string, terms: string[], sequence: string[]): void {
  for (const word of text.toLowerCase().split(/['’_]+/)) if (word !== '') addWord(word, terms, sequence)
}

function addCharacters(text: string, terms: string[]): void {
  let previous = ''
  for (const character of text) {
    terms.push(character)
    if (previous !== '') terms.push(previous + character)
    previous = character
  }
}

function addWord(word: string, terms: string[], sequence: string[]): void {
  const term = termOf(word)
  if (term === '') return
  terms.push(term)
  sequence.push(term)
}

/** Words met lately and their terms: a language has few, and stemming one takes a hundred times as long as finding it here. */
const known = new Map<string, string>()
const mostKnown = 100_000
const english = snowball.newStemmer('english')
const russian = snowball.newStemmer('russian')

function termOf(word: string): string {
  let term = known.get(word)
  if (term !== undefined) return term
  if (stopWords.has(word)) term = ''
  else if (/^[a-z]{3,}$/.test(word) && word.length <= longestWord)
    term = english.stem(irregular.get(word) ?? word)
  else if (/^[а-яё]{4,}$/.test(word)) term = russian.stem(word)
  else term = clip(word)
  if (known.size >= mostKnown) known.clear()
  known.set(word, term)
  return term
}

/** What is longer is no word but a key or a digest, and its beginning tells it apart. */
function clip(word: string): string {
  return word.length > longestWord ? [...word.slice(0, 2 * longestWord)].slice(0, longestWord).join('') : word
}

/** English forms that no rule leads back to their word, each list led by the word itself. */
const forms = `
be am is are was were been being|become became|begin began begun|bite bit bitten|blow blew blown|break broke broken
bring brought|build built|burn burnt|buy bought|catch caught|choose chose chosen|come came|cost costs|deal dealt
dig dug|do did done does|draw drew drawn|dream dreamt|drink drank drunk|drive drove driven|eat ate eaten|fall fell fallen
feed fed|feel felt|fight fought|find found|fly flew flown|forget forgot forgotten|forgive forgave forgiven|freeze froze frozen
get got gotten|give gave given|go went gone|grow grew grown|hang hung|have had has|hear heard|hide hid hidden|hold held
keep kept|know knew known|lay laid|lead led|learn learnt|leave left|lend lent|lie lain|light lit|lose lost|make made
mean meant|meet met|pay paid|ride rode ridden|ring rang rung|rise rose risen|run ran|say said|see saw seen|seek sought
sell sold|send sent|shake shook shaken|shine shone|shoot shot|show shown|shrink shrank shrunk|sing sang sung|sink sank sunk
sit sat|sleep slept|slide slid|speak spoke spoken|spend spent|spin spun|spring sprang sprung|stand stood|steal stole stolen
stick stuck|strike struck|swear swore sworn|sweep swept|swim swam swum|swing swung|take took taken|teach taught|tear tore torn
tell told|think thought|throw threw thrown|understand understood|wake woke woken|wear wore worn|weep wept|win won
wind wound|write wrote written|withdraw withdrew withdrawn|foresee foresaw foreseen|overcome overcame|undergo underwent undergone
child children|man men|woman women|person people|foot feet|tooth teeth|mouse mice|goose geese|life lives|wife wives|knife knives
leaf leaves|half halves|shelf shelves|wolf wolves|index indices|criterion criteria|datum data|medium media
good better best|bad worse worst|far further furthest|little less least
`

/** From a form to its word. */
const irregular: ReadonlyMap<string, string> = new Map(
  forms
    .split(/[|\n]/)
    .map(line => line.trim().split(' '))
    .flatMap(([word = '', ...others]) => others.map(other => [other, word] as const)),
)

/** Words that say how something is said, not what: they carry no memory, and every entry has them. */
const stopWords: ReadonlySet<string> = new Set(
  `a an the and or but nor so if then than that this these those there here
  i me my mine myself we us our ours ourselves you your yours yourself he him his himself she her hers herself it its itself
  they them their theirs themselves who whom whose which what when where why how
  am is are was were be been being do does did doing done have has had having will would shall should can could may might must
  ll ve re don didn doesn isn aren wasn weren won wouldn couldn shouldn hasn haven hadn ain
  of at by for with about against between into through during before after above below to from up down in out on off over under
  again further once all any both each few more most other some such no not only own same too very just also now
  as because until while s t d m o y`.split(/\s+/),
)
