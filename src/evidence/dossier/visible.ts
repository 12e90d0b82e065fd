/**
 * Text in which nothing hides and nothing acts: control characters, terminal codes, marks that turn the direction of writing and invisible
 * letters are shown as signs. Line ends and tabs stay, and the joiners that scripts and emoji need.
 */
export function visible(text: string): string {
  return text.toWellFormed().replaceAll('\r\n', '\n').replace(hidden, signOf)
}

/** The same on one line. */
export function visibleLine(text: string): string {
  return visible(text).replaceAll('\n', '␊').replaceAll('\t', ' ')
}

const hidden = /(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

function signOf(character: string): string {
  const code = character.codePointAt(0) as number
  if (code < 0x20) return String.fromCodePoint(0x2400 + code)
  if (code === 0x7f) return '␡'
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, '0')}⟩`
}
