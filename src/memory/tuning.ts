/**
 * BM25 with a turn's neighbours counted in. The values hold up on LoCoMo (tuned on three conversations, checked on others) and on Chinese
 * XQuAD alike, and around them little changes.
 */
export const tuning = {
  /** How fast a word said again stops counting, and how much a long entry is held to its length. */
  k1: 0.5,
  b: 0.15,
  /** What a word in the entry before, and behind, is worth; each further one `decay` of it. */
  before: 0.3,
  after: 0.1,
  decay: 0.5,
  /** How many entries on each side count. */
  reach: 3,
  /** What two words of the question side by side are worth, of the two by themselves. */
  pair: 0.2,
  /** What it is worth to have all of the question and not a part of it. */
  whole: 0.3,
} as const
