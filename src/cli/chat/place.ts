import { RathError } from '../../base/errors.ts'
import type { JsonObject } from '../../base/json.ts'
import type { SandboxBackend } from '../../sandbox/spec.ts'
import { UsageError } from '../errors.ts'

/** Where the commands of a chat run, and the sentence that says so. */
export interface ChatPlace {
  readonly backend: 'local' | 'isolated'
  readonly spec: string | JsonObject
  readonly said: string
}

export interface PlaceOptions {
  readonly local?: boolean
  readonly isolated?: boolean
  /** Hosts that isolated commands may reach. */
  readonly allow?: readonly string[]
}

/** Isolated where this machine can do that in this folder; on it as you where it cannot, or with `local`. Whoever asks for isolation gets it or an error. */
export async function choosePlace(
  isolated: SandboxBackend,
  folder: string,
  { local, isolated: wanted, allow = [] }: PlaceOptions,
): Promise<ChatPlace> {
  if (local && (wanted || allow.length > 0)) {
    throw new UsageError('--local runs commands as you; it does not go with --isolated or --allow.')
  }
  const asYou = 'Commands run local: on this machine as you, with your files and the network.'
  if (local) return { backend: 'local', spec: folder, said: `${asYou} --isolated keeps them in this folder.` }
  const spec = allow.length === 0 ? folder : { path: folder, network: { allow: [...allow] } }
  try {
    const sandbox = await isolated.open(spec)
    await sandbox.close()
  } catch (error) {
    if (!(error instanceof RathError) || wanted || allow.length > 0) throw error
    return { backend: 'local', spec: folder, said: `${asYou} They could not be isolated: ${error.message}` }
  }
  const reach = allow.length === 0 ? 'no network' : `of the network only ${allow.join(', ')}`
  const said = `Commands run isolated: they see this folder, the programs of the system and ${reach}. --local runs them as you.`
  return { backend: 'isolated', spec, said }
}
