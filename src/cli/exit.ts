/** What the exit code of a command says. */
export const exit = { done: 0, failed: 1, usage: 2, waiting: 3 } as const

export type ExitCode = (typeof exit)[keyof typeof exit]
