import type { MemoryCapabilities } from './spec.ts'

/** Of a memory that keeps all of it itself; meaning is found by with an embedding model. */
export function allCapabilities(vectors: boolean): MemoryCapabilities {
  return { vectors, history: true, expiry: true, lanes: true, resources: true }
}
