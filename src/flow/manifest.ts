import type { ErrorCode } from '../base/errors.ts'
import type { BudgetLimits } from '../run/budget.ts'
import type { Effect } from '../tool/spec.ts'

/** Everything a tree of workflows needs, known without running it. Paths are those of `namedModules()`. Holds no secrets. */
export interface Manifest {
  readonly name: string
  readonly modules: readonly ManifestModule[]
  readonly models: readonly ManifestModel[]
  readonly tools: readonly ManifestTool[]
  readonly mcpServers: readonly ManifestServer[]
  readonly sandboxes: readonly ManifestSandbox[]
  readonly memories: readonly { readonly name: string; readonly usedBy: readonly string[] }[]
  readonly budgets: readonly { readonly path: string; readonly limits: BudgetLimits }[]
  /** What only running it will show. */
  readonly unknown: readonly { readonly path: string; readonly reason: string }[]
}

export interface ManifestModule {
  readonly path: string
  readonly type: string
  readonly name: string
  readonly description: string
  /** Where the same module stands with its children. */
  readonly sameAs?: string
}

export interface ManifestModel {
  readonly id: string
  readonly usedBy: readonly string[]
  readonly credentials:
    | { readonly status: 'found'; readonly source: string; readonly address: string }
    /** The model was handed over as an object and sees to its own. */
    | { readonly status: 'own' }
    | { readonly status: 'missing'; readonly code: ErrorCode; readonly reason: string }
}

export interface ManifestTool {
  readonly name: string
  readonly effect: Effect
  /** Whether a person is asked: never, always, or depending on the arguments. */
  readonly approval: 'never' | 'always' | 'sometimes'
  readonly usedBy: readonly string[]
  /** The MCP server that it comes from. */
  readonly server?: string
}

export interface ManifestServer {
  readonly name: string
  /** The program, or the address without anything secret. */
  readonly at: string
  readonly tools: readonly string[]
}

/** A module whose built-in tools work in the sandbox of whatever session it is given. */
export interface ManifestSandbox {
  readonly usedBy: string
  readonly needs: readonly ('files' | 'commands')[]
  readonly tools: readonly string[]
}

/** Something that would go wrong, found without spending a token. */
export interface Problem {
  readonly path: string
  readonly code: ErrorCode
  readonly message: string
}
