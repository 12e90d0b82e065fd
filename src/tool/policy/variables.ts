import type { ArithmeticExpression, SyntaxNode } from 'unbash'

/** The variable that a piece of a command line sets, in whatever way; undefined when it sets none. */
export function variableSetBy(node: SyntaxNode): string | undefined {
  switch (node.type) {
    case 'Assignment':
    case 'FileDescriptorVariable':
      return node.name
    case 'For':
    case 'Select':
      return node.name.value
    case 'Coproc':
      return node.name?.value
    case 'ParameterExpansion':
      return /=$/.test(node.operation?.operator ?? '') ? node.parameter : undefined
    case 'ArithmeticBinary':
      return /^(=|[^=!<>]=|<<=|>>=)$/.test(node.operator) ? nameOf(node.left) : undefined
    case 'ArithmeticUnary':
      return /^(\+\+|--)$/.test(node.operator) ? nameOf(node.operand) : undefined
    default:
      return undefined
  }
}

/** `list` of `list[3]`. What is no name cannot be set either, or only the run knows it. */
function nameOf(expression: ArithmeticExpression): string {
  return 'value' in expression ? (expression.value.split('[', 1)[0] as string) : 'in an expression'
}
