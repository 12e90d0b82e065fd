/** What time it is for whoever records. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number
  /** An outcome is given from the record, which says when it was first there. */
  served(at: number | undefined): void
  /** Something is done that is not on record. */
  live(): void
}

let current: Clock = { now: () => Date.now(), served: () => {}, live: () => {} }

/** In a run that is resumed, the time at which it did this before. */
export function now(): number {
  return current.now()
}

export function clock(): Clock {
  return current
}

/** For the run layer, which knows what is being resumed. The session layer stays free of it. */
export function setClock(clock: Clock): void {
  current = clock
}
