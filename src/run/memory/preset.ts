import { RathError, show } from '../../base/errors.ts'
import { isPlainObject, type JsonObject } from '../../base/json.ts'
import { readAgreedConfig, readConfig } from '../../model/config.ts'
import { processSurroundings } from '../../model/surroundings.ts'

/**
 * A preset of the config file, `memory.providers.NAME`, as a spec; undefined when there is none of that name. The file may lie in a folder that
 * somebody else wrote, so it cannot say which server a key from the environment is sent to. A preset that is named like a backend is one of
 * that backend, and a config that nobody has agreed to has none.
 */
export function memoryPreset(name: string, isBackend: boolean): JsonObject | undefined {
  const { raw, paths } = (isBackend ? readAgreedConfig : readConfig)(processSurroundings())
  const { memory } = raw
  const presets = isPlainObject(memory) ? memory.providers : undefined
  const preset = isPlainObject(presets) && Object.hasOwn(presets, name) ? presets[name] : undefined
  if (preset === undefined) return undefined
  if (!isPlainObject(preset)) {
    throw new RathError(
      'config-malformed',
      `${paths[0]}: memory.providers.${name} must be an object, not ${show(preset)}.`,
    )
  }
  const {
    backend_kind: backend = 'local',
    embedding_provider: _,
    chat_provider: __,
    ...spec
  } = preset as JsonObject
  if (isBackend && backend !== name) {
    throw new RathError(
      'config-malformed',
      `${paths[0]}: memory.providers.${name} is named like the backend ${name} and is one of ${show(backend)}. Call it otherwise.`,
    )
  }
  if (spec.url !== undefined) {
    throw new RathError(
      'config-malformed',
      `${paths[0]}: memory.providers.${name} names a url, and a config file cannot send keys of yours somewhere. Give it in code: memory: { backend: ${show(backend)}, url }.`,
    )
  }
  return { backend, ...spec }
}
