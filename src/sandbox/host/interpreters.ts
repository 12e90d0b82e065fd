/** The Node that runs this process: it is there, and it reads TypeScript. */
export const hostInterpreters: Readonly<Record<string, readonly string[]>> = Object.freeze({
  javascript: Object.freeze([process.execPath]),
  typescript: Object.freeze([process.execPath]),
})
