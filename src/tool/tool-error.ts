import { type ErrorCode, RathError } from '../base/errors.ts'
import type { Json, Problem } from '../base/json.ts'
import type { ToolFailure } from './spec.ts'

/** A failure that a tool words itself: the model reads `message` and `detail`, and nothing of the stack. */
export class ToolError extends RathError {
  readonly failure: ToolFailure
  readonly detail: Json | undefined

  constructor(
    failure: ToolFailure,
    message: string,
    options: { readonly detail?: Json; readonly cause?: unknown } = {},
  ) {
    super(codeOf[failure], message, 'cause' in options ? { cause: options.cause } : {})
    this.failure = failure
    this.detail = options.detail
  }
}

/** Arguments that do not fit the tool, with every problem by its path. */
export class ArgumentError extends ToolError {
  readonly problems: readonly Problem[]

  constructor(tool: string, problems: readonly Problem[]) {
    const shown = listed(problems)
    super(
      'invalid-arguments',
      `The arguments do not fit ${tool}; mend them and call again:\n${lines(shown)}`,
      {
        detail: { problems: shown.map(({ path, message }) => ({ path, message })) },
      },
    )
    this.problems = problems
  }
}

/** A result that the session cannot hold, or that is not what the tool promised. */
export function resultError(tool: string, what: string, problems: readonly Problem[]): ToolError {
  const shown = listed(problems)
  return new ToolError('unreadable-result', `${tool} ran, but ${what}:\n${lines(shown)}`, {
    detail: { problems: shown.map(({ path, message }) => ({ path, message })) },
  })
}

const codeOf: Record<ToolFailure, ErrorCode> = {
  'invalid-arguments': 'tool-arguments',
  'unknown-tool': 'tool-arguments',
  'unreadable-result': 'tool-result',
  'timed-out': 'tool-failed',
  cancelled: 'tool-failed',
  threw: 'tool-failed',
}

/** Enough to mend a call in one go; a list of ten thousand wrong rows helps nobody. */
const enough = 20

function listed(problems: readonly Problem[]): readonly Problem[] {
  if (problems.length <= enough) return problems
  const rest = { path: '…', message: `and ${problems.length - enough} more` }
  return [...problems.slice(0, enough), rest]
}

function lines(problems: readonly Problem[]): string {
  return problems.map(({ path, message }) => `  ${path}: ${message}`).join('\n')
}
