/** Which protocol a provider speaks. */
export type ProviderKind = 'openai' | 'anthropic' | 'openai-compatible' | 'azure'

export const providerKinds: readonly ProviderKind[] = ['openai', 'anthropic', 'openai-compatible', 'azure']

export function isProviderKind(word: string): word is ProviderKind {
  return (providerKinds as readonly string[]).includes(word)
}

/** The provider's own address. Gateways and Azure resources have none. */
export function ownAddress(kind: ProviderKind): string | undefined {
  if (kind === 'openai') return 'https://api.openai.com/v1'
  return kind === 'anthropic' ? 'https://api.anthropic.com/v1' : undefined
}

/** The kind that a model and an address speak for, where nobody said. */
export function guessKind(model: string, baseURL: string | undefined): ProviderKind {
  if (isAzure(baseURL)) return 'azure'
  if (baseURL === undefined) return model.startsWith('claude') ? 'anthropic' : 'openai'
  return sameHost(baseURL, ownAddress('anthropic')) ? 'anthropic' : 'openai'
}

export function isAzure(address: string | undefined): boolean {
  return /(^|\.)azure\.com$/.test(URL.parse(address ?? '')?.hostname ?? '')
}

/** True when what is sent to one of them is sent to the same server as with the other. */
export function sameHost(a: string | undefined, b: string | undefined): boolean {
  const origin = URL.parse(a ?? '')?.origin
  return origin !== undefined && origin === URL.parse(b ?? '')?.origin
}

/** Addresses hold passwords at times. */
export function printable(address: string | undefined): string | undefined {
  return address?.replace(/\/\/[^@/]*@/, '//…@')
}
