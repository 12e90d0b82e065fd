import type { Command, HereDoc, Redirection, SyntaxNode } from 'unbash'

/**
 * Why a piece of a command line may not stand behind an allow-list; undefined when it may. The list is of what passes: pieces that dash,
 * bash and busybox read in the same way, and that evaluate no text which is only known when the line runs. All else is refused.
 */
export function outsideCommonShell(node: SyntaxNode, source: string): string | undefined {
  switch (node.type) {
    case 'Script':
    case 'Statement':
    case 'CompoundList':
    case 'AndOr':
    case 'Negation':
    case 'Subshell':
    case 'BraceGroup':
    case 'If':
    case 'Elif':
    case 'For':
    case 'While':
    case 'Case':
    case 'Redirected':
    case 'Literal':
    case 'Glob':
    case 'SingleQuoted':
    case 'FileDescriptor':
    case 'HereDocDelimiter':
    case 'HereDocBody':
    case 'Default':
    case 'Remove':
    case 'ArithmeticBinary':
    case 'ArithmeticUnary':
    case 'ArithmeticTernary':
    case 'ArithmeticGroup':
    case 'ArithmeticWord':
      return undefined
    case 'Command':
      return isCovered(node, source) ? undefined : strange(source.slice(node.pos, node.end))
    case 'Word':
      return (node.parts ?? [node]).every(
        part => (part.type !== 'Literal' && part !== node) || isPlain(part.text, bare),
      )
        ? undefined
        : strange(node.text)
    case 'DoubleQuoted':
      return node.parts.every(part => part.type !== 'Literal' || isPlain(part.text, inQuotes))
        ? undefined
        : strange(node.text)
    case 'Pipeline':
      return node.operators.every(operator => operator === '|') ? undefined : strange('|&')
    case 'CaseItem':
      return (node.terminator ?? ';;') === ';;' ? undefined : strange(node.terminator as string)
    case 'Assignment':
      return node.append || node.index || node.value.type !== 'Word' ? strange(node.text) : undefined
    case 'Redirect':
    case 'HereString':
      return redirection(node)
    case 'HereDoc':
      return hereDocument(node)
    case 'BraceExpansion':
      return /^[\w.,/{}@%+:-]*$/.test(node.text) ? undefined : strange(node.text)
    case 'SimpleExpansion':
      return /^\$(?:[A-Za-z_]\w*|[\d@*#?$!-])$/.test(node.text) ? undefined : strange(node.text)
    case 'ParameterExpansion':
      return parameter.test(node.text) ? undefined : strange(node.text)
    case 'ArithmeticExpansion':
      return constant.test(node.text) ? undefined : `it calculates with more than numbers in ${node.text}`
    case 'CommandExpansion':
      return substitution(node.text)
    default:
      return strange('text' in node ? node.text : (named[node.type] ?? node.type))
  }
}

/** Why the text of a line cannot stand behind an allow-list, whatever its pieces are. */
export function outsideCommonText(source: string): string | undefined {
  const odd = /(?![\n\t ])[\p{Cc}\p{Cf}\p{Z}\p{Cs}]/u.exec(source)?.[0]
  if (odd !== undefined) {
    const code = odd.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')
    return `it holds the character U+${code}, which shells read in different ways`
  }
  return /(?<![ \t\n])\\\n/.test(source) ? 'a line break inside a word is not followed here' : undefined
}

/** `${x}`, `${#x}`, `${x:-plain}`, `${x%.*}`. No index, no indirection, no transformation, no slice; no quotes and no nesting inside. */
const parameter =
  /^\$\{(?:#?[A-Za-z_]\w*|\d+|[@*#?$!-]|(?:[A-Za-z_]\w*|\d)(?::?[-+=?]|##?|%%?)(?:[^'"`\\{}$()<>]|\$\w)*)\}$/
/** A name in it would be evaluated: in bash the value of `x` in `$((x))` is an expression, which may run commands. */
const constant = /^\$\(\([\d\s()+*/%<>=&|^~!?:-]*\)\)$/
const plainDelimiter = /^(?:\\?[A-Za-z_]\w*|'[A-Za-z_]\w*'|"[A-Za-z_]\w*")$/

const named: Readonly<Record<string, string>> = {
  Time: 'time',
  Function: 'a function',
  Coproc: 'coproc',
  Select: 'select',
  TestCommand: '[[ ]]',
  ArithmeticCommand: '(( ))',
  ArithmeticFor: 'for (( ))',
  ArrayValue: 'an array',
  FileDescriptorVariable: 'a variable for a descriptor',
}

function redirection(node: Exclude<Redirection, HereDoc>): string | undefined {
  if (node.operator === '<<<' || node.operator.startsWith('&')) return strange(node.operator)
  const isDuplicate = node.operator === '>&' || node.operator === '<&'
  return isDuplicate && !/^(?:\d|-)$/.test(node.target?.text ?? '') ? strange(node.operator) : undefined
}

function hereDocument({ delimiter, closing, body }: HereDoc): string | undefined {
  if (closing === undefined) return 'a here-document has no end'
  const literal = (body.parts ?? [body]).filter(part => part.type === 'Literal' || part === body)
  if (!delimiter?.quoted && !literal.every(({ text }) => isPlain(text, inQuotes))) return strange(body.text)
  return plainDelimiter.test(delimiter?.text ?? '') ? undefined : strange(`<<${delimiter?.text ?? ''}`)
}

function substitution(text: string): string | undefined {
  if (text.includes('<<')) return 'a here-document inside a substitution ends elsewhere in some shells'
  if (text.startsWith('`')) return text.includes('\\') ? 'a \\ between backticks; use $( )' : undefined
  return text.startsWith('$(') && !text.startsWith('$((') ? undefined : strange(text)
}

/** Nothing but white space lies between the words of a command: the parser passes over some brackets that have no partner. */
function isCovered({ pos, end, name, prefix, suffix }: Command, source: string): boolean {
  let at = pos
  for (const part of [...prefix, ...(name ? [name] : []), ...suffix].sort(
    (one, other) => one.pos - other.pos,
  )) {
    if (!/^(?:[ \t]|\\\n)*$/.test(source.slice(at, part.pos))) return false
    at = Math.max(at, part.end)
  }
  return /^(?:[ \t]|\\\n)*$/.test(source.slice(at, Math.max(at, end)))
}

/** What the parser takes for plain text has nothing in it that a shell acts on: the parser is not trusted to have seen it all. */
function isPlain(text: string, acting: RegExp): boolean {
  return !acting.test(text.replace(/\\./gs, ''))
}

const bare = /[`'"()<>|&;\s]|\$(?!$)/
const inQuotes = /`|\$[\w({[@*#?$!-]/

function strange(what: string): string {
  return `${what} is not among what an allow-list can check: it is no part of POSIX sh, or it evaluates text`
}
