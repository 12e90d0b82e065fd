/**
 * For `lstatSync` and `statSync` of what may be missing. With all fields, and the same for every call: Node takes almost as long to look
 * for a field that is not there, or among differently made options, as the system takes to answer.
 */
export const orNothing = { bigint: false, throwIfNoEntry: false } as const
