/** What meaning counts for beside words. */
export const shareOfMeaning = 0.4

/**
 * From the likeness of two vectors to a chance that the one answers the other. Models differ in what a likeness of 0.5 means, so it is measured
 * against that of sentences which have nothing to do with the question: five standard deviations above their mean is an even chance.
 */
export function chanceAbove(noise: readonly number[]): (likeness: number) => number {
  const mean = noise.reduce((sum, value) => sum + value, 0) / noise.length
  const variance = noise.reduce((sum, value) => sum + (value - mean) ** 2, 0) / noise.length
  const deviation = Math.max(Math.sqrt(variance), 0.03)
  return likeness => 1 / (1 + Math.exp(1.2 * (5 - (likeness - mean) / deviation)))
}
