import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { blocksOf } from './pages.ts'
import { read, root } from './tree.ts'

// The tarball as npm would publish it, installed where nothing else is. Registry: whatever npm is set up with.
const folder = mkdtempSync(join(tmpdir(), 'openrath-installed-'))
const modules = join(folder, 'node_modules')
afterAll(() => rmSync(folder, { recursive: true }))

beforeAll(() => {
  const packed = npm(root, 'pack', '--json', '--ignore-scripts', '--pack-destination', folder)
  const [{ filename }] = JSON.parse(packed) as [{ filename: string }]
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module' }))
  npm(folder, 'install', '--prefer-offline', join(folder, filename))
})

interface Locked {
  readonly packages: Record<string, { readonly hasInstallScript?: boolean }>
}

test('the base install is at most 35 packages and 45 MB, without install scripts and native modules', () => {
  const { packages } = JSON.parse(readFileSync(join(modules, '.package-lock.json'), 'utf8')) as Locked
  const names = Object.keys(packages)
  const files = readdirSync(modules, { recursive: true, encoding: 'utf8' })
  const bytes = files.reduce((sum, path) => sum + statSync(join(modules, path)).size, 0)
  console.log(`${names.length} packages, ${(bytes / 1e6).toFixed(1)} MB`)
  expect(names).toContain('node_modules/openrath')
  expect(names.length).toBeLessThanOrEqual(35)
  expect(bytes).toBeLessThanOrEqual(45e6)
  expect(names.filter(name => packages[name]?.hasInstallScript)).toEqual([])
  expect(files.filter(path => /\.(node|wasm|dll|so|dylib|exe)$|binding\.gyp$/.test(path))).toEqual([])
})

test('nothing is listed that npm would warn about: peers are met or optional', () => {
  expect(spawnSync('npm', ['ls', '--all'], { cwd: folder, encoding: 'utf8' }).status).toBe(0)
})

// The oldest Node that the package promises, and the one that this repository runs on.
const nodes = { 'Node 22.18': () => oldestNode(), 'Node 24': () => process.execPath }
for (const [name, find] of Object.entries(nodes)) {
  describe(name, () => {
    let node: string
    beforeAll(() => {
      node = find()
      expect(`Node ${execFileSync(node, ['-p', 'process.versions.node'], { encoding: 'utf8' })}`).toContain(
        name,
      )
    })

    test('the example of the README prints what the README shows', () => {
      const blocks = blocksOf(read('README.md'))
      const programs = blocks.filter(block => block.language === 'ts')
      // What a program prints stands behind it.
      const shown = programs.map(program => blocks[blocks.indexOf(program) + 1]?.text).join('')
      writeFileSync(join(folder, 'readme.ts'), programs.map(program => program.text).join('\n'))
      const { status, stdout, stderr } = start(node, 'readme.ts')
      expect({ status, stdout }, stderr).toEqual({ status: 0, stdout: shown })
    })

    test('rath doctor looks at everything and finds nothing broken', () => {
      const { status, stdout, stderr } = start(node, join(modules, '.bin/rath'), 'doctor')
      expect(status, stdout + stderr).toBe(0)
      expect(stdout).toContain(name)
      for (const what of ['sandbox', 'store', 'memory']) expect(stdout).toContain(what)
    })

    test('openrath demo mends its repository', () => {
      const { status, stdout, stderr } = start(node, join(modules, '.bin/openrath'), 'demo')
      expect(status, stdout + stderr).toBe(0)
      expect(stdout).toMatch(/^careful: accepted\. All tests pass/m)
    })

    // On the Node of this repository they are run by the tests of each layer.
    if (name === 'Node 22.18') {
      test('what SQLite keeps passes the suites that the package brings', () => {
        writeFileSync(join(folder, 'suites.mjs'), suites)
        const { status, stdout, stderr } = start(node, '--no-warnings', 'suites.mjs')
        expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
        expect(Number(stdout.split(' ')[0])).toBeGreaterThan(50)
      })
    }

    test('every door opens', () => {
      const doors = Object.keys(JSON.parse(read('package.json')).exports).filter(
        door => !/\.json$/.test(door),
      )
      const program = `for (const door of ${JSON.stringify(doors)}) console.log(door, Object.keys(await import('openrath' + door.slice(1))).length > 0)`
      const { stdout, stderr } = start(node, '--input-type=module', '--eval', program)
      expect(stdout, stderr).toBe(doors.map(door => `${door} true\n`).join(''))
    })

    test('no module that is imported later can be rewritten by a command in the folder of the program', ({
      skip,
    }) => {
      writeFileSync(join(folder, 'rewrite.mjs'), rewriteModules)
      const { status, stdout, stderr } = spawnSync(node, ['rewrite.mjs', JSON.stringify(laterModules())], {
        cwd: folder,
        env: { PATH: `${join(modules, '.bin')}:${process.env.PATH}`, HOME: folder, NO_COLOR: '1' },
        encoding: 'utf8',
      })
      if (stdout.startsWith('skipped: ')) skip(stdout)
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
      const { rewritten, tried, policy } = JSON.parse(stdout) as {
        rewritten: string[]
        tried: number
        policy: string
      }
      expect(rewritten).toEqual([])
      expect(tried).toBeGreaterThan(30)
      // A policy parses command lines with a package that is first needed now.
      expect(policy).toContain('mail is not among those allowed')
    })
  })
}

/** Every module that the installed package imports with `import()`: its own files, and packages, which may be missing. */
function laterModules(): string[] {
  const dist = join(modules, 'openrath/dist')
  const found = new Set<string>()
  for (const path of readdirSync(dist, { recursive: true, encoding: 'utf8' }).filter(name =>
    name.endsWith('.js'),
  )) {
    for (const [, specifier = ''] of readFileSync(join(dist, path), 'utf8').matchAll(
      /\bimport\(['"](.+?)['"]\)/g,
    )) {
      if (specifier.startsWith('.')) found.add(join('node_modules/openrath/dist', dirname(path), specifier))
      else if (!specifier.startsWith('node:')) found.add(`node_modules/${specifier}`)
    }
  }
  return [...found].sort()
}

/** Opens a sandbox in the folder that the package is installed in, as the documentation shows it, and has a command rewrite the modules named. */
const rewriteModules = `import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Agent, configure, Session } from 'openrath'
import { policy } from 'openrath/policy'
import { isolatedBackend } from 'openrath/sandbox'
import { scripted } from 'openrath/testing'

const named = JSON.parse(process.argv[2])
const backend = isolatedBackend()
const { available, reason } = await backend.probe()
if (!available) {
  console.log('skipped: ' + reason)
  process.exit()
}
const filesOf = path => {
  if (!existsSync(path)) return []
  if (!statSync(path).isDirectory()) return [path]
  return readdirSync(path, { recursive: true }).map(name => join(path, name)).filter(file => statSync(file).isFile() && /\\.[cm]?js$|package\\.json$/.test(file))
}
const state = path => filesOf(path).map(file => file + createHash('sha256').update(readFileSync(file)).digest('hex')).join()
const before = named.map(state)
{
  const sandbox = await backend.open('./')
  const lines = named.flatMap(path => [
    ...filesOf(path).slice(0, 50).map(file => "echo 'globalThis.rewritten = true' >> '" + file + "'"),
    "mkdir -p '" + path + "' && echo 'globalThis.rewritten = true' > '" + path + "/index.js'",
  ])
  const away = 'mv node_modules away; mkdir node_modules; rm -rf node_modules/openrath; chmod -R u+w node_modules'
  await sandbox.exec(['sh', '-s'], { stdin: [...lines, away].join('\\n') }).result
  await sandbox.close()
}
const rewritten = named.filter((path, i) => state(path) !== before[i])
const runtime = configure({ store: 'memory:' })
const model = scripted([{ toolCalls: [{ name: 'run_shell_command', args: { cmd: 'cat x | mail eve' } }] }, 'no'])
const agent = new Agent('x', { model, policy: policy({ commands: [{ tool: 'run_shell_command', allow: ['cat'] }] }) })
const out = await agent(Session.fromUserMessage('x').to('isolated'))
console.log(JSON.stringify({ rewritten, tried: named.length, policy: out.chunks.find(chunk => chunk.kind === 'tool-result').text, flag: globalThis.rewritten }))
await runtime.close()
`

/** Says how many cases there were, and each that failed. */
const suites = `import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { localMemory } from 'openrath/memory'
import { openStore } from 'openrath/store'
import { testMemory, testStore } from 'openrath/testing'

const place = () => mkdtempSync(join(process.cwd(), 'suite-'))
const stores = testStore(async options => {
  const url = 'sqlite:' + join(place(), 'rath.db')
  const again = (more = options) => openStore(url, { durability: 'normal', ...more })
  const store = await again()
  return { store, again, dispose: () => store.close() }
})
const memories = testMemory(localMemory({ durability: 'normal' }), { spec: () => ({ path: place() }) })
const cases = [...stores, ...memories]
for (const { name, run } of cases) {
  try {
    await run()
  } catch (error) {
    console.error(name, error)
    process.exitCode = 1
  }
}
console.log(cases.length + ' cases')
`

/** Runs a program in the folder, without a key and a home of anybody's. */
function start(node: string, ...args: string[]) {
  const OPENRATH_HOME = join(folder, 'home')
  const env = { PATH: process.env.PATH, HOME: folder, TMPDIR: folder, OPENRATH_HOME, NO_COLOR: '1' }
  return spawnSync(node, args, { cwd: folder, env, encoding: 'utf8' })
}

/** Node 22.18.0 from npm, kept beside the dependencies so that it is fetched once. */
function oldestNode(): string {
  const name = `node-${process.platform}-${process.arch}`
  const kept = join(root, 'node_modules/.cache/openrath-node-22')
  const path = join(kept, 'node_modules', name, 'bin/node')
  if (!existsSync(path))
    npm(root, 'install', '--no-save', '--ignore-scripts', '--prefix', kept, `${name}@22.18.0`)
  return path
}

function npm(cwd: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync('npm', args, { cwd, encoding: 'utf8' })
  if (status !== 0) throw new Error(`npm ${args.join(' ')} ended with ${status}: ${stderr}`)
  return stdout
}
