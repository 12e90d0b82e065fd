import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, it } from 'vitest'

/** Three processes, each of which reads the whole library. */
const timeout = 60_000
const source = join(import.meta.dirname, '../../src')

/** Runs an agent in a process of its own, and tells which packages of OpenTelemetry were asked for. */
function loadedWith(telemetry: string): string[] {
  const program = `
    import { registerHooks } from 'node:module'
    const loaded = []
    registerHooks({
      resolve(name, context, next) {
        if (name.includes('opentelemetry')) loaded.push(name)
        return next(name, context)
      },
    })
    const { Agent } = await import(${JSON.stringify(join(source, 'flow/agent.ts'))})
    const { createRuntime } = await import(${JSON.stringify(join(source, 'run/runtime.ts'))})
    const { scripted } = await import(${JSON.stringify(join(source, 'testing/scripted.ts'))})
    const { Session } = await import(${JSON.stringify(join(source, 'session/session.ts'))})
    const runtime = createRuntime({ store: 'memory:', telemetry: ${telemetry} })
    const out = await runtime.run(new Agent('Be brief.', { model: scripted(['done']), builtins: false }), Session.fromUserMessage('go'))
    console.log(JSON.stringify({ said: out.text, loaded }))
    await runtime.close()
  `
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', program], {
    encoding: 'utf8',
  })
  const { said, loaded } = JSON.parse(stdout || `{"said":${JSON.stringify(stderr)}}`)
  expect(said).toBe('done')
  return loaded
}

it(
  'nothing of OpenTelemetry is loaded unless telemetry was asked for',
  () => {
    expect(loadedWith('undefined')).toEqual([])
    expect(loadedWith('false')).toEqual([])
  },
  timeout,
)

it(
  'the API alone is loaded when it was, and runs work without an SDK',
  () => {
    expect(loadedWith('true')).toEqual(['@opentelemetry/api'])
  },
  timeout,
)
