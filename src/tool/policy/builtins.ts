/** A word of a command as far as it is known: its text, or whether it is at least one word and no more, or a number. */
export interface ShellWord {
  /** Undefined when only the shell can know it. */
  readonly text: string | undefined
  /** It stays one word: a quoted expansion. */
  readonly isOne?: boolean
  /** `$!`, `$?`, `$#`, `$$`. */
  readonly isNumber?: boolean
}

/** What a builtin does to the shell that calls it. */
export interface BuiltinEffect {
  /** Variables that it sets or unsets. */
  readonly sets: readonly string[]
  /** Why nobody can tell what it sets or runs. */
  readonly problem?: string | undefined
}

/** The effect of a command on the shell itself. What is not a builtin, or only reads, has none. */
export function builtinEffect(name: string, args: readonly ShellWord[]): BuiltinEffect {
  const texts = args.map(({ text }) => text)
  switch (name) {
    case 'export':
    case 'readonly':
    case 'local':
    case 'declare':
    case 'typeset':
      return names(texts[0] === '-p' ? texts.slice(1) : texts, /^([A-Za-z_]\w*)(?:=|$)/)
    case 'unset':
      return names(/^-[vf]$/.test(texts[0] ?? '') ? texts.slice(1) : texts)
    case 'read':
      return filled(texts, '-r')
    case 'mapfile':
    case 'readarray':
      return filled(texts, '-t')
    case 'getopts':
      return texts.length < 2
        ? unknown('it sets a variable that is only known when it runs')
        : names(texts.slice(1, 2))
    case 'printf':
      return printf(texts[0] === '--' ? texts.slice(1) : texts, texts[0] === '--')
    case 'test':
    case '[':
      return (name === 'test' || texts.at(-1) === ']') && isPlainTest(name === '[' ? args.slice(0, -1) : args)
        ? none
        : unknown('a word in its expression may be an operator that evaluates text')
    case 'set':
      return setOptions(texts)
    case 'wait':
      return args.every(({ text, isNumber }) => isNumber || /^[^-]/.test(text ?? ''))
        ? none
        : unknown('it takes numbers of processes only')
    case 'jobs':
      return texts.length === 0 ? none : unknown('it may run a command')
    case 'let':
    case 'shopt':
    case 'history':
    case 'compopt':
      return unknown('it changes how the shell reads what follows, or evaluates text')
    default:
      return none
  }
}

const none: BuiltinEffect = Object.freeze({ sets: [] })

function unknown(problem: string): BuiltinEffect {
  return { sets: [], problem }
}

/** The variables that words name. An option, an index or an expansion among them may name others. */
function names(words: readonly (string | undefined)[], named = /^([A-Za-z_]\w*)$/): BuiltinEffect {
  const sets: string[] = []
  for (const word of words) {
    const name = named.exec(word ?? '')?.[1]
    if (name === undefined) {
      return unknown(
        `it sets a variable that is only known when it runs, or takes an option (${word ?? '?'})`,
      )
    }
    sets.push(name)
  }
  return { sets }
}

/** `read -r a b`: without a name it fills one of its own choice. */
function filled(words: readonly (string | undefined)[], option: string): BuiltinEffect {
  const given = words[0] === option ? words.slice(1) : words
  return given.length === 0 ? unknown('it fills a variable that it does not name') : names(given)
}

/** `-v` and `%n` set variables, so the format has to be known. */
function printf([format]: readonly (string | undefined)[], isBehindDashes: boolean): BuiltinEffect {
  if (format === undefined) return unknown('its format is only known when it runs')
  if (format.startsWith('-') && !isBehindDashes) return unknown('an option of it sets a variable')
  return /%[^a-zA-Z%]*[hjlLqtzZ]*n/.test(format.replaceAll('%%', ''))
    ? unknown('%n in its format sets a variable')
    : none
}

/** Options that change how a script ends or is shown, and not how it is read. */
const plainOptions = /^[-+][eufCvx]+$/
const plainNames = new Set('errexit nounset noglob noclobber pipefail verbose xtrace'.split(' '))

export function isPlainOption(name: string | undefined): boolean {
  return plainNames.has(name ?? '')
}

function setOptions(words: readonly (string | undefined)[]): BuiltinEffect {
  for (let at = 0; at < words.length; at++) {
    const word = words[at]
    if (word === undefined) return unknown('an option is only known when it runs; write set -- first')
    if (word === '--' || !/^[-+]/.test(word)) return none
    const takesName = /^[-+][eufCvx]*o$/.test(word)
    if (takesName ? !isPlainOption(words[++at]) : !plainOptions.test(word)) {
      return unknown(`the option ${word} is not known here`)
    }
  }
  return none
}

/** With `-v` bash evaluates an index in the name. So every operator has to be known, and a word that is not must be one operand. */
function isPlainTest(args: readonly ShellWord[]): boolean {
  const words = args[0]?.text === '!' ? args.slice(1) : args
  if (words.some(({ text, isOne }) => text === undefined && !isOne)) return false
  const texts = words.map(({ text }) => text)
  if (texts.some(text => /^-[vR]$/.test(text ?? ''))) return false
  if (!texts.includes(undefined)) return true
  if (texts.length === 1) return true
  if (texts.length === 2) return /^-[a-zA-Z]$/.test(texts[0] ?? '')
  return texts.length === 3 && binary.test(texts[1] ?? '')
}

const binary = /^(?:=|!=|-eq|-ne|-lt|-le|-gt|-ge|-nt|-ot|-ef)$/
