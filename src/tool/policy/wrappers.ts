import { isPlainOption } from './builtins.ts'

type Words = readonly (string | undefined)[]

/**
 * What a command starts in turn: words of another command, a script in a string, or something that nobody can tell. `doubt` says why it may
 * be another command than it seems.
 */
export type Inner =
  | {
      readonly kind: 'words'
      readonly words: Words
      readonly assignments: readonly string[]
      readonly doubt?: string | undefined
    }
  | { readonly kind: 'script'; readonly source: string; readonly doubt?: string | undefined }
  | { readonly kind: 'unknown'; readonly why: string }

/** Looks through commands that run other commands. Undefined when `name` runs nothing but itself. */
export function unwrap(name: string, args: Words): Inner | undefined {
  const bare = name.slice(name.lastIndexOf('/') + 1)
  if (shells.has(bare)) return shell(bare, args)
  if (bare === 'eval') return args.length === 0 ? undefined : script(args[0] === '--' ? args.slice(1) : args)
  if (bare === 'trap') return trap(args)
  if (bare === 'find') return find(args)
  if (bare === 'command' && /^-[vV]$/.test(args[0] ?? '')) return undefined
  if (opaque.has(bare) || (fillers.has(bare) && args.some(mayCallBack)))
    return unknown('it runs what cannot be seen here')
  const wrapper = Object.hasOwn(wrappers, bare) ? wrappers[bare] : undefined
  return wrapper && throughOptions(args, wrapper)
}

const shells = new Set(['sh', 'bash', 'dash', 'zsh', 'ksh', 'ash', 'mksh', 'rbash'])
/** Commands whose work is a file, a terminal or a language of its own, or to make a name stand for another command. */
const opaque = new Set(
  'source . su script parallel watch flock coproc bind fc alias hash enable complete compgen'.split(' '),
)
/** With `-C` they call a command for every few lines. */
const fillers = new Set(['mapfile', 'readarray'])
const mayCallBack = (word: string | undefined) => word === undefined || /^-[a-zA-Z]*C/.test(word)

interface Wrapper {
  /** Options without a value: letters, and long names. */
  readonly flags?: string
  /** Options with a value. */
  readonly values?: string
  /** Words of its own before the command. */
  readonly words?: number
  /** `NAME=value` words before the command. */
  readonly assigns?: boolean
  /** Nothing behind the options is fine; it then runs nothing, or echo. */
  readonly optional?: boolean
  /** Its input becomes arguments, or replaces `{}`. */
  readonly fills?: boolean
  /** Options that leave what is started as it is; any other takes away PATH or gives another name. All, by default. */
  readonly harmless?: RegExp
}

const wrappers: { readonly [name: string]: Wrapper } = {
  env: {
    flags: 'i 0 v ignore-environment null',
    values: 'u C unset chdir',
    assigns: true,
    optional: true,
    harmless: /^(?:-[0v]+|-C.*|--null|--chdir.*)$/,
  },
  sudo: {
    flags: 'A b E H k n P S preserve-env non-interactive set-home stdin background askpass reset-timestamp',
    values: 'C D g h p R r T t U u chdir group host prompt user',
    assigns: true,
  },
  doas: { flags: 'n L', values: 'C u a' },
  nohup: {},
  setsid: { flags: 'c f w ctty fork wait' },
  nice: { flags: '', values: 'n adjustment', optional: true },
  ionice: { flags: 't', values: 'c n p P u class classdata', optional: true },
  chrt: { flags: 'b f i o r', words: 1 },
  taskset: { flags: 'a c', words: 1 },
  timeout: { flags: 'f v foreground preserve-status verbose', values: 'k s kill-after signal', words: 1 },
  stdbuf: { values: 'i o e input output error' },
  time: { flags: 'p v a q append verbose portability quiet', values: 'f o format output' },
  command: { flags: 'p', optional: true },
  builtin: { optional: true },
  exec: { flags: 'c l', values: 'a', optional: true, harmless: /^$/ },
  busybox: {},
  chroot: { values: 'groups userspec', words: 1 },
  xargs: {
    flags: '0 o p r t x null no-run-if-empty verbose interactive exit open-tty',
    values: 'a d E L n P s arg-file delimiter max-args max-chars max-procs',
    optional: true,
    fills: true,
  },
}

function throughOptions(args: Words, wrapper: Wrapper): Inner | undefined {
  const flags = new Set(wrapper.flags?.split(' '))
  const values = new Set(wrapper.values?.split(' '))
  const assignments: string[] = []
  let doubt: string | undefined
  let at = 0
  for (; at < args.length; at++) {
    const word = args[at]
    if (word === undefined) return unknown('a word before the command is only known when it runs')
    if (word === '--') {
      at++
      break
    }
    // Not only what a shell takes for a name: `a.b=1` is one to env.
    if (wrapper.assigns && /^[^-].*=|^=/s.test(word)) {
      assignments.push(word.slice(0, word.indexOf('=')))
      continue
    }
    if (!word.startsWith('-')) break
    if (wrapper.fills && word.startsWith('-I')) {
      if (word === '-I') at++
      if (!/^(-I)?{}$/.test(args[at] ?? '')) return unknown('another placeholder than {} is not followed')
      continue
    }
    // `env -` empties the environment; elsewhere a lone dash has no meaning to rely on.
    if (word === '-' && wrapper !== wrappers.env) return unknown('a lone - is not known here')
    const option = readOption(word, flags, values)
    if (option === 'unknown') return unknown(`the option ${word} is not known here`)
    if (option === 'takes-next') at++
    if (wrapper.harmless?.test(word) === false) doubt ??= `the option ${word} changes what is found by a name`
  }
  // `env -- NAME=value command` sets variables too.
  while (wrapper.assigns && args[at]?.includes('=')) {
    assignments.push((args[at++] as string).split('=', 1)[0] as string)
  }
  at += wrapper.words ?? 0
  const words = args.slice(at)
  if (words.length === 0 && wrapper.optional) return undefined
  if (words.length === 0) return unknown('no command follows')
  if (!wrapper.fills) return { kind: 'words', words, assignments, doubt }
  return isFilled(words) ? unknown('its input may become a script') : filled([...words, '{}'])
}

/** `-n5`, `-n 5`, `-abc`, `--name`, `--name=value`, and `-5` for the number that `nice` takes. */
function readOption(
  word: string,
  flags: ReadonlySet<string>,
  values: ReadonlySet<string>,
): 'done' | 'takes-next' | 'unknown' {
  if (word.startsWith('--')) {
    const [name = '', value] = word.slice(2).split(/=(.*)/s)
    if (flags.has(name)) return 'done'
    if (!values.has(name)) return 'unknown'
    return value === undefined ? 'takes-next' : 'done'
  }
  if (/^-\d+$/.test(word) && values.has('n')) return 'done'
  for (let i = 1; i < word.length; i++) {
    const letter = word[i] as string
    if (values.has(letter)) return i === word.length - 1 ? 'takes-next' : 'done'
    if (!flags.has(letter)) return 'unknown'
  }
  return 'done'
}

/**
 * `sh -c script`, `sh -ec script`. A script in a file cannot be seen; a shell without either reads its input, and one that is interactive or
 * a login shell reads files of its own first.
 */
function shell(name: string, args: Words): Inner {
  let at = 0
  let takesScript = false
  for (; at < args.length; at++) {
    const word = args[at]
    if (word === undefined) return unknown('an option is only known when it runs')
    if (!/^[-+]/.test(word)) break
    if (word === '--' || word === '-') {
      at++
      break
    }
    if (/^--(norc|noprofile|posix|restricted)$/.test(word)) continue
    if (!/^[-+][abCcefhmnpuvxo]+$/.test(word) || /^\+.*c/.test(word)) {
      return unknown(`the option ${word} is not known here`)
    }
    if (word.includes('c')) takesScript = true
    if (word.includes('o') && !isPlainOption(args[++at])) return unknown('an option of it is not known here')
  }
  if (!takesScript) return unknown('it reads a script that cannot be seen here')
  const source = args[at]
  if (source === undefined) return unknown('its script is only known when it runs')
  const doubt = /^(?:sh|bash|dash|ash|rbash)$/.test(name)
    ? undefined
    : `${name} reads some lines in its own way`
  return { kind: 'script', source, doubt }
}

/** A script from words, as `eval` joins them. */
function script(words: Words): Inner {
  if (words.includes(undefined)) return unknown('its script is only known when it runs')
  return { kind: 'script', source: words.join(' ') }
}

/** `trap script SIGNAL …`; a dash or nothing in place of the script resets the trap. */
function trap(args: Words): Inner | undefined {
  const words = args[0] === '--' ? args.slice(1) : args
  if (words.includes(undefined)) return script(words)
  if (words.length < 2 || words[0] === '-' || words[0] === '' || words[0] === '-p') return undefined
  return script(words.slice(0, 1))
}

/** `-exec command {} ;` and its kin. Only one is looked through, so a second is refused. */
function find(args: Words): Inner | undefined {
  // An unquoted word can grow into an action of its own.
  if (args.includes(undefined)) return unknown('a word is only known when it runs; quote it')
  const isAction = (word: string | undefined) => /^-(exec|execdir|ok|okdir)$/.test(word ?? '')
  const first = args.findIndex(isAction)
  if (first < 0) return undefined
  const rest = args.slice(first + 1)
  const end = rest.findIndex((word, i) => word === ';' || (word === '+' && rest[i - 1] === '{}'))
  if (end < 1) return unknown('its command has no end')
  if (rest.slice(end).some(isAction)) return unknown('it runs several commands')
  const words = rest.slice(0, end)
  return isFilled(words) ? unknown('a file name may become a script') : filled(words)
}

/** True when a placeholder would be put into a longer text, which may be a script, where a file's name becomes code. */
function isFilled(words: Words): boolean {
  return words.some(word => word !== '{}' && word?.includes('{}'))
}

/** What takes the place of `{}` is a word, or several, that only the run knows. */
function filled(words: Words): Inner {
  return { kind: 'words', words: words.map(word => (word === '{}' ? undefined : word)), assignments: [] }
}

function unknown(why: string): Inner {
  return { kind: 'unknown', why }
}
