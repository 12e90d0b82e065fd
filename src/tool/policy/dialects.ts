import type { Command, SyntaxNode } from 'unbash'

/**
 * Why a piece of a command line is other commands to a shell that knows less than bash, such as the /bin/sh of Debian; undefined when it is
 * not. The line is read as bash, and the shell that runs it may be either.
 */
export function readTwoWays(
  node: SyntaxNode,
  source: string,
  { parse }: typeof import('unbash'),
): string | undefined {
  switch (node.type) {
    case 'Command':
      return hasWordsBehindBoth(node) ? '&> in front of a word ends the command in some shells' : undefined
    case 'TestCommand':
      return isPlain(`test ${source.slice(node.pos + 2, node.end)}`, parse)
        ? undefined
        : 'what is between [[ and ]] are several commands to some shells; use [ ]'
    case 'AnsiCQuoted':
      return node.text.slice(2, -1).includes("'") ? `${node.text} ends elsewhere in some shells` : undefined
    case 'HereDocDelimiter':
      return /\$['"]/.test(node.text)
        ? `a here-document ends elsewhere than ${node.text} in some shells`
        : undefined
    case 'ParameterExpansion':
      // A quote in it quotes or does not, by the shell and by what is around it.
      return /'.*[$`"}\\]/s.test(node.text.slice(0, -1))
        ? `the quotes in ${node.text} are read differently by shells`
        : undefined
    default:
      return undefined
  }
}

/** `ls &> file rm x`: to a shell without `&>`, `ls &` and then `> file rm x`. */
function hasWordsBehindBoth({ suffix }: Command): boolean {
  const both = suffix.findIndex(part => part.type === 'Redirect' && part.operator.startsWith('&>'))
  return both >= 0 && suffix.slice(both).some(({ type }) => type === 'Word' || type === 'Assignment')
}

/** Whether a text is one command that redirects nothing. */
function isPlain(text: string, parse: typeof import('unbash')['parse']): boolean {
  const { commands, errors } = parse(text)
  const command = commands[0]?.command
  return (
    !errors?.length && commands.length === 1 && command?.type === 'Command' && command.redirects.length === 0
  )
}
