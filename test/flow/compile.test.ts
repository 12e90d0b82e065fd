import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Agent } from '../../src/flow/agent.ts'
import { Parallel, Sequential } from '../../src/flow/containers.ts'
import { Selector } from '../../src/flow/selector.ts'
import { Workflow } from '../../src/flow/workflow.ts'
import { Provider } from '../../src/model/provider.ts'
import type { Session } from '../../src/session/session.ts'
import { scripted } from '../../src/testing/scripted.ts'
import { setMcpOrigin } from '../../src/tool/mcp/origin.ts'
import { tool } from '../../src/tool/tool.ts'
import { echo } from '../run/make.ts'

const secret = 'sk-very-secret-key-123456'

beforeEach(() => {
  for (const name of ['OPENAI_API_KEY', 'OPENAI_BASE_URL', 'ANTHROPIC_API_KEY', 'ANTHROPIC_BASE_URL'])
    vi.stubEnv(name, undefined)
  vi.stubEnv('OPENRATH_HOME', '/nowhere/at/all')
})
afterEach(() => vi.unstubAllEnvs())

const pay = tool({
  name: 'pay',
  description: 'Pays.',
  input: { type: 'object' },
  approval: true,
  run: () => 'paid',
})

class Readme extends Workflow {
  writer = new Agent('Write.', {
    model: 'openai/gpt-5.5',
    tools: [echo],
    builtins: ['run_code', 'read_workspace_file'],
  })
  critic = new Agent('Criticise.', {
    model: 'anthropic/claude-opus-5-5',
    builtins: false,
    budget: { cost: 2 },
    memory: { backend: 'local', name: 'team' },
  })
  payer = new Agent('Pay.', { model: scripted([]), tools: [pay], builtins: false, memory: 'team' })
  choose = new Selector({ model: 'openai/gpt-5.5' })
  forward(session: Session) {
    return this.critic(this.writer(session))
  }
}

describe('compile', () => {
  it('lists modules, models, tools, sandboxes, memories, budgets and what only running it shows', () => {
    vi.stubEnv('OPENAI_API_KEY', secret)
    const { manifest } = new Readme().compile()
    expect(manifest.modules.map(({ path, type }) => [path, type])).toEqual([
      ['', 'Readme'],
      ['writer', 'Agent'],
      ['critic', 'Agent'],
      ['payer', 'Agent'],
      ['choose', 'Selector'],
    ])
    expect(manifest.models).toMatchObject([
      {
        id: 'openai/gpt-5.5',
        usedBy: ['writer', 'choose'],
        credentials: { status: 'found', source: 'OPENAI_API_KEY', address: 'https://api.openai.com/v1' },
      },
      {
        id: 'anthropic/claude-opus-5-5',
        usedBy: ['critic'],
        credentials: { status: 'missing', code: 'credentials-missing' },
      },
      { id: 'scripted/model', usedBy: ['payer'], credentials: { status: 'own' } },
    ])
    expect(manifest.tools).toEqual([
      { name: 'run_code', effect: 'external', approval: 'never', usedBy: ['writer'] },
      { name: 'read_workspace_file', effect: 'read', approval: 'never', usedBy: ['writer'] },
      { name: 'echo', effect: 'pure', approval: 'never', usedBy: ['writer'] },
      { name: 'pay', effect: 'external', approval: 'always', usedBy: ['payer'] },
    ])
    expect(manifest.sandboxes).toEqual([
      { usedBy: 'writer', needs: ['files', 'commands'], tools: ['run_code', 'read_workspace_file'] },
    ])
    expect(manifest.memories).toEqual([{ name: 'team', usedBy: ['critic', 'payer'] }])
    expect(manifest.budgets).toEqual([{ path: 'critic', limits: { cost: 2 } }])
    const unknown = manifest.unknown.map(({ path, reason }) => `${path}: ${reason}`)
    expect(unknown).toContainEqual(expect.stringContaining(': what its forward calls'))
    expect(unknown).toContainEqual(expect.stringContaining('payer: who decides about calls of pay'))
    expect(unknown).toContainEqual(expect.stringContaining('choose: what Selector is asked'))
    expect(unknown).toContainEqual(expect.stringContaining('writer: where it works'))
    // The critic's is a local one; nobody knows yet what the payer's name means.
    expect(unknown.filter(one => one.includes('memory'))).toEqual([
      'payer: where its memory team is: the default runtime has none of that name',
    ])
  })

  it('finds every problem at once, without a network and without spending anything', () => {
    class Bad extends (Workflow as unknown as new () => Readme) {
      first = new Agent('', { model: 'openai/gpt-5.5' })
      second = new Agent('', { model: 'anthropic/claude-opus-5-5', budget: { tokens: -1 } })
      self: unknown = this
    }
    const problems = new Bad().compile().validate()
    expect(problems.map(({ path, code }) => [path, code])).toEqual([
      ['', 'invalid-argument'],
      ['first', 'credentials-missing'],
      ['second', 'credentials-missing'],
      ['second', 'invalid-argument'],
      ['self', 'graph-cycle'],
    ])
    expect(problems[0]?.message).toContain('Bad has no forward')
    expect(problems[1]?.message).toContain('OPENAI_API_KEY')
  })

  it('has no problem with a tree that can run, and sees through containers', () => {
    const model = scripted([])
    const steps = new Sequential(
      new Agent('', { model, builtins: false }),
      new Parallel({ a: new Agent('', { model, builtins: false }) }, { join: 'first' }),
    )
    const compiled = steps.compile()
    expect(compiled.validate()).toEqual([])
    expect(compiled.manifest.models).toHaveLength(1)
    expect(compiled.manifest.models[0]?.usedBy).toEqual(['0', '1.a'])
    expect(compiled.manifest.unknown.map(({ path }) => path)).toEqual(['0', '1', '1.a'])
  })

  it('names the MCP servers behind tools, without their arguments or headers', () => {
    const search = setMcpOrigin({ ...echo, name: 'search' }, 'web', {
      url: 'https://user:pass@mcp.example/api?key=hidden',
      headers: { authorization: secret },
    })
    const agent = new Agent('', { model: scripted([]), tools: [search], builtins: false })
    const compiled = agent.compile()
    expect(compiled.manifest.mcpServers).toEqual([
      { name: 'web', at: 'https://mcp.example/api', tools: ['search'] },
    ])
    expect(compiled.manifest.tools[0]?.server).toBe('web')
    expect(String(compiled) + JSON.stringify(compiled)).not.toMatch(/hidden|pass@|sk-very/)
  })

  it('never shows a key, wherever it came from', () => {
    vi.stubEnv('OPENAI_API_KEY', secret)
    class Team extends Workflow {
      named = new Agent('', { model: 'openai/gpt-5.5' })
      given = new Agent('', { provider: new Provider({ model: 'gpt-5.5', apiKey: `${secret}-given` }) })
      forward(session: Session) {
        return session
      }
    }
    const compiled = new Team().compile()
    expect(compiled.manifest.models.map(model => model.credentials)).toMatchObject([
      { source: 'OPENAI_API_KEY' },
      { source: 'new Provider(…)' },
    ])
    expect(String(compiled) + JSON.stringify(compiled)).not.toContain(secret)
  })

  it('reads well', () => {
    vi.stubEnv('OPENAI_API_KEY', secret)
    class Small extends Workflow {
      override description = 'Counts words.'
      agent = new Agent('Count.', {
        model: 'openai/gpt-5.5',
        tools: [echo],
        builtins: false,
        memory: 'local',
      })
      again = this.agent
      forward(session: Session) {
        return this.agent(session)
      }
    }
    expect(String(new Small().compile())).toBe(
      [
        'Small: no problems',
        '',
        'modules',
        '  (root)  Small                     Counts words.',
        '  agent   Agent',
        '  again   Agent, the same as agent',
        '',
        'models',
        '  openai/gpt-5.5  credentials from OPENAI_API_KEY  used by agent',
        '',
        'tools',
        '  echo  pure  used by agent',
        '',
        'memories',
        '  local  used by agent',
        '',
        'known only when it runs',
        '  (root)  what its forward calls, in which order and how often: it is code',
        '  agent   how many of its 64 rounds it takes, and which tools the model calls',
      ].join('\n'),
    )
  })

  it('is data as JSON', () => {
    const { manifest, problems } = JSON.parse(JSON.stringify(new Readme().compile()))
    expect(manifest.name).toBe('Readme')
    expect(problems).toHaveLength(3)
  })
})
