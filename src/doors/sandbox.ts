import '../base/node-version.ts'

export { type IsolatedOptions, isolatedBackend } from '../sandbox/drivers/isolated/driver.ts'
export type { IsolatedLimits, IsolatedSpec } from '../sandbox/drivers/isolated/isolated-spec.ts'
export { type LocalOptions, localBackend } from '../sandbox/drivers/local/driver.ts'
export type { LocalSpec } from '../sandbox/drivers/local/local-spec.ts'
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
} from '../sandbox/spec.ts'
