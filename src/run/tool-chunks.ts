import type { Json, JsonObject } from '../base/json.ts'
import type { ChunkInput } from '../session/chunk.ts'
import type { CallRecord } from '../tool/dispatch.ts'
import type { ToolEvidence } from '../tool/tool-record.ts'

/** What a call leaves on the record: what was asked of people, what was found of the files, what its own code did, and its result. */
export function toolChunks({
  call,
  args,
  outcome,
  durationMs,
  evidence,
  at,
  inside = {},
  approvals,
}: CallRecord): ChunkInput[] {
  const { sessions, usage, notes = [] } = inside
  return [
    ...approvals,
    ...(evidence ? filesFound(evidence) : []),
    ...notes,
    {
      kind: 'tool-result',
      callId: call.id,
      tool: call.name,
      args,
      outcome,
      durationMs,
      ...(at !== undefined && { at }),
      ...(sessions && { sessions }),
      ...(usage && { usage }),
      ...(evidence && chunkFields(evidence)),
    },
  ]
}

/** What the chunk says of where a call ran. */
function chunkFields({
  ranOn,
  before,
  tree,
  files,
  moreFiles,
  session,
}: ToolEvidence): Omit<ToolEvidence, 'session' | 'moreFiles'> & { extras?: JsonObject } {
  const extras = {
    ...(moreFiles !== undefined && { moreFiles }),
    ...(session !== undefined && { session }),
  }
  return {
    ...(ranOn && { ranOn }),
    ...(before !== undefined && { before }),
    ...(tree !== undefined && { tree }),
    ...(files && { files }),
    ...(Object.keys(extras).length > 0 && { extras }),
  }
}

/** What was found of the files besides what the call did to them. */
function filesFound({ drift, putAway, problem }: ToolEvidence): ChunkInput[] {
  return [
    ...(putAway === undefined
      ? []
      : [{ kind: 'note', name: 'files-put-away', data: { tree: putAway } } as const]),
    ...(drift ? [{ kind: 'note', name: 'drift', data: drift as unknown as Json } as const] : []),
    ...(problem === undefined
      ? []
      : [
          {
            kind: 'error',
            error: 'files-not-kept',
            message: `The files could not be kept: ${problem}`,
          } as const,
        ]),
  ]
}
