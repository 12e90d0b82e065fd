import { RathError } from '../../base/errors.ts'
import type { Sandbox } from '../../sandbox/spec.ts'
import type { ToolContext } from '../spec.ts'
import { ToolError } from '../tool-error.ts'

/** Works in the call's sandbox. What it refuses is a failure that the model reads as it is worded. */
export async function inSandbox<T>(context: ToolContext, work: (sandbox: Sandbox) => Promise<T>): Promise<T> {
  try {
    return await work(await context.sandbox)
  } catch (error) {
    if (!(error instanceof RathError) || error instanceof ToolError) throw error
    const failure = error.code === 'cancelled' ? 'cancelled' : 'threw'
    throw new ToolError(failure, error.message, {
      cause: error,
      detail: { code: error.code, ...error.data },
    })
  }
}
