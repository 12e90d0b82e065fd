/**
 * Below it a hit is left out unless the caller says otherwise. On LoCoMo and Chinese XQuAD it loses 2 in 1,000 of the entries that answer, and
 * four of ten questions (in Chinese three of four) come back empty when they are asked of a conversation that knows nothing about them.
 */
export const defaultFloor = 0.075

/** How well an entry fits a question. */
export interface Fit {
  /** The part of the question's weight that the entry and its neighbours cover. */
  readonly around: number
  /** The score as a part of the most that an entry could have. */
  readonly strength: number
}

/**
 * Scores between 0 and 1, comparable between questions, in the order of the ranking. A fit is half how much of the question's words the
 * entry and its neighbours have, half how high it ranks of what it could; where the best fits badly, the others are less likely, too.
 * The curve follows how often a first hit of a fit was the right one; where much fits it is bolder, since data name few of all right answers.
 */
export function likelihoods(ranked: readonly Fit[]): number[] {
  const best = ranked[0] ? fitOf(ranked[0]) : 0
  let ceiling = 1
  return ranked.map(one => {
    const fit = (fitOf(one) + best) / 2
    ceiling = Math.min(ceiling, 1 / (1 + Math.exp(7 * (0.55 - fit))))
    return ceiling
  })
}

function fitOf({ around, strength }: Fit): number {
  return (around + Math.min(1, strength)) / 2
}
