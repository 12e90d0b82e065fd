import './base/node-version.ts'

export type { Digest } from './base/digest.ts'
export { type Blame, type ErrorCode, RathError, type Retry } from './base/errors.ts'
export type { Json, JsonObject } from './base/json.ts'
export {
  type BisectCheck,
  type Bisection,
  type BisectOptions,
  bisect,
  type FirstFailing,
  type Probe,
} from './evidence/bisect.ts'
export {
  type BlamedChunk,
  type BlamedLine,
  type BlameOptions,
  blame,
  type SeenChunk,
} from './evidence/blame.ts'
export { type Bundle, type BundleRun, readBundle } from './evidence/bundle/read.ts'
export type { BundleProblem, BundleVerification } from './evidence/bundle/verification.ts'
export { type VerifyOptions, verifyBundle } from './evidence/bundle/verify.ts'
export { type BundleOptions, writeBundle } from './evidence/bundle/write.ts'
export type { Dossier } from './evidence/dossier/dossier.ts'
export { type DossierOptions, dossierOf, dossierOfSessions } from './evidence/dossier/dossier-of.ts'
export { dossierHtml } from './evidence/dossier/html/page.ts'
export { dossierMarkdown } from './evidence/dossier/markdown.ts'
export { type AtifOptions, toATIF } from './evidence/exports/atif.ts'
export type { AtifStep, AtifTrajectory } from './evidence/exports/atif-format.ts'
export { type OpenAIMessage, toOpenAIMessages } from './evidence/exports/openai.ts'
export {
  type PreferenceOptions,
  type PreferencePair,
  preferencePairs,
} from './evidence/exports/preference.ts'
export { toUIMessages, type UIMessage, type UIPart } from './evidence/exports/ui.ts'
export type { Producer } from './evidence/producer.ts'
export type { SignatureReport, SigningKey } from './evidence/signature.ts'
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
export { type LocalMemoryOptions, localMemory } from './memory/drivers/local/local-memory.ts'
export type { AiEmbeddingModel, Embedder } from './memory/embedding.ts'
export type {
  CommitOptions,
  Committed,
  FindOptions,
  Found,
  Hit,
  Memory,
  MemoryBackend,
  MemoryCapabilities,
  MemoryChange,
  MemoryFilter,
  MemoryPage,
  MemoryRef,
  MemorySource,
  MemorySpec,
  MemoryStanding,
  MemoryStore,
  MemoryTree,
  NewMemory,
  Resource,
  WriteOptions,
} from './memory/spec.ts'
export { type Price, type PriceTable, priceOf } from './model/prices.ts'
export { type CostLimit, Provider, type ProviderBudget, type ProviderOptions } from './model/provider.ts'
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
export type { ApprovalAnswer } from './run/approve/decide.ts'
export type { Reviewed, Unfinished } from './run/approve/review.ts'
export type { BudgetLimits } from './run/budget.ts'
export type { SessionInput } from './run/call.ts'
export type { AutoCompress, Keep } from './run/compress.ts'
export type { Approve, CallOptions } from './run/context.ts'
export type { EventListener, RunEnd, RunEvent } from './run/event.ts'
export { type EffectOptions, effect, type ForwardContext } from './run/forward.ts'
export { type McpOptions, mcpTools } from './run/mcp-tools.ts'
export type { RecallOptions, RememberOptions } from './run/memory/agent-memory.ts'
export type { CommitMemoryOptions } from './run/memory/commit.ts'
export { extractionPrompt } from './run/memory/extract.ts'
export type { MemoryLike } from './run/memory/memories.ts'
export type { RecallPolicy } from './run/memory/recall-policy.ts'
export { openStore } from './run/open-store.ts'
export { PendingSession } from './run/pending-session.ts'
export type { Divergence, DivergenceCause } from './run/replay/divergence.ts'
export type { ReplayMode, ReplayReport, ToolComparison, Unasked } from './run/replay/replay.ts'
export type { RunReport, Spent } from './run/replay/report.ts'
export type { RunModule, Runnable } from './run/replay/resume.ts'
export type { OpenApproval } from './run/run.ts'
export {
  configure,
  createRuntime,
  type RunOptions,
  type Runtime,
  type RuntimeOptions,
} from './run/runtime.ts'
export type { TelemetryOptions } from './run/telemetry/telemetry.ts'
export { type IsolatedOptions, isolatedBackend } from './sandbox/drivers/isolated/driver.ts'
export type { IsolatedLimits, IsolatedSpec } from './sandbox/drivers/isolated/isolated-spec.ts'
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
  HostFolder,
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
export type { FileConflict, OnConflict, Settlement } from './session/files.ts'
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
  CancelRequest,
  Durability,
  GcOptions,
  GcReport,
  JournalEntry,
  NewEntry,
  NewRun,
  Redact,
  RunChange,
  RunFilter,
  RunLog,
  RunQueue,
  RunRow,
  RunStatus,
  RunStore,
  RunWrite,
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
export type { McpServer, McpTools } from './tool/mcp/mcp-tools.ts'
export { narrow, type Policy, policy } from './tool/policy/policy.ts'
export type { PolicyRules } from './tool/policy/rules.ts'
export type { Effect, Tool, ToolContent, ToolContext, ToolFailure, ToolSchema } from './tool/spec.ts'
export { type ToolDefinition, tool } from './tool/tool.ts'
