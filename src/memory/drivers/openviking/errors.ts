import { type ErrorCode, RathError, show } from '../../../base/errors.ts'

/** A request that did not bring a result. */
export interface Refusal {
  /** Of HTTP; 0 when no answer came. */
  readonly status: number
  /** The server's own: NOT_FOUND, RESOURCE_EXHAUSTED, … */
  readonly code: string | undefined
  readonly message: string
  readonly retryAfterMs?: number
  /** Nobody knows whether the request arrived. */
  readonly lost: boolean
  /** No answer came in time: another try would take as long again. */
  readonly late?: boolean
  readonly cause?: unknown
}

/** What the server says, and what to do about it. */
const known: Readonly<Record<string, readonly [ErrorCode, string]>> = {
  NOT_FOUND: ['memory-missing', ''],
  INVALID_ARGUMENT: ['invalid-argument', ''],
  INVALID_URI: ['invalid-argument', ''],
  ALREADY_EXISTS: ['store-failed', ''],
  CONFLICT: ['store-busy', 'Something else is under way there; try again.'],
  FAILED_PRECONDITION: ['store-failed', ''],
  UNAUTHENTICATED: ['store-failed', 'Check OPEN_VIKING_API_KEY.'],
  PERMISSION_DENIED: ['store-failed', 'Check that the key belongs to the account and user.'],
  RESOURCE_EXHAUSTED: ['store-busy', 'Try again later.'],
  DEADLINE_EXCEEDED: ['store-busy', 'Try again later.'],
  UNAVAILABLE: ['store-unreachable', 'Try again later.'],
  SESSION_EXPIRED: ['store-failed', ''],
  UNIMPLEMENTED: ['memory-unsupported', 'Update the server.'],
  VLM_FAILED: ['store-failed', 'Check the language model in the server’s configuration.'],
  EMBEDDING_FAILED: ['store-failed', 'Check the embedding model in the server’s configuration.'],
}

const byStatus: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  409: 'CONFLICT',
  429: 'RESOURCE_EXHAUSTED',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
}

export function toMemoryError(refusal: Refusal, request: string, url: string): RathError {
  const { status, message, cause, lost } = refusal
  if (lost) {
    return new RathError(
      'store-unreachable',
      `The OpenViking server ${url} cannot be reached (${message}). Check that it runs and that the address is right, then try again.`,
      { cause, data: { url, request } },
    )
  }
  const code = refusal.code ?? byStatus[status] ?? 'INTERNAL'
  const [ours, step] = known[code] ?? ['store-failed', '']
  return new RathError(ours, `OpenViking answered ${code} to ${request}: ${message}${step && ` ${step}`}`, {
    data: { url, request, code, status },
  })
}

/** An answer in which nothing is where it should be. */
export function misshapen(result: unknown, request: string, url: string): RathError {
  return new RathError(
    'store-failed',
    `OpenViking answered something unexpected to ${request}: ${show(result)}. Check that ${url} is an OpenViking server, and its version.`,
    { data: { url, request } },
  )
}

export function unreachable(cause: unknown, late: boolean): Refusal {
  const error = cause instanceof Error ? cause : new Error(String(cause))
  const reason = error.cause instanceof Error ? error.cause.message || error.message : error.message
  return { status: 0, code: undefined, message: reason, lost: true, late, cause }
}

/** Whether an error is the server's refusal with this code. */
export function isRefusal(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof RathError && codes.includes(error.data.code as string)
}
