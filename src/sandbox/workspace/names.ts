/**
 * A name of the file system as text. Linux lets a name be any bytes: those that are not UTF-8 become lone surrogates, U+DC80 to U+DCFF, so
 * that every name is a string and none is lost.
 */
export function nameOf(bytes: Buffer): string {
  const text = bytes.toString('utf8')
  if (!text.includes('\uFFFD')) return text
  let name = ''
  for (let start = 0; start < bytes.length; ) {
    const character = characterAt(bytes, start)
    name += character ?? String.fromCharCode(0xdc00 + (bytes[start] as number))
    start += character === undefined ? 1 : Buffer.byteLength(character)
  }
  return name
}

export function bytesOf(name: string): Buffer {
  if (name.isWellFormed()) return Buffer.from(name)
  return Buffer.concat(
    Array.from(name, character => {
      const code = character.charCodeAt(0)
      return character.length === 1 && code >= 0xdc80 && code <= 0xdcff
        ? Buffer.of(code - 0xdc00)
        : Buffer.from(character)
    }),
  )
}

/** What the functions of `node:fs` take for a name in a folder. */
export function pathIn(folder: string, name: string): string | Buffer {
  if (name.isWellFormed()) return `${folder}/${name}`
  return Buffer.concat([Buffer.from(`${folder}/`), bytesOf(name)])
}

/** A key that sorts as the name's bytes do. */
export function byteOrder(name: string): string {
  return beyondAscii.test(name) ? bytesOf(name).toString('latin1') : name
}

/**
 * The name under which git takes an entry. git refuses what some system could mistake for `.git`, and reads the content of some files, so such
 * names get a `%` in front; so do names that have one.
 */
export function storedName(name: string, isLink: boolean): string {
  return isRefused(name, isLink) ? `%${name}` : name
}

export function nameFromStored(stored: string): string {
  return stored.startsWith('%') ? stored.slice(1) : stored
}

function isRefused(name: string, isLink: boolean): boolean {
  const first = name.charCodeAt(0)
  if (first === percent) return true
  // Short names of Windows (`GIT~1`), and its other separator.
  if (name.includes('~') || name.includes('\\')) return true
  if (first !== dot && first < 0x80) return false
  // macOS leaves out some characters when it compares names, all of them beyond ASCII.
  const plain = name.replaceAll(allBeyondAscii, '').toLowerCase()
  return special.test(plain) || (isLink && specialLink.test(plain))
}

const percent = 0x25
const dot = 0x2e
// biome-ignore lint/suspicious/noControlCharactersInRegex: the range of ASCII begins with one.
const beyondAscii = /[^\x00-\x7f]/
// biome-ignore lint/suspicious/noControlCharactersInRegex: the range of ASCII begins with one.
const allBeyondAscii = /[^\x00-\x7f]/g
const special = /^\.git(?:$|[ .:]|modules|attributes)/
const specialLink = /^\.(?:gitignore|mailmap)/

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function characterAt(bytes: Buffer, start: number): string | undefined {
  for (let length = 1; length <= 4 && start + length <= bytes.length; length++) {
    try {
      return strict.decode(bytes.subarray(start, start + length))
    } catch {}
  }
  return undefined
}
