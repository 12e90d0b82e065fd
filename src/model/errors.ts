import { type ErrorCode, RathError } from '../base/errors.ts'

/** Which model failed, and how far it had come. */
export interface Failing {
  /** `provider/name`. */
  readonly model: string
  /** True once the provider had begun to answer. */
  readonly started?: boolean
  /** What was sent to prove who asks, and belongs in no message. */
  readonly secrets?: readonly string[] | undefined
  readonly now?: () => number
}

/**
 * Whatever a provider package threw or put into its stream, as a `RathError` that says whether to try again. Reads the shapes of
 * the AI SDK's errors (`statusCode`, `responseHeaders`, `isRetryable`, `responseBody`) and of providers' own error events.
 */
export function modelError(error: unknown, failing: Failing): RathError {
  if (error instanceof RathError) return error
  const seen = look(error, failing.secrets)
  const code = codeOf(seen, failing)
  const retryAfterMs = seen.headers && readRetryAfter(seen.headers, failing.now)
  const said = seen.message ? `: ${seen.message}` : '.'
  return new RathError(
    code,
    `${failing.model} ${happened[code]}${seen.status ? ` (status ${seen.status})` : ''}${said}\n${nextStep(code, retryAfterMs)}`,
    {
      ...(seen.cause === undefined ? {} : { cause: seen.cause }),
      data: {
        provider: failing.model.split('/', 1)[0] as string,
        model: failing.model,
        ...(seen.status === undefined ? {} : { status: seen.status }),
        ...(seen.reason === undefined ? {} : { reason: seen.reason }),
        ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
      },
    },
  )
}

/** A stream that stopped before the provider said it was done. */
export function brokenStream(failing: Failing): RathError {
  return modelError({ message: 'the stream ended before the answer did', broken: true }, failing)
}

/** Milliseconds a provider asked to wait: `retry-after-ms`, or `retry-after` as seconds or as a date. */
export function readRetryAfter(
  headers: Readonly<Record<string, string | undefined>>,
  now: () => number = Date.now,
): number | undefined {
  const exact = Number.parseFloat(headers['retry-after-ms'] ?? '')
  if (exact >= 0) return Math.ceil(exact)
  const header = headers['retry-after']?.trim()
  if (!header) return undefined
  if (/^\d+(\.\d+)?$/.test(header)) return Math.ceil(Number(header) * 1000)
  const date = Date.parse(header)
  return Number.isNaN(date) ? undefined : Math.max(0, date - now())
}

/** What a provider's failure is; that it took too long is said by whoever waited. */
type ModelCode = Exclude<Extract<ErrorCode, `model-${string}`>, 'model-timeout'>

const happened: Record<ModelCode, string> = {
  'model-rate-limited': 'is asked too often',
  'model-overloaded': 'could not answer now',
  'model-unreachable': 'could not be reached',
  'model-broken-stream': 'stopped in the middle of its answer',
  'model-malformed': 'sent something that is not an answer',
  'model-rejected': 'refused the request',
  'model-unauthorized': 'refused the credentials',
  'model-quota-spent': 'has no quota left for this account',
  'model-missing': 'is not known at this address',
}

function nextStep(code: ModelCode, retryAfterMs: number | undefined): string {
  switch (code) {
    case 'model-rate-limited':
    case 'model-overloaded':
      return retryAfterMs === undefined
        ? 'Try again later, or with fewer requests at a time.'
        : `Try again in ${retryAfterMs / 1000} s.`
    case 'model-unreachable':
      return 'Check the base URL and the network, then try again.'
    case 'model-broken-stream':
      return 'Try again: nothing of the answer was kept.'
    case 'model-malformed':
      return 'Check that the base URL leads to this kind of provider.'
    case 'model-rejected':
      return 'Change the request: sending it again will not help.'
    case 'model-unauthorized':
      return 'Check the API key, and that it belongs to this address and may use this model.'
    case 'model-quota-spent':
      return 'Check the plan and the billing of the account.'
    case 'model-missing':
      return 'Check the name of the model and the base URL.'
  }
}

interface Seen {
  readonly status: number | undefined
  /** The provider's own word for it, such as `context_length_exceeded`. */
  readonly reason: string | undefined
  readonly message: string
  readonly headers: Record<string, string | undefined> | undefined
  readonly retryable: boolean | undefined
  readonly network: boolean
  readonly parsing: boolean
  readonly broken: boolean
  readonly cause: unknown
}

function codeOf(seen: Seen, { started }: Failing): ModelCode {
  const { status, reason = '' } = seen
  if (seen.broken) return 'model-broken-stream'
  if (seen.network) return started || status !== undefined ? 'model-broken-stream' : 'model-unreachable'
  if (/insufficient_quota|billing|payment_required|credit/.test(reason) || status === 402)
    return 'model-quota-spent'
  if (status === undefined || status < 400) {
    if (seen.parsing) return 'model-malformed'
    if (seen.retryable) return started ? 'model-overloaded' : 'model-unreachable'
    return status === undefined ? 'model-rejected' : 'model-malformed'
  }
  if (status === 429) return 'model-rate-limited'
  if (status === 401 || status === 403) return 'model-unauthorized'
  if (status === 404) return 'model-missing'
  if (status === 408 || status === 409 || status >= 500) return 'model-overloaded'
  return 'model-rejected'
}

function look(error: unknown, secrets: readonly string[] | undefined): Seen {
  const fields = record(error) ?? {}
  // Gateways wrap the provider's error once more; its own words lie in `error` of the body.
  const body = record(fields.data) ?? parsed(fields.responseBody)
  const inner = record(body?.error) ?? record(fields.error) ?? body
  const words = [fields.code, fields.type, inner?.code, inner?.type].filter(
    word => typeof word === 'string' && word !== 'error',
  ) as string[]
  const status = statusOf(fields) ?? (words.length > 0 ? statusOfWords(words.join(' ')) : undefined)
  const name = typeof fields.name === 'string' ? fields.name : ''
  const cause = fields.cause
  return {
    status,
    reason: words[0],
    message: withoutSecrets(messageOf(error, fields, inner), secrets),
    headers: record(fields.responseHeaders) as Seen['headers'],
    retryable: typeof fields.isRetryable === 'boolean' ? fields.isRetryable : undefined,
    network: isNetwork(error),
    parsing: /JSONParse|TypeValidation|InvalidResponseData|EmptyResponseBody/.test(
      `${name} ${record(cause)?.name}`,
    ),
    broken: fields.broken === true || /ended without a finish reason/.test(String(fields.message)),
    // An API error holds the whole request, which belongs in no log; what caused it does not.
    cause: 'requestBodyValues' in fields ? cause : error instanceof Error ? error : undefined,
  }
}

function messageOf(error: unknown, fields: Fields, inner: Fields | undefined): string {
  if (typeof error === 'string') return error
  const own = fields.message ?? inner?.message
  if (typeof own === 'string' && own !== '') return own.length > 500 ? `${own.slice(0, 499)}…` : own
  const body = fields.responseBody
  return typeof body === 'string' ? body.slice(0, 200) : ''
}

function statusOf(fields: Fields): number | undefined {
  for (const status of [fields.statusCode, fields.status, fields.code]) {
    const number = typeof status === 'string' && /^\d{3}$/.test(status) ? Number(status) : status
    if (typeof number === 'number' && number >= 100 && number < 600) return number
  }
  return undefined
}

/** The status that a provider would have sent, had it not begun with 200. */
function statusOfWords(words: string): number | undefined {
  if (/rate_limit|too_many|insufficient_quota/.test(words)) return 429
  if (/overload|unavailable|capacity/.test(words)) return 503
  if (/timeout/.test(words)) return 504
  if (/authentication|invalid_api_key/.test(words)) return 401
  if (/permission/.test(words)) return 403
  if (/not_found/.test(words)) return 404
  if (/invalid|bad_request|context_length|content_filter|too_large/.test(words)) return 400
  if (/api_error|server_error|internal/.test(words)) return 500
  return undefined
}

/** Codes of Node's sockets and of undici, the `fetch` of Node. */
const networkCodes =
  /^(ECONN\w+|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EPIPE|EHOSTUNREACH|ENETUNREACH|UND_ERR_\w+|ERR_SSL_\w+|CERT_\w+)$/

function isNetwork(error: unknown): boolean {
  let current: unknown = error
  for (let depth = 0; depth < 5 && typeof current === 'object' && current !== null; depth++) {
    const { code, message, cause, name } = current as Fields
    if (typeof code === 'string' && networkCodes.test(code)) return true
    if (
      name === 'TypeError' &&
      /^(terminated|fetch failed|failed to fetch|network error)/i.test(String(message))
    )
      return true
    current = cause
  }
  return false
}

type Fields = Record<string, unknown>

function record(value: unknown): Fields | undefined {
  return typeof value === 'object' && value !== null ? (value as Fields) : undefined
}

function parsed(text: unknown): Fields | undefined {
  if (typeof text !== 'string') return undefined
  try {
    return record(JSON.parse(text))
  } catch {
    return undefined
  }
}

/** Providers quote the key they refuse, and `fetch` an address that holds a password. */
function withoutSecrets(text: string, secrets: readonly string[] = []): string {
  return secrets
    .reduce((rest, secret) => rest.replaceAll(secret, '…'), text)
    .replace(/\b(sk|key|pk|Bearer)([-_ ])[\w*.-]{6,}/gi, '$1$2…')
    .replace(/\/\/[^@/\s]*@/g, '//…@')
}
