/** What a timer can hold, in milliseconds, three weeks and a half; a longer one would fire at once. */
export const longestTimer = 2 ** 31 - 1

/** The last moment that a date can name, in milliseconds since the epoch. */
export const lastMoment = 8.64e15
