/**
 * Text in which nothing hides and nothing acts: control characters, terminal codes, marks that turn the direction of writing and invisible
 * letters are shown as signs. Line ends and tabs stay, and the joiners that scripts and emoji need.
 */
export function visible(text: string): string {
  return text.toWellFormed().replaceAll('\r\n', '\n').replace(hidden, signOf)
}

/** The same on one line. */
export function visibleLine(text: string): string {
  return visible(text).replaceAll('\n', ' ↵ ').replaceAll('\t', ' ')
}

const hidden = /(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/** Of the first 32 characters, as ASCII calls them: few fonts have pictures of them. */
const names =
  'NUL SOH STX ETX EOT ENQ ACK BEL BS TAB LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US'.split(
    ' ',
  )

function signOf(character: string): string {
  const code = character.codePointAt(0) as number
  if (code < 0x20) return `⟨${names[code]}⟩`
  if (code === 0x7f) return '⟨DEL⟩'
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, '0')}⟩`
}
