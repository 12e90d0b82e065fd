import type { Json } from '../../base/json.ts'
import type { Tool } from '../spec.ts'

/** A tool whose `path` is the workspace when the model gives none. Filled in before the policy looks, so that a rule about paths sees it. */
export function inWorkspaceByDefault(tool: Tool): Tool {
  return Object.freeze({
    ...tool,
    parse: async (args: Json) => ({ path: '.', ...((await tool.parse(args)) as object) }),
  })
}
