import { RathError, show } from '../base/errors.ts'

const longest = 500

/**
 * Whether a path fits a glob: `*` and `?` stay inside a name, `**` crosses folders, `[a-z]` and `{a,b}` choose. A glob without a
 * slash is for the name alone, wherever it lies.
 */
export function globMatcher(glob: string): (path: string) => boolean {
  if (glob === '' || glob.length > longest) {
    throw new RathError('invalid-argument', `A glob has 1 to ${longest} characters, not ${show(glob)}.`)
  }
  const relative = glob.replace(/^\.?\//, '')
  const pattern = new RegExp(`^${relative.includes('/') ? '' : '(?:.*/)?'}${patternOf(relative)}$`, 's')
  return path => pattern.test(path)
}

function patternOf(glob: string): string {
  let pattern = ''
  for (let i = 0; i < glob.length; i++) {
    const char = glob[i] as string
    const stars = /^\*+/.exec(glob.slice(i))?.[0].length ?? 0
    if (stars > 1) {
      i += stars - 1
      // `a/**/b` is `a/b` too.
      if (glob[i + 1] === '/') {
        i++
        pattern += '(?:.*/)?'
      } else pattern += '.*'
    } else if (stars === 1) pattern += '[^/]*'
    else if (char === '?') pattern += '[^/]'
    else if (char === '[' || char === '{') {
      const end = glob.indexOf(char === '[' ? ']' : '}', i + 2)
      if (end < 0) pattern += `\\${char}`
      else {
        pattern += char === '[' ? setOf(glob.slice(i + 1, end)) : choiceOf(glob.slice(i + 1, end))
        i = end
      }
    } else pattern += literal(char)
  }
  return pattern
}

function setOf(inside: string): string {
  const isNegated = /^[!^]/.test(inside)
  const members = (isNegated ? inside.slice(1) : inside).replace(/[\\\]^]/g, '\\$&')
  return `(?!/)[${isNegated ? '^' : ''}${members}]`
}

/** Braces do not nest. */
function choiceOf(inside: string): string {
  return `(?:${inside.split(',').map(patternOf).join('|')})`
}

function literal(char: string): string {
  return /[\\^$.|+()[\]{}*?]/.test(char) ? `\\${char}` : char
}
