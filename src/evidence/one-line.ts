/** One line that is safe on a terminal: what models and tools wrote may hold escape sequences and characters that reverse the text. */
export function oneLine(text: string, most = 200): string {
  const flat = text
    .slice(0, 4 * most)
    .replace(/\s+/g, ' ')
    .replace(/[\p{Cc}\p{Cf}]/gu, '\ufffd')
    .trim()
  return flat.length > most ? `${flat.slice(0, most - 1)}…` : flat
}

/** A line of a file as it stands, safe on a terminal; how it ends is not shown. */
export function codeLine(text: string): string {
  return text
    .replace(/\r$/, '')
    .replaceAll('\t', '  ')
    .replace(/[\p{Cc}\p{Cf}]/gu, '\ufffd')
}
