/** Rows under a heading, each column as wide as it needs; the last one takes what is left of the width. */
export function table(
  heading: readonly string[],
  rows: readonly (readonly string[])[],
  width = Number.POSITIVE_INFINITY,
): string {
  const last = heading.length - 1
  const widths = heading.map((title, i) => Math.max(title.length, ...rows.map(row => row[i]?.length ?? 0)))
  const before = widths.slice(0, last).reduce((sum, one) => sum + one + gap.length, 0)
  const room = Math.max(heading[last]?.length ?? 0, width - before)
  return [heading, ...rows]
    .map(row => row.map((cell, i) => (i === last ? cut(cell, room) : cell.padEnd(widths[i] ?? 0))))
    .map(cells => cells.join(gap).trimEnd())
    .join('\n')
}

const gap = '  '

function cut(text: string, room: number): string {
  return text.length > room ? `${text.slice(0, room - 1)}…` : text
}
