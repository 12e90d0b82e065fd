const needed = [22, 18] as const

/** One sentence for a Node that is too old, or nothing. */
export function nodeProblem(version: string | undefined): string | undefined {
  if (version === undefined) return undefined
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (major > needed[0] || (major === needed[0] && minor >= needed[1])) return undefined
  return `openrath needs Node ${needed.join('.')} or newer, and this is Node ${version}: install a newer Node and run it again.`
}

const problem = nodeProblem(
  (globalThis as { process?: { versions?: { node?: string } } }).process?.versions?.node,
)
if (problem) {
  const error = new Error(problem)
  // The reader needs the sentence; the frames would only be ours.
  error.stack = problem
  throw error
}
