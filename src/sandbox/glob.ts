import { RathError, show } from '../base/errors.ts'

const longest = 500

/**
 * Whether a path fits a glob: `*` and `?` stay inside a name, `**` crosses folders, `[a-z]` and `{a,b}` choose. A glob without a
 * slash is for the name alone, wherever it lies. Takes at most the length of the glob times that of the path: a model writes both, and
 * the expressions that globs are usually made into (`path.matchesGlob` too) take exponential time for `*a*a*a*a*b`.
 */
export function globMatcher(glob: string): (path: string) => boolean {
  if (glob === '' || glob.length > longest) {
    throw new RathError('invalid-argument', `A glob has 1 to ${longest} characters, not ${show(glob)}.`)
  }
  const relative = glob.replace(/^\.?\//, '')
  const program: Step[] = []
  if (!relative.includes('/')) addFolders(program)
  compile(relative, program)
  return path => fits(program, path)
}

/** A step that takes one character, or goes on at other steps without taking any. The end of the program is a match. */
type Step =
  | { readonly takes: (character: string) => boolean; readonly goes?: undefined }
  | { readonly goes: number[]; readonly takes?: undefined }

const any = (): boolean => true
const inName = (character: string): boolean => character !== '/'

/** Follows all ways through the program at once, so that no way is gone twice. */
function fits(program: readonly Step[], path: string): boolean {
  const seen = new Int32Array(program.length + 1).fill(-1)
  let now: number[] = []
  const add = (start: number, at: number, into: number[]) => {
    const open = [start]
    for (let step = open.pop(); step !== undefined; step = open.pop()) {
      if (seen[step] === at) continue
      seen[step] = at
      const goes = program[step]?.goes
      if (goes) open.push(...goes)
      else into.push(step)
    }
  }
  add(0, 0, now)
  for (let at = 0; at < path.length && now.length > 0; at++) {
    const next: number[] = []
    for (const step of now) if (program[step]?.takes?.(path[at] as string)) add(step + 1, at + 1, next)
    now = next
  }
  return now.includes(program.length)
}

function compile(glob: string, program: Step[]): void {
  for (let i = 0; i < glob.length; i++) {
    const char = glob[i] as string
    if (char === '*') {
      const from = i
      while (glob[i + 1] === '*') i++
      if (i === from) addMany(inName, program)
      else if (glob[i + 1] === '/') {
        // `a/**/b` is `a/b` too.
        i++
        addFolders(program)
      } else addMany(any, program)
    } else if (char === '?') program.push({ takes: inName })
    else if (char === '[' || char === '{') {
      const end = glob.indexOf(char === '[' ? ']' : '}', i + 2)
      if (end < 0) program.push({ takes: other => other === char })
      else {
        const inside = glob.slice(i + 1, end)
        if (char === '[') program.push({ takes: setOf(inside) })
        else addChoice(inside.split(','), program)
        i = end
      }
    } else program.push({ takes: other => other === char })
  }
}

/** Any number of characters. */
function addMany(takes: (character: string) => boolean, program: Step[]): void {
  const start = program.length
  program.push({ goes: [start + 1, start + 3] }, { takes }, { goes: [start] })
}

/** Any folders, or none. */
function addFolders(program: Step[]): void {
  const goes = [program.length + 1]
  program.push({ goes })
  addMany(any, program)
  program.push({ takes: character => character === '/' })
  goes.push(program.length)
}

/** Braces do not nest. */
function addChoice(choices: readonly string[], program: Step[]): void {
  const starts: number[] = []
  program.push({ goes: starts })
  const ends: number[][] = []
  for (const choice of choices) {
    starts.push(program.length)
    compile(choice, program)
    const goes: number[] = []
    ends.push(goes)
    program.push({ goes })
  }
  for (const goes of ends) goes.push(program.length)
}

function setOf(inside: string): (character: string) => boolean {
  const isNegated = /^[!^]/.test(inside)
  const members = isNegated ? inside.slice(1) : inside
  const ranges: [string, string][] = []
  for (let i = 0; i < members.length; i++) {
    const from = members[i] as string
    if (members[i + 1] === '-' && i + 2 < members.length) {
      ranges.push([from, members[i + 2] as string])
      i += 2
    } else ranges.push([from, from])
  }
  return character =>
    character !== '/' && ranges.some(([from, to]) => from <= character && character <= to) !== isNegated
}
