import '../base/node-version.ts'

export { Agent, type AgentOptions } from '../flow/agent.ts'
export type { AgentToolOptions } from '../flow/agent-tool.ts'
export type { Compiled } from '../flow/compile.ts'
export { Compressor, type CompressorOptions } from '../flow/compressor.ts'
export { type MapOptions, map, Parallel, type ParallelOptions, Sequential } from '../flow/containers.ts'
export { EmptyWorkflow } from '../flow/empty-workflow.ts'
export type { FanOutOptions, OnFailure, RetryBranch } from '../flow/fan-out.ts'
export type { BeforeForwardHook, ForwardHook } from '../flow/hooks.ts'
export type { Join, JoinBranches, Judge } from '../flow/join.ts'
export type { Layer } from '../flow/layer.ts'
export type {
  Manifest,
  ManifestModel,
  ManifestModule,
  ManifestSandbox,
  ManifestServer,
  ManifestTool,
  Problem,
} from '../flow/manifest.ts'
export type { ModelPart } from '../flow/model-part.ts'
export type { AgentParam, Needs } from '../flow/needs.ts'
export { restore } from '../flow/restore.ts'
export { type Decision, Selector, type SelectorOptions } from '../flow/selector.ts'
export type { WorkflowJson } from '../flow/tree.ts'
export { type Module, Workflow } from '../flow/workflow.ts'
export { FlowToolCall } from '../tool/flow-tool-call.ts'
