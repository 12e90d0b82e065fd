import { isAzure, type ProviderKind } from './kind.ts'
import type { Surroundings } from './surroundings.ts'

/** What the environment says about one kind of provider. */
export interface EnvironmentSays {
  readonly apiKey?: string
  /** The variable that holds the key, or would. */
  readonly keyName: string
  readonly baseURL?: string
  readonly hostName: string
  readonly model?: string
  readonly modelName: string
  readonly apiVersion?: string
}

type Environment = Surroundings['env']

/** Azure's variables belong to OpenAI's when `OPENAI_BASE_URL` leads to Azure. Empty variables count as unset. */
export function environmentSays(kind: ProviderKind, env: Environment): EnvironmentSays {
  if (kind === 'anthropic')
    return pick(env, ['ANTHROPIC_API_KEY'], ['ANTHROPIC_BASE_URL'], 'ANTHROPIC_DEFAULT_MODEL')
  if (kind !== 'azure') return pick(env, ['OPENAI_API_KEY'], ['OPENAI_BASE_URL'], 'OPENAI_DEFAULT_MODEL')
  const atAzure = isAzure(env.OPENAI_BASE_URL)
  const says = pick(
    env,
    ['AZURE_OPENAI_API_KEY', 'AZURE_API_KEY', ...(atAzure ? ['OPENAI_API_KEY'] : [])],
    ['AZURE_OPENAI_ENDPOINT', ...(atAzure ? ['OPENAI_BASE_URL'] : [])],
    'OPENAI_DEFAULT_MODEL',
  )
  const apiVersion = env.AZURE_OPENAI_API_VERSION || env.OPENAI_API_VERSION
  return apiVersion ? { ...says, apiVersion } : says
}

/** Kinds that the environment has anything for, the first to be tried first. */
export function kindsInEnvironment(env: Environment): ProviderKind[] {
  const kinds: ProviderKind[] = isAzure(env.OPENAI_BASE_URL)
    ? ['azure', 'anthropic']
    : ['openai', 'azure', 'anthropic']
  return kinds.filter(kind => {
    const { apiKey, baseURL } = environmentSays(kind, env)
    return apiKey !== undefined || baseURL !== undefined
  })
}

function pick(
  env: Environment,
  keys: readonly string[],
  hosts: readonly string[],
  modelName: string,
): EnvironmentSays {
  const keyName = keys.find(name => env[name]) ?? (keys[0] as string)
  const hostName = hosts.find(name => env[name]) ?? (hosts[0] as string)
  const [apiKey, baseURL, model] = [env[keyName], env[hostName], env[modelName]]
  return {
    keyName,
    hostName,
    modelName,
    ...(apiKey && { apiKey }),
    ...(baseURL && { baseURL }),
    ...(model && { model }),
  }
}
