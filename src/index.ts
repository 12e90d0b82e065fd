import './base/node-version.ts'

export type { Digest } from './base/digest.ts'
export { type Blame, type ErrorCode, RathError, type Retry } from './base/errors.ts'
export type { Json, JsonObject } from './base/json.ts'
export * as flow from './flow/flow.ts'
export {
  Agent,
  type AgentOptions,
  type AgentParam,
  type AgentToolOptions,
  type BeforeForwardHook,
  type Compiled,
  Compressor,
  type CompressorOptions,
  type Decision,
  EmptyWorkflow,
  type FanOutOptions,
  type ForwardHook,
  type Join,
  type JoinBranches,
  type Judge,
  type Layer,
  type Manifest,
  type ManifestModel,
  type ManifestModule,
  type ManifestSandbox,
  type ManifestServer,
  type ManifestTool,
  type MapOptions,
  type ModelPart,
  type Module,
  map,
  type Needs,
  type OnFailure,
  Parallel,
  type ParallelOptions,
  type Problem,
  type RetryBranch,
  restore,
  Selector,
  type SelectorOptions,
  Sequential,
  Workflow,
  type WorkflowJson,
} from './flow/flow.ts'
export { type Price, type PriceTable, priceOf } from './model/prices.ts'
export { Provider, type ProviderBudget, type ProviderOptions } from './model/provider.ts'
export type { ModelLike } from './model/resolve.ts'
export type { RetryOptions } from './model/retry.ts'
export type {
  FinishReason,
  Model,
  ModelAnswer,
  ModelContext,
  ModelDelta,
  ModelRequest,
  ModelSettings,
  ToolDescription,
} from './model/spec.ts'
export type { AutoCompress } from './run/auto-compress.ts'
export type { BudgetLimits } from './run/budget.ts'
export type { SessionInput } from './run/call.ts'
export type { Approve, CallOptions } from './run/context.ts'
export type { ApprovalAnswer } from './run/decide.ts'
export type { Divergence, DivergenceCause } from './run/divergence.ts'
export { type EffectOptions, effect, type ForwardContext } from './run/effect.ts'
export type { EventListener, RunEnd, RunEvent } from './run/event.ts'
export type { Keep } from './run/keep.ts'
export { openStore } from './run/open-store.ts'
export { PendingSession } from './run/pending-session.ts'
export type { ReplayReport } from './run/replay.ts'
export type { ReplayMode, ToolComparison } from './run/replay-door.ts'
export type { RunReport, Spent } from './run/report.ts'
export type { RunModule, Runnable } from './run/resume.ts'
export type { Reviewed } from './run/review.ts'
export type { OpenApproval } from './run/run.ts'
export {
  configure,
  createRuntime,
  type RunOptions,
  type Runtime,
  type RuntimeOptions,
} from './run/runtime.ts'
export type { Unfinished } from './run/unfinished.ts'
export { type LocalOptions, localBackend } from './sandbox/drivers/local/driver.ts'
export type { LocalSpec } from './sandbox/drivers/local/local-spec.ts'
export type {
  ExecHandle,
  ExecOptions,
  ExecOutput,
  ExecResult,
  FileEntry,
  FileKind,
  FileStat,
  Sandbox,
  SandboxBackend,
  SandboxCapabilities,
  SandboxFiles,
  SandboxSpec,
  SearchMatch,
  SearchQuery,
  SearchResult,
} from './sandbox/spec.ts'
export type {
  Chunk,
  ChunkInput,
  ChunkKind,
  FileChange,
  LeftOutChunk,
  MemoryHit,
  MergeConflict,
  MergedBranch,
  ToolOutcome,
  Workspace,
} from './session/chunk.ts'
export type { ChunkList } from './session/chunk-list.ts'
export type { SessionDiff } from './session/diff.ts'
export { type GraphEdge, type GraphNode, type SessionGraph, sessionGraph } from './session/graph.ts'
export type { ReadOptions } from './session/jsonl/read.ts'
export type { Lineage, Operation, OperationOptions } from './session/lineage.ts'
export type { Message } from './session/message.ts'
export type {
  AnswerPart,
  AnswerPartInput,
  FilePart,
  ImagePart,
  Part,
  PartInput,
  ReasoningPart,
  TextPart,
  ToolCallPart,
} from './session/part.ts'
export type { Pending } from './session/pending.ts'
export type { Placement } from './session/placement.ts'
export {
  type ForkOptions,
  type MergeBranch,
  type MergeOptions,
  type MergePolicy,
  Session,
} from './session/session.ts'
export { readSessions, writeSessions } from './session/stream.ts'
export type { Usage } from './session/usage.ts'
export type { Verification, VerificationProblem } from './session/verify.ts'
export type { StoreDriver } from './store/driver.ts'
export type {
  BlobStore,
  Durability,
  GcOptions,
  GcReport,
  JournalEntry,
  NewEntry,
  NewRun,
  Redact,
  RunChange,
  RunRow,
  RunStatus,
  RunStore,
  SearchHit,
  SearchOptions,
  SessionChange,
  SessionFilter,
  SessionPage,
  SessionRow,
  SessionStore,
  Store,
  StoreOptions,
  SubscribeOptions,
} from './store/spec.ts'
export { createStore } from './store/store.ts'
export type { ApprovalDecision, ApprovalRequest } from './tool/approval.ts'
export { type BuiltinName, builtinTools } from './tool/builtin/builtin-tools.ts'
export { FlowToolCall } from './tool/flow-tool-call.ts'
export { type McpOptions, type McpServer, type McpTools, mcpTools } from './tool/mcp/mcp-tools.ts'
export { narrow, type Policy, policy } from './tool/policy/policy.ts'
export type { PolicyRules } from './tool/policy/rules.ts'
export type { Effect, Tool, ToolContent, ToolContext, ToolFailure, ToolSchema } from './tool/spec.ts'
export { tool } from './tool/tool.ts'
