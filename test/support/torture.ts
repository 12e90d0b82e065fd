/**
 * How much of something a test does: `short` by `npm test`, `full` by `npm run test:torture`, which runs the files that import this. The short
 * form has every kind of trouble in it, only less often.
 */
export function torture({ short, full }: { readonly short: number; readonly full: number }): number {
  return isFullLength ? full : short
}

/** For what is done at full length only. */
export const isFullLength = process.env.OPENRATH_TORTURE === 'full'
