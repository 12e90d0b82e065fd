import '../base/node-version.ts'

export { type LocalMemoryOptions, localMemory } from '../memory/drivers/local/local-memory.ts'
export type { AiEmbeddingModel, Embedder } from '../memory/embedding.ts'
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
} from '../memory/spec.ts'
export type { RecallOptions, RememberOptions } from '../run/memory/agent-memory.ts'
export type { CommitMemoryOptions } from '../run/memory/commit.ts'
export { extractionPrompt } from '../run/memory/extract.ts'
export type { MemoryLike } from '../run/memory/memories.ts'
export type { RecallPolicy } from '../run/memory/recall-policy.ts'
