import type { Chunk } from './chunk.ts'

/** Whether a model is shown a chunk, as long as no summary stands for it. */
export function reachesModel(chunk: Chunk): boolean {
  switch (chunk.kind) {
    case 'system':
    case 'user':
    case 'assistant':
    case 'tool-result':
    case 'compress':
      return true
    case 'memory':
      return Boolean(chunk.injected)
    default:
      return false
  }
}
