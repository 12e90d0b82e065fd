import type { JsonObject } from './json-type.ts'

/** Whether trying again can help: never, at once, or after waiting or mending something. */
export type Retry = 'never' | 'now' | 'after'
/** Who has to change something for the error to go away. */
export type Blame = 'caller' | 'model' | 'tool' | 'sandbox' | 'runtime'

/** Every error code of the library, with the retry and blame that follow from it. */
const codes = {
  'invalid-argument': ['never', 'caller'],
  'invalid-json': ['never', 'caller'],
  'invalid-chunk': ['never', 'caller'],
  'foreign-chunk': ['never', 'caller'],
  'unknown-chunk': ['never', 'caller'],
  'merge-conflict': ['never', 'caller'],
  'merge-nothing': ['never', 'caller'],
  'placement-conflict': ['never', 'caller'],
  'graph-incomplete': ['never', 'caller'],
  'graph-cycle': ['never', 'caller'],
  cancelled: ['never', 'caller'],
  'run-failed': ['never', 'caller'],
  'output-invalid': ['now', 'model'],
  'budget-spent': ['after', 'caller'],
  'max-rounds': ['after', 'caller'],
  'unknown-session': ['never', 'caller'],
  'ambiguous-session': ['never', 'caller'],
  'session-conflict': ['never', 'caller'],
  'session-altered': ['never', 'caller'],
  'unknown-blob': ['never', 'caller'],
  'unknown-run': ['never', 'caller'],
  'run-exists': ['never', 'caller'],
  'run-owned': ['after', 'caller'],
  'run-fenced': ['never', 'runtime'],
  'run-waiting': ['after', 'caller'],
  'needs-review': ['after', 'caller'],
  'replay-diverged': ['never', 'caller'],
  'unknown-approval': ['never', 'caller'],
  'journal-conflict': ['never', 'runtime'],
  'store-busy': ['after', 'runtime'],
  'store-full': ['after', 'runtime'],
  'store-read-only': ['never', 'caller'],
  'store-corrupt': ['never', 'runtime'],
  'store-newer': ['never', 'caller'],
  'store-foreign': ['never', 'caller'],
  'store-closed': ['never', 'caller'],
  'store-unreachable': ['after', 'runtime'],
  'store-failed': ['after', 'runtime'],
  'chunk-missing': ['now', 'runtime'],
  'model-rate-limited': ['after', 'model'],
  'model-overloaded': ['after', 'model'],
  'model-unreachable': ['after', 'model'],
  'model-broken-stream': ['now', 'model'],
  'model-timeout': ['now', 'model'],
  'model-malformed': ['never', 'model'],
  'model-rejected': ['never', 'caller'],
  'model-unauthorized': ['never', 'caller'],
  'model-quota-spent': ['never', 'caller'],
  'model-missing': ['never', 'caller'],
  'unknown-model': ['never', 'caller'],
  'unknown-price': ['never', 'caller'],
  'unknown-provider': ['never', 'caller'],
  'credentials-missing': ['never', 'caller'],
  'credentials-mixed': ['never', 'caller'],
  'credentials-exposed': ['never', 'caller'],
  'config-malformed': ['never', 'caller'],
  'config-untrusted': ['never', 'caller'],
  'script-mismatch': ['never', 'caller'],
  'recording-missing': ['never', 'caller'],
  'missing-package': ['never', 'caller'],
  'missing-program': ['never', 'caller'],
  'tool-arguments': ['never', 'model'],
  'tool-result': ['never', 'tool'],
  'tool-failed': ['never', 'tool'],
  'mcp-unreachable': ['after', 'tool'],
  'unknown-sandbox': ['never', 'caller'],
  'placement-missing': ['never', 'caller'],
  'sandbox-unavailable': ['never', 'caller'],
  'sandbox-unsupported': ['never', 'caller'],
  'workspace-moved': ['never', 'caller'],
  'workspace-elsewhere': ['never', 'caller'],
  'sandbox-closed': ['never', 'caller'],
  'sandbox-failed': ['never', 'sandbox'],
  'path-outside': ['never', 'model'],
  'path-missing': ['never', 'model'],
  'path-kind': ['never', 'model'],
  'path-read-only': ['never', 'model'],
  'unknown-memory': ['never', 'caller'],
  'memory-missing': ['never', 'caller'],
  'memory-unsupported': ['never', 'caller'],
  'resource-refused': ['never', 'caller'],
  'workspace-too-big': ['never', 'caller'],
  'format-malformed': ['never', 'caller'],
  'format-newer': ['never', 'caller'],
  'bundle-altered': ['never', 'caller'],
} as const satisfies Record<string, readonly [Retry, Blame]>

export type ErrorCode = keyof typeof codes

export interface RathErrorOptions {
  cause?: unknown
  /** Small facts for programs: ids, paths, counts. Never whole payloads, never secrets. */
  data?: JsonObject
}

/** The one error class: the message names the thing, the value seen, what was expected and the next step. */
export class RathError extends Error {
  override readonly name = 'RathError'
  readonly code: ErrorCode
  readonly retry: Retry
  readonly blame: Blame
  readonly data: JsonObject

  constructor(code: ErrorCode, message: string, options: RathErrorOptions = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.code = code
    this.retry = codes[code][0]
    this.blame = codes[code][1]
    this.data = options.data ?? {}
    // Carried, not printed: the session of a run would hide the message that somebody has to read.
    Object.defineProperty(this, 'session', { value: undefined, writable: true, configurable: true })
  }
}

/** Whatever was thrown, as an error of ours; what is one stays the object it is. Does not throw itself, whatever it is handed. */
export function toRathError(thrown: unknown): RathError {
  try {
    if (thrown instanceof RathError) return thrown
    const { message } = Object(thrown) as { message?: unknown }
    return new RathError('run-failed', typeof message === 'string' ? message : String(thrown), {
      cause: thrown,
    })
  } catch (cause) {
    return new RathError('run-failed', 'Something was thrown that cannot be written as text.', { cause })
  }
}

/** A short, safe picture of any value for an error message: never throws, never long. */
export function show(value: unknown): string {
  if (typeof value === 'string') return clip(JSON.stringify(value))
  if (typeof value === 'bigint') return `${value}n`
  if (typeof value === 'function') return `function ${value.name || '(anonymous)'}`
  if (typeof value !== 'object' || value === null) return String(value)
  if (Array.isArray(value)) return `an array of ${value.length}`
  const name = Object.getPrototypeOf(value)?.constructor?.name
  if (name && name !== 'Object') return `a ${name}`
  return clip(`{ ${Object.keys(value).join(', ')} }`)
}

function clip(text: string): string {
  return text.length > 80 ? `${text.slice(0, 77)}…` : text
}
