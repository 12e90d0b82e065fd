/**
 * PostgreSQL keeps any text but U+0000, and UTF-8 has no form for a lone surrogate. A text with one of them is kept as
 * its JSON, which escapes both; so is one that begins like JSON, so that the two never meet. All others stay as they are.
 */
export function toText(value: string): string {
  return value.includes('\u0000') || value.startsWith('"') || !value.isWellFormed()
    ? JSON.stringify(value)
    : value
}

export function fromText(text: string): string {
  return text.startsWith('"') ? JSON.parse(text) : text
}

export function toTextOrNull(value: string | null | undefined): string | null {
  return value === null || value === undefined ? null : toText(value)
}

export function fromTextOrNull(text: string | null): string | null {
  return text === null ? null : fromText(text)
}

/** A sha256 in hex. Anything else that is asked for is nowhere, and must not reach `decode`. */
export function isDigest(value: string): boolean {
  return /^[0-9a-f]{64}$/.test(value)
}
