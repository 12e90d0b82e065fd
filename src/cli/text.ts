/** Text that is safe on a terminal: what models and tools say may hold escape sequences and characters that reverse the line. */
export function plain(text: string): string {
  return text.replaceAll('\r\n', '\n').replace(/(?![\n\t])[\p{Cc}\p{Cf}]/gu, '\ufffd')
}

/** The same with nothing lost: what acts on a terminal, or cannot be seen on it, is spelt out as `<U+202E>`. For what a person decides about. */
export function visible(text: string): string {
  return text.replace(unseen, character => {
    const code = character.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')
    return `<U+${code}>`
  })
}

/** The same on one line: a question must not pass for two. */
export function oneVisibleLine(text: string): string {
  return visible(text).replaceAll('\n', '<U+000A>')
}

/** Controls, direction marks, fillers, spaces that are no space, halves of characters; everything but space, tab and line break that leaves no ink. Of marks that pile up on a letter, the fourth and later. A text that is spelt like that itself is told apart. */
const unseen =
  /<(?=U\+)|\p{M}(?<=\p{M}{4})|(?![\n\t ])[\p{Cc}\p{Cf}\p{Z}\p{Cs}\p{Co}\p{Cn}\p{Default_Ignorable_Code_Point}\u2800]/gu

/** Whether a text holds anything that acts on a terminal, line breaks included. */
export function hasControls(text: string): boolean {
  return acting.test(text)
}

const acting = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u

/** JSON that is safe on a terminal, and means the same: what would act is escaped. */
export function safeJson(value: unknown, spaces?: number): string | undefined {
  return JSON.stringify(value, null, spaces)?.replace(
    /(?!\n| )[\p{Cc}\p{Cf}\p{Z}\p{Co}\p{Cn}\p{Default_Ignorable_Code_Point}\u2800]/gu,
    escaped,
  )
}

function escaped(character: string): string {
  return [...Array(character.length).keys()]
    .map(i => `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`)
    .join('')
}

/** The same on one line, and not longer than `width`. */
export function oneLine(text: string, width = 100): string {
  const flat = plain(text.slice(0, 4 * width).replace(/\s+/g, ' ')).trim()
  return flat.length > width ? `${flat.slice(0, Math.max(0, width - 1))}…` : flat
}

export function indent(text: string, by = '  '): string {
  return text.replace(/^(?=.)/gm, by)
}

/** How long ago, in the unit that says it best. */
export function ago(at: number, now = Date.now()): string {
  const seconds = Math.max(0, Math.round((now - at) / 1000))
  if (seconds < 60) return `${seconds}s ago`
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m ago`
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)}h ago`
  return `${Math.floor(seconds / 86_400)}d ago`
}

export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  const seconds = ms / 1000
  if (seconds < 60) return `${seconds.toFixed(1)}s`
  return `${Math.floor(seconds / 60)}m ${String(Math.floor(seconds % 60)).padStart(2, '0')}s`
}

export function size(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  let [value, unit] = [bytes, 0]
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000
    unit++
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`
}

/** `1 file`, `2 files`. */
export function count(number: number, thing: string, things = `${thing}s`): string {
  return `${number.toLocaleString('en')} ${number === 1 ? thing : things}`
}
