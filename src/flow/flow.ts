export { Agent, type AgentOptions } from './agent.ts'
export { Workflow } from './workflow.ts'
