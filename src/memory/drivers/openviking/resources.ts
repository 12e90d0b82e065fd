import { readResource } from '../../resource.ts'
import type { Memory, Resource } from '../../spec.ts'
import type { VikingClient } from './client.ts'
import { listFiles, readFiles } from './files.ts'
import { resourceFolder } from './places.ts'

/**
 * Hands a text over as a resource of the server, which divides it itself; what was there under the name gives way. Files and addresses are
 * read here, never by the server, so that what may be read is decided in one place.
 */
export async function takeIn(
  client: VikingClient,
  resource: Resource,
  summarise: boolean,
  signal?: AbortSignal,
): Promise<readonly Memory[]> {
  const { name, text } = await readResource(resource, {}, signal)
  const form = new FormData()
  form.set(
    'file',
    new Blob([text], { type: 'text/markdown' }),
    /\.\w+$/.test(name) ? 'resource.md' : 'resource.txt',
  )
  const { temp_file_id: upload } = await client.call<{ temp_file_id: string }>(
    'POST',
    '/api/v1/resources/temp_upload',
    {
      form,
      signal,
    },
  )
  const to = resourceFolder(name)
  await client.call('POST', '/api/v1/resources', {
    body: {
      temp_file_id: upload,
      to,
      wait: true,
      processing_mode: summarise ? 'semantic_and_vectors' : 'vectors_only',
    },
    signal,
  })
  return readFiles(client, await listFiles(client, [to], signal), signal)
}
