import type { Surroundings } from '../../src/model/surroundings.ts'

export interface Place extends Surroundings {
  readonly warnings: string[]
}

/** A machine with this environment and these files; a file is its content, or its content and mode. */
export function place(env: Record<string, string> = {}, files: Record<string, unknown> = {}): Place {
  const warnings: string[] = []
  const at = new Map<string, { text: string; mode: number }>()
  for (const [path, given] of Object.entries(files)) {
    const [content, mode] = Array.isArray(given) ? given : [given, 0o600]
    at.set(path, { text: typeof content === 'string' ? content : JSON.stringify(content), mode })
  }
  return {
    env,
    cwd: '/project',
    home: '/home/ann',
    warnings,
    warn: message => void warnings.push(message),
    files: {
      read: path => at.get(path)?.text,
      stat: path => {
        const file = at.get(path)
        if (file) return { isDirectory: false, mode: file.mode }
        const isDirectory = [...at.keys()].some(name => name.startsWith(`${path}/`))
        return isDirectory ? { isDirectory } : undefined
      },
    },
  }
}

export const config = (providers: object, more: object = {}) => ({ version: 1, llm: { providers, ...more } })
