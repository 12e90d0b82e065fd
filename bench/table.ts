import type { Figure, Line, Spread, Target } from './harness.ts'

const headings = ['what', 'ours', 'baseline', 'ratio (quartiles)', 'target', ''] as const

/** The lines as a table that reads well in a terminal and is Markdown too. */
export function printTable(lines: readonly Line[]): string {
  const rows = [headings, ...lines.map(cells)]
  const widths = headings.map((_, column) => Math.max(...rows.map(row => row[column]?.length ?? 0), 3))
  const print = (row: readonly string[]) =>
    `| ${row.map((cell, column) => cell.padEnd(widths[column] as number)).join(' | ')} |`
  const rule = `|${widths.map(width => '-'.repeat(width + 2)).join('|')}|`
  return [print(headings), rule, ...lines.map(line => print(cells(line)))].join('\n')
}

/** One sentence on the targets. */
export function printVerdict(lines: readonly Line[]): string {
  const judged = lines.filter(line => line.met !== undefined)
  const missed = judged.filter(line => !line.met)
  if (judged.length === 0) return 'No line here has a target.'
  if (missed.length === 0) return `All ${judged.length} targets met.`
  return `MISSED ${missed.length} of ${judged.length} targets: ${missed.map(line => line.what).join('; ')}.`
}

function cells({ what, ours, baseline, ratio, target, met }: Line): string[] {
  return [
    what,
    printFigure(ours),
    baseline ? printFigure(baseline) : '',
    ratio ? printRatio(ratio) : '',
    target ? printTarget(target, ours) : '',
    met === undefined ? '' : met ? 'met' : 'MISSED',
  ]
}

function printFigure({ value, unit, name }: Figure): string {
  const text = printValue(value, unit)
  return name ? `${text} (${name})` : text
}

function printValue(value: number, unit: Figure['unit']): string {
  if (unit === 'exponent') return `n^${value.toFixed(2)}`
  if (unit === 'bytes') return value < 1e6 ? `${round(value)} B` : `${round(value / 1e6)} MB`
  if (unit === 'percent') return `${value.toFixed(1)} %`
  if (unit === 'share') return value.toFixed(3)
  if (value < 1e3) return `${round(value)} ns`
  if (value < 1e6) return `${round(value / 1e3)} µs`
  if (value < 1e9) return `${round(value / 1e6)} ms`
  return `${round(value / 1e9)} s`
}

function printRatio({ median, low, high }: Spread): string {
  return `${round(median)}x (${round(low)}–${round(high)})`
}

function printTarget({ of, limit, inclusive, least }: Target, { unit }: Figure): string {
  const sign = least ? '≥' : inclusive ? '≤' : '<'
  if (of === 'ratio') return `${sign} ${Number(limit.toFixed(2))}x`
  return unit === 'exponent' ? `${sign} n^${limit}` : `${sign} ${printValue(limit, unit)}`
}

function round(value: number): string {
  if (value > 0 && value < 0.01) return value.toPrecision(2)
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString('en')
  return value.toFixed(Math.abs(value) >= 10 ? 1 : 2)
}
