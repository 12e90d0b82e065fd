/** Commands and what they printed on a terminal, colours included, as SVG. */
export function terminalPicture(
  screens: readonly { readonly command: string; readonly printed: string }[],
): string {
  const lines = screens.flatMap(({ command, printed }, i) => [
    ...(i > 0 ? [''] : []),
    `\u001b[36m$\u001b[39m \u001b[1m${command}\u001b[22m`,
    ...printed.replaceAll('\r', '').trimEnd().split('\n'),
  ])
  const [width, height] = [
    Math.max(...lines.map(line => plain(line).length)) * 7.83 + 40,
    lines.length * 20 + 58,
  ]
  const rows = lines.map((line, i) => `<text x="20" y="${56 + i * 20}">${spans(line)}</text>`)
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${Math.ceil(width)} ${height}" width="${Math.ceil(width)}" height="${height}" role="img" font-family="ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="13" fill="#e3e1db">
<title>rath in a terminal</title>
<rect width="100%" height="100%" rx="8" fill="#17191c"/>
${[20, 38, 56].map(x => `<circle cx="${x}" cy="20" r="5" fill="#42474d"/>`).join('')}
${rows.join('\n')}
</svg>
`
}

const colours: Readonly<Record<string, string>> = {
  31: '#eda291',
  32: '#a3c99a',
  33: '#d9bd7a',
  34: '#8fb3d9',
  35: '#c3a3d1',
  36: '#8cc4c2',
  90: '#868b92',
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: it is what a terminal is sent.
const escapes = /\u001b\[([\d;]*)m/g

/** A line with its marks for colour and weight as elements of SVG. */
function spans(line: string): string {
  let [colour, weight, dim] = ['', '', '']
  let at = 0
  const out: string[] = []
  const flush = (end: number) => {
    // Spaces that no viewer collapses.
    const text = line
      .slice(at, end)
      .replace(/[&<> ]/g, sign => `&#${sign === ' ' ? 160 : sign.charCodeAt(0)};`)
    if (text !== '')
      out.push(colour + weight + dim === '' ? text : `<tspan${colour}${weight}${dim}>${text}</tspan>`)
  }
  for (const match of line.matchAll(escapes)) {
    flush(match.index)
    at = match.index + match[0].length
    for (const code of (match[1] || '0').split(';')) {
      if (code === '0') [colour, weight, dim] = ['', '', '']
      else if (code === '1') weight = ' font-weight="700"'
      else if (code === '2') dim = ' opacity="0.65"'
      else if (code === '22') [weight, dim] = ['', '']
      else if (code === '39') colour = ''
      else if (colours[code]) colour = ` fill="${colours[code]}"`
    }
  }
  flush(line.length)
  return out.join('')
}

function plain(line: string): string {
  return line.replace(escapes, '')
}
