import { expect, it } from 'vitest'
import { configSecrets } from '../../src/run/open-store.ts'

function secretsIn(files: Record<string, string>, env: Record<string, string> = {}) {
  return configSecrets({
    env,
    cwd: '/project',
    home: '/home/ann',
    files: {
      read(path) {
        if (path.includes('forbidden')) throw Object.assign(new Error('no'), { code: 'EACCES' })
        return files[path]
      },
      stat: () => undefined,
    },
    warn() {},
  })
}

it('every key of every config folder is found, named by its place', () => {
  const secrets = secretsIn(
    {
      '/project/.openrath/config.json': '{"llm":{"providers":{"a":{"api_key":"one","model":"m"}}}}',
      '/home/ann/.openrath/credentials.json': '{"providers":{"b":{"api_key":"two"}}}',
      '/home/ann/keys/config.json': '{"mcp":{"servers":{"s":{"env":{"GITHUB_TOKEN":"three"}}}}}',
    },
    { OPENRATH_HOME: '~/keys' },
  )
  expect(secrets).toEqual({
    'config.json.llm.providers.a.api_key': 'one',
    'credentials.json.providers.b.api_key': 'two',
    'config.json.mcp.servers.s.env.GITHUB_TOKEN': 'three',
  })
})

it('a file that is broken or may not be read gives none', () => {
  expect(secretsIn({ '/project/.openrath/config.json': '{"api_key": "x' })).toEqual({})
  expect(secretsIn({}, { OPENRATH_HOME: '/forbidden' })).toEqual({})
})
