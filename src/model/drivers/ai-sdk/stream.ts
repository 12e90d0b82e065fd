import { onAbort } from '../../../base/abort.ts'
import { brokenStream, type Failing, modelError } from '../../errors.ts'
import type { ModelDelta } from '../../spec.ts'
import type { Told } from './answer.ts'
import { addMetadata, type CallBlock, Content, type TextBlock } from './content.ts'
import type { StreamPart } from './types.ts'

/** Reads a stream to its end, telling about every piece. Leaves it cancelled when it fails or the signal aborts. */
export async function readStream(
  stream: ReadableStream<StreamPart>,
  told: Told,
  onDelta: (delta: ModelDelta) => void,
  signal: AbortSignal,
  failing: Failing,
): Promise<Content> {
  const reader = stream.getReader()
  const cancel = () => void reader.cancel(signal.reason).catch(() => {})
  const link = onAbort(signal, cancel)
  const gathering = new Gathering(told, onDelta, failing)
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      gathering.take(value)
    }
  } catch (error) {
    cancel()
    // A connection that breaks after the provider's last word took nothing from the answer.
    if (!gathering.finished) throw modelError(error, failing)
  } finally {
    link[Symbol.dispose]()
  }
  if (!gathering.finished) throw brokenStream(failing)
  return gathering.content
}

class Gathering {
  readonly content = new Content()
  finished = false
  readonly #told: Told
  readonly #onDelta: (delta: ModelDelta) => void
  readonly #failing: Failing
  readonly #texts = new Map<string, TextBlock>()
  readonly #reasonings = new Map<string, TextBlock>()
  /** The block that the last piece went to: the next one nearly always goes there too. */
  #lastId: string | undefined
  #last: TextBlock | CallBlock | undefined

  constructor(told: Told, onDelta: (delta: ModelDelta) => void, failing: Failing) {
    this.#told = told
    this.#onDelta = onDelta
    this.#failing = failing
  }

  take(part: StreamPart): void {
    switch (part.type) {
      case 'text-delta': {
        const block = this.#block('text', part.id)
        if (part.providerMetadata !== undefined) addMetadata(block, part.providerMetadata)
        if (part.delta === '') return
        block.text += part.delta
        this.#onDelta({ type: 'text-delta', text: part.delta })
        return
      }
      case 'reasoning-delta': {
        const block = this.#block('reasoning', part.id)
        if (part.providerMetadata !== undefined) addMetadata(block, part.providerMetadata)
        if (part.delta === '') return
        block.text += part.delta
        this.#onDelta({ type: 'reasoning-delta', text: part.delta })
        return
      }
      case 'tool-input-delta':
        this.#input(part.id, part.delta)
        return
      case 'text-start':
        addMetadata(this.#start('text', part.id), part.providerMetadata)
        return
      case 'reasoning-start':
        addMetadata(this.#start('reasoning', part.id), part.providerMetadata)
        return
      case 'text-end':
        addMetadata(this.#block('text', part.id), part.providerMetadata)
        return
      case 'reasoning-end':
        addMetadata(this.#block('reasoning', part.id), part.providerMetadata)
        return
      case 'tool-input-start':
        if (part.providerExecuted) return
        this.#last = this.content.startCall(part.id, part.toolName)
        this.#lastId = part.id
        return
      case 'tool-call':
        this.content.call(part)
        return
      case 'file':
        this.content.file(part)
        return
      case 'stream-start':
        this.#told.warnings = part.warnings
        return
      case 'response-metadata':
        this.#told.responseId = part.id ?? this.#told.responseId
        this.#told.modelId = part.modelId ?? this.#told.modelId
        return
      case 'finish':
        this.finished = true
        this.#told.usage = part.usage
        this.#told.finishReason = part.finishReason
        this.#told.providerMetadata = part.providerMetadata
        return
      case 'error':
        this.finished = false
        throw modelError(part.error, this.#failing)
    }
  }

  #block(type: 'text' | 'reasoning', id: string): TextBlock {
    const last = this.#last
    if (this.#lastId === id && last?.type === type) return last
    const block = this.#of(type).get(id) ?? this.#start(type, id)
    this.#lastId = id
    this.#last = block
    return block
  }

  /** A new block; packages use an id again when they come back to text after something else. */
  #start(type: 'text' | 'reasoning', id: string): TextBlock {
    const block = this.content.text(type)
    this.#of(type).set(id, block)
    this.#lastId = id
    this.#last = block
    return block
  }

  #of(type: 'text' | 'reasoning'): Map<string, TextBlock> {
    return type === 'text' ? this.#texts : this.#reasonings
  }

  #input(id: string, delta: string): void {
    const last = this.#last
    const block = this.#lastId === id && last?.type === 'tool-call' ? last : this.content.openCall(id)
    if (block === undefined || delta === '') return
    this.#lastId = id
    this.#last = block
    block.text += delta
    this.#onDelta({ type: 'tool-input-delta', callId: block.id, tool: block.name, text: delta })
  }
}
