import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config'

// What tests and the programs they start keep outside their own folders goes here, and not to the home of whoever runs them.
const home = mkdtempSync(join(tmpdir(), 'openrath-home-'))
process.env.OPENRATH_HOME = home
process.on('exit', () => rmSync(home, { recursive: true, force: true }))
// Tests start a thousand programs, most of them the same ones: Node keeps what it compiled of them.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, 'node_modules/.cache/node-compile')

const minute = 60_000
// Only for what hangs: a test waits for what it waits for, however busy the machine is.
const isTorture = process.env.OPENRATH_TORTURE === 'full'
const limit = (isTorture ? 60 : 10) * minute

// With `npm run test:quick`: no file that starts a process. test/support/no-process.ts fails a test that does.
const isQuick = process.env.OPENRATH_QUICK === '1'
const starting = [
  'test/{cli,sandbox}/**',
  'test/house/{docs,docs-site,examples,examples-live,first-lines,format,node-version,package,package-installed,readme,types}.test.ts',
  'test/**/*postgres{,-append,-server}.test.ts',
  'test/store/{torture/**,append.test.ts,sqlite-{changes,file}.test.ts}',
  'test/tool/{builtin,builtin-agent,mcp,mcp-http,mcp-official,shell-fuzz}.test.ts',
  'test/memory/{local,turns}.test.ts',
  'test/run/{travel/**,*{-files,-processes,-sandbox,-places,-off,-links,-limits,-code,-commands}.test.ts}',
  'test/run/{altered,folders,kill,loop,many,memory,memory-{branches,commit,cut-off,extract},owner,policy,replay}.test.ts',
  'test/run/{replay.property,resume.property,secrets,shuffled,side-by-side,truth.property,workspaces}.test.ts',
  'test/flow/openrath/{concurrency,faults-liveness,faults-session,loop,session}.test.ts',
  'test/evidence/{bisect,blame,blame.property,dossier,dossier-browser,import-placement,inside,run}.test.ts',
]

interface Project {
  readonly include?: string[]
  /** A worker for each file: what else the worker has loaded or started is part of what some of them look at. */
  readonly isolate?: boolean
}

function project(name: string, options: Project = {}): TestProjectInlineConfiguration {
  const { include = [`test/${name}/**/*.test.ts`], isolate = false } = options
  return {
    test: {
      name,
      include: isTorture ? withLongForm(include) : include,
      exclude: isQuick ? starting : [],
      setupFiles: isQuick ? ['test/support/no-process.ts'] : [],
      isolate,
      testTimeout: limit,
      hookTimeout: limit,
      expect: { poll: { timeout: 5 * minute } },
    },
  }
}

/** The files that do more at full length; the others would only do the same again. */
function withLongForm(patterns: string[]): string[] {
  return globSync(patterns, { cwd: import.meta.dirname }).filter(path =>
    readFileSync(join(import.meta.dirname, path), 'utf8').includes('support/torture.ts'),
  )
}

export default defineConfig({
  test: {
    reporters: ['default', './scripts/closing-line.ts'],
    // Much of the time tests wait for processes and disks: one worker less than cores, the default, leaves half of a small machine idle.
    maxWorkers: 2,
    projects: [
      project('unit', { include: ['test/{base,session}/**/*.test.ts'] }),
      project('store'),
      project('tool', { isolate: true }),
      project('flow'),
      project('run'),
      project('sandbox', { isolate: true }),
      project('memory'),
      project('model'),
      project('evidence'),
      project('cli'),
      project('house'),
    ],
  },
})
