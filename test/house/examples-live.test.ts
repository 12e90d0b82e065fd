import { describe, test } from 'vitest'
import { wireServer } from '../model/wire-server.ts'
import { chatServer } from '../support/chat-server.ts'
import { obey } from './obedient-model.ts'
import { start } from './run.ts'
import { filesUnder } from './tree.ts'

/** Those that ask no model, with a key or without: the Session, what is missing before anything is asked, a sandbox, a memory. */
const silent = ['02-lineage.ts', '12-compile.ts', 'backends/e2b.ts', 'backends/mem0.ts']
/** Those that name their models themselves. */
const named = ['10-providers.ts', 'maintainer.ts']
const asking = filesUnder('examples', '.ts').filter(name => name !== 'model.ts' && !silent.includes(name))

describe.concurrent('with a key', () => {
  for (const name of asking) {
    test(`examples/${name} asks the model that the environment names, and comes to its end`, async ({
      expect,
    }) => {
      await using server = await chatServer(obey)
      const { stdout, stderr, status } = await start(exampleWith(name), server.env)
      expect(status, stdout + stderr).toBe(0)
      expect(stdout).not.toMatch(/undefined|\[object|NaN/)
      // Whoever has a key learns that it is used.
      if (!named.includes(name)) expect(stderr).toMatch(/^\(asking openai\/house-model; .*\)\n$/)
      expect(server.asked.length).toBeGreaterThan(0)
      for (const { model } of server.asked) expect(model).toMatch(/^(house-model|gpt-5\.5)$/)
      for (const line of lines[name] ?? []) expect(stdout).toContain(line)
    })
  }

  test('examples/12-compile.ts asks nobody, and says where the key was found', async ({ expect }) => {
    await using server = await chatServer(obey)
    const { stdout } = await start(exampleWith('12-compile.ts'), server.env)
    expect(stdout).toContain('model openai/house-model: found, used by desk,clerk,minutes\n')
    expect(server.asked).toEqual([])
  })

  test('a key of Anthropic is one, too', async ({ expect }) => {
    await using server = await wireServer({ file: 'anthropic/text.txt' }, { file: 'anthropic/text.json' })
    const env = { ANTHROPIC_API_KEY: 'key-of-the-test', ANTHROPIC_BASE_URL: server.url }
    const { status, stdout, stderr } = await start(exampleWith('01-hello-agent.ts'), env)
    expect(status, stderr).toBe(0)
    expect(stdout).toMatch(/^model: anthropic\/claude-opus-5-5\nanswer: The door is open/)
    expect(server.seen.map(({ path }) => path)).toEqual(['/v1/messages', '/v1/messages'])
  })
})

/** What a model that obeys brings about. */
const lines: Record<string, readonly string[]> = {
  '03-sandbox-backends.ts': ['  cat ../diary.txt          exit 0  not for agents\n'],
  '13-branches.ts': [
    'merge-conflict: [{"path":"menu.txt","kind":"content"}]\n',
    '  menu.txt written by chef\n',
  ],
  '15-resume.ts': ['first process: ended by SIGKILL\n', 'both processes together did 3 things'],
  '16-approvals.ts': ['pay: 450 euros paid to mason\n', 'pay: denied: who is that?\n'],
  '18-evidence.ts': ['broken by Team/cy,'],
  'maintainer.ts': ['coder changes total.js\n', 'accepted: total.js\n'],
}

function exampleWith(name: string): [string, ...string[]] {
  return [process.execPath, `examples/${name}`, ...(name === 'maintainer.ts' ? ['--live'] : [])]
}
