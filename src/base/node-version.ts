const needed = [22, 18] as const

/** One sentence for a Node that is too old, or nothing. */
export function nodeProblem(version: string | undefined): string | undefined {
  if (version === undefined) return undefined
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (major > needed[0] || (major === needed[0] && minor >= needed[1])) return undefined
  return `openrath needs Node ${needed.join('.')} or newer, and this is Node ${version}: install a newer Node and run it again.`
}

const host = (globalThis as { process?: NodeJS.Process }).process
const problem = nodeProblem(host?.versions?.node)
if (host && problem) throw readable(host, problem)

/** An error that a caller can catch, and that prints as its sentence alone when nobody does. */
function readable(process: NodeJS.Process, sentence: string): Error {
  const error = new Error(sentence)
  error.stack = sentence
  // Node prints source lines around an uncaught error whatever its stack says, so the sentence is printed here.
  const print = (thrown: unknown) => {
    if (thrown === error) {
      process.stderr.write(`${sentence}\n`)
      process.exit(1)
    }
    // Somebody else's error, thrown in the same turn: left to other listeners, or to end the process as it would have.
    process.removeListener('uncaughtException', print)
    if (process.listenerCount('uncaughtException') === 0) throw thrown
  }
  process.prependListener('uncaughtException', print)
  // An error that nobody catches is reported within this turn of the event loop; later ones are not ours to see.
  setImmediate(() => process.removeListener('uncaughtException', print))
  return error
}
