// Whom the examples ask: with a key in the environment a real model, without one the script that the example brings. In a program of
// yours the name of a model is enough: `new Agent('…', { model: 'openai/gpt-5.5' })`.
import type { ModelLike } from 'openrath'

/** Reads what the library reads: the key, its `…_BASE_URL`, `…_DEFAULT_MODEL`. */
export function modelOr(script: ModelLike): ModelLike {
  const { env } = process
  if (env.OPENAI_API_KEY) return tell(`openai/${env.OPENAI_DEFAULT_MODEL || 'gpt-5.5'}`)
  if (env.ANTHROPIC_API_KEY) return tell(`anthropic/${env.ANTHROPIC_DEFAULT_MODEL || 'claude-opus-5-5'}`)
  return script
}

let isTold = false

/** Says once that answers are paid for now. */
function tell(model: string): string {
  if (!isTold) console.error(`(asking ${model}; without a key in the environment a script answers)`)
  isTold = true
  return model
}
