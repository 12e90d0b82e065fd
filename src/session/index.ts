export type { Digest } from '../base/digest.ts'
export { type Blame, type ErrorCode, RathError, type Retry } from '../base/errors.ts'
export type { Json, JsonObject } from '../base/json.ts'
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
} from './chunk.ts'
export type { ChunkList } from './chunk-list.ts'
export type { SessionDiff } from './diff.ts'
export type { FileConflict, OnConflict, Settlement } from './files.ts'
export { type GraphEdge, type GraphNode, type SessionGraph, sessionGraph } from './graph.ts'
export type { ReadOptions } from './jsonl/read.ts'
export type { Lineage, Operation, OperationOptions } from './lineage.ts'
export type { Message } from './message.ts'
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
} from './part.ts'
export type { Pending } from './pending.ts'
export type { Placement } from './placement.ts'
export {
  type ForkOptions,
  type MergeBranch,
  type MergeOptions,
  type MergePolicy,
  Session,
} from './session.ts'
export { readSessions, writeSessions } from './stream.ts'
export type { Usage } from './usage.ts'
export type { Verification, VerificationProblem } from './verify.ts'
