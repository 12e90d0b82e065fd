import { RathError, show, toRathError } from '../base/errors.ts'
import type { ForwardContext } from '../run/forward.ts'
import { Session } from '../session/session.ts'

/** Called before `forward`. A session that it returns takes the place of the input. */
export type BeforeForwardHook<W = unknown> = (workflow: W, session: Session) => HookResult
/** Called after `forward`, with what went in and what came out. A session that it returns takes the place of the result. */
export type ForwardHook<W = unknown> = (workflow: W, session: Session, result: Session) => HookResult
// biome-ignore lint/suspicious/noConfusingVoidType: a hook that only looks returns nothing, and may be async.
type HookResult = Session | void | Promise<Session | void>

interface Hooks {
  readonly before: Set<{ readonly hook: BeforeForwardHook<never> }>
  readonly after: Set<{ readonly hook: ForwardHook<never> }>
}

const registered = new WeakMap<object, Hooks>()

/** Adds a hook behind those that are there; disposing what is returned takes it off again. */
export function addHook(
  workflow: object,
  when: 'before' | 'after',
  hook: BeforeForwardHook<never> | ForwardHook<never>,
): Disposable {
  if (typeof hook !== 'function') {
    throw new RathError('invalid-argument', `A hook is a function, not ${show(hook)}.`)
  }
  let hooks = registered.get(workflow)
  if (hooks === undefined) {
    hooks = { before: new Set(), after: new Set() }
    registered.set(workflow, hooks)
  }
  // Wrapped, so that the same function added twice runs twice and is taken off one at a time.
  const entry = { hook }
  const entries: Set<{ hook: typeof hook }> = hooks[when]
  entries.add(entry)
  return { [Symbol.dispose]: () => void entries.delete(entry) }
}

/** Runs `forward` with the hooks of its workflow around it, in the order they were added. */
export function withHooks(
  workflow: {
    readonly name: string
    forward(session: Session, context: ForwardContext): Session | Promise<Session>
  },
  session: Session,
  context: ForwardContext,
): Session | Promise<Session> {
  const hooks = registered.get(workflow)
  if (hooks === undefined || hooks.before.size + hooks.after.size === 0)
    return workflow.forward(session, context)
  return forwardWithin(workflow, hooks, session, context)
}

async function forwardWithin(
  workflow: Parameters<typeof withHooks>[0],
  { before, after }: Hooks,
  session: Session,
  context: ForwardContext,
): Promise<Session> {
  let given = session
  for (const { hook } of [...before]) {
    given = await replacement(hook, 'before', workflow.name, given, () => hook(workflow as never, given))
  }
  let result = await workflow.forward(given, context)
  for (const { hook } of [...after]) {
    result = await replacement(hook, 'after', workflow.name, result, () =>
      hook(workflow as never, given, result),
    )
  }
  return result
}

async function replacement(
  hook: { readonly name: string },
  when: string,
  workflow: string,
  session: Session,
  run: () => HookResult,
): Promise<Session> {
  const named = `The hook ${hook.name || '(anonymous)'} ${when} ${workflow}.forward`
  let returned: unknown
  try {
    returned = await run()
  } catch (error) {
    const { code, message, data, session: soFar } = toRathError(error)
    const failure = new RathError(code, `${named} threw: ${message}`, { cause: error, data })
    if (soFar !== undefined) failure.session = soFar
    throw failure
  }
  if (returned === undefined) return session
  if (returned instanceof Session) return returned
  throw new RathError(
    'invalid-argument',
    `${named} returned ${show(returned)}; a hook returns a Session or nothing.`,
  )
}
