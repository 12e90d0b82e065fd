/** Below it a hit is left out unless the caller says otherwise. docs/memory-local.md has what bench/memory measured of it. */
export const defaultFloor = 0.075

/**
 * Scores between 0 and 1 from how much of the question each entry has, in the order of the ranking. They mean the same for every question, in every language and in a
 * store of any size. Where the best fits badly, the others are less likely, too. The curve follows how often a first hit of a fit was the right one.
 */
export function likelihoods(ranked: readonly { readonly fit: number }[]): number[] {
  const best = ranked[0]?.fit ?? 0
  let ceiling = 1
  return ranked.map(({ fit }) => {
    ceiling = Math.min(ceiling, 1 / (1 + Math.exp(7 * (0.6 - Math.sqrt(fit * best)))))
    return ceiling
  })
}
