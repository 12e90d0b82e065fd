import { readFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { join } from 'node:path'
import { createContext, runInContext } from 'node:vm'
import { Session } from 'openrath/session'
import { build, type Rolldown } from 'vite'
import { beforeAll, expect, test } from 'vitest'
import { walk } from './browser-program.ts'
import { globalsUsed, importsOf } from './imports.ts'
import { root } from './tree.ts'

const nodeOnly = [
  'process',
  'Buffer',
  'global',
  'require',
  'module',
  '__dirname',
  '__filename',
  'setImmediate',
]
const builtins = new Set(builtinModules)

let bundle: string
const modules = new Map<string, string>()

beforeAll(async () => {
  const result = (await build({
    root,
    configFile: false,
    logLevel: 'silent',
    plugins: [{ name: 'modules', moduleParsed: ({ id, code }) => void modules.set(id, code ?? '') }],
    build: {
      write: false,
      minify: false,
      lib: { entry: join(root, 'test/house/browser-program.ts'), formats: ['iife'], name: 'program' },
    },
  })) as Rolldown.RolldownOutput[]
  bundle = result[0]?.output[0].code as string
})

test('nothing that openrath/session imports, dependencies included, is a module of Node', () => {
  const paths = [...modules.keys()]
  expect(paths).toContain(join(root, 'dist/session/index.js'))
  expect(paths.some(path => path.includes('@noble/hashes'))).toBe(true)
  expect(paths.filter(path => path.startsWith(join(root, 'dist'))).sort()).toEqual(
    ['parts/session.js', 'session/index.js'].map(name => join(root, 'dist', name)),
  )
  expect(paths.flatMap(path => nodeModulesIn(path))).toEqual([])
})

test('nothing in it takes a global of Node for granted', () => {
  const files = [...modules.keys()].filter(path => path.startsWith('/'))
  expect(
    files.flatMap(path => globalsUsed(path, source(path), nodeOnly).map(name => `${path}: ${name}`)),
  ).toEqual([])
})

test('the checks see what they look for', () => {
  expect(globalsUsed('a.js', 'if (process.env) Buffer.from("")', nodeOnly)).toEqual(['Buffer', 'process'])
  expect(globalsUsed('a.js', 'globalThis.process?.env; ({ process: 1 }).process', nodeOnly)).toEqual([])
  expect(globalsUsed('a.js', "typeof process === 'object' ? process.env : 0", nodeOnly)).toEqual([])
  expect(isNode('node:fs') && isNode('fs') && isNode('fs/promises') && !isNode('./fs.js')).toBe(true)
})

test('a bundle runs with web globals alone and gives the digests that Node gives', async () => {
  const web = { TextEncoder, TextDecoder, crypto, btoa, atob }
  const page = createContext({ ...web })
  expect(runInContext('typeof process + typeof Buffer + typeof require', page)).toBe('undefined'.repeat(3))
  runInContext(bundle, page)
  const there = JSON.parse(await runInContext('program.walk().then(JSON.stringify)', page))
  const here = JSON.parse(JSON.stringify(await walk()))

  expect({ ...there, file: '' }).toEqual({ ...here, file: '' })
  expect(here).toMatchObject({
    verified: { ok: true, checked: 6 },
    roundTrip: true,
    tampered: 4,
    drawn: true,
  })
  // Each reads and vouches for what the other wrote.
  expect(Session.fromJSONL(there.file).verify()).toEqual({ ok: true, checked: 6 })
  Object.assign(page, { file: here.file })
  expect(runInContext('program.Session.fromJSONL(file).verify().ok', page)).toBe(true)
})

function nodeModulesIn(path: string): string[] {
  // A stand-in that the bundler made has no file; it stands for something that a browser does not have.
  if (!path.startsWith('/')) return path.includes('browser-external') ? [path] : []
  return importsOf(path, source(path))
    .map(({ specifier }) => specifier)
    .filter(isNode)
    .map(specifier => `${path}: ${specifier}`)
}

function isNode(specifier: string): boolean {
  return specifier.startsWith('node:') || builtins.has(specifier)
}

function source(path: string): string {
  return readFileSync(path, 'utf8')
}
