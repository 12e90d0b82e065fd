export type { AgentOptions } from './agent.ts'
export { Agent } from './agent.ts'
export type { AgentToolOptions } from './agent-tool.ts'
export type { Compiled } from './compile.ts'
export { Compressor, type CompressorOptions } from './compressor.ts'
export { type MapOptions, map, Parallel, type ParallelOptions, Sequential } from './containers.ts'
export { EmptyWorkflow } from './empty-workflow.ts'
export type { FanOutOptions, OnFailure, RetryBranch } from './fan-out.ts'
export type { BeforeForwardHook, ForwardHook } from './hooks.ts'
export type { Join, JoinBranches, Judge } from './join.ts'
export type { Layer } from './layer.ts'
export type {
  Manifest,
  ManifestModel,
  ManifestModule,
  ManifestSandbox,
  ManifestServer,
  ManifestTool,
  Problem,
} from './manifest.ts'
export type { ModelPart } from './model-part.ts'
export type { AgentParam, Needs } from './needs.ts'
export { restore } from './restore.ts'
export { type Decision, Selector, type SelectorOptions } from './selector.ts'
export type { WorkflowJson } from './tree.ts'
export { type Module, Workflow } from './workflow.ts'
