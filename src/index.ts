import './base/node-version.ts'

export type { Digest } from './base/digest.ts'
export { type Blame, type ErrorCode, RathError, type Retry } from './base/errors.ts'
export type { Json, JsonObject } from './base/json.ts'
export type {
  Chunk,
  ChunkInput,
  ChunkKind,
  FileChange,
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
export { openStore } from './store/open.ts'
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
