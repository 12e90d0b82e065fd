import '../base/node-version.ts'

export type { Keep } from '../run/compress.ts'
export { openStore } from '../run/open-store.ts'
export type { StoreDriver } from '../store/driver.ts'
export type {
  BlobStore,
  CancelRequest,
  Durability,
  GcOptions,
  GcReport,
  JournalEntry,
  NewEntry,
  NewRun,
  PutOptions,
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
} from '../store/spec.ts'
export { createStore } from '../store/store.ts'
