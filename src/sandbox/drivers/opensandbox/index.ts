export { type OpenSandboxOptions, openSandboxBackend } from './driver.ts'
export type { OpenSandboxSpec } from './open-sandbox-spec.ts'
