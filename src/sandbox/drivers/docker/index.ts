export type { DockerSpec } from './docker-spec.ts'
export { type DockerOptions, dockerBackend } from './driver.ts'
export { type Leftover, type LeftoversOptions, leftovers } from './leftovers.ts'
