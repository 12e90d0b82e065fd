// Builds `dist/` from nothing, so that a file removed from `src/` never lingers in the package: the types file by file, as they are read in an
// editor, and the code as few files, since Node takes longer to find and link five hundred modules than to run what is in them.
import { spawnSync } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative, sep } from 'node:path'
import { type RolldownOptions, rolldown } from 'rolldown'

const root = dirname(import.meta.dirname)
const dist = join(root, 'dist')

/** Files that are loaded by their path: what `package.json` exports, the command, and the workflow that the demo's runs name as their code. */
const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  exports: Record<string, { default?: string }>
}
const entries = [
  ...Object.values(exports).flatMap(({ default: path }) => path ?? []),
  './dist/cli/main.js',
  './dist/demo/workflow.js',
].map(path => path.replace(/^\.\/dist\/(.*)\.js$/, '$1'))

rmSync(dist, { recursive: true, force: true })
process.exitCode = emitTypes()
if (process.exitCode === 0) await bundle()

/** The compiler has said what is wrong; a stack trace of this script would only hide it. */
function emitTypes(): number {
  const typescript = dirname(createRequire(import.meta.url).resolve('typescript/package.json'))
  const compile = [join(typescript, 'bin', 'tsc'), '-p', join(root, 'tsconfig.build.json')]
  return spawnSync(process.execPath, compile, { stdio: 'inherit' }).status ?? 1
}

/** What every program loads is one file, and the part of it that browsers can load another. The rest is loaded when it is first used. */
async function bundle(): Promise<void> {
  const session = await loadedBy('session/index')
  const core = await loadedBy('index')
  const bundled = await rolldown(from(...entries))
  await bundled.write({
    dir: dist,
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: ({ facadeModuleId, name }) =>
      `parts/${facadeModuleId ? partName(facadeModuleId) : name}.js`,
    sourcemap: true,
    comments: { legal: true, annotation: true, jsdoc: false },
    codeSplitting: {
      groups: [
        { name: 'session', priority: 2, test: id => session.has(id) },
        { name: 'core', priority: 1, test: id => core.has(id) },
      ],
    },
  })
  await bundled.close()
}

/** After where the code of it lies, as several drivers are called driver. */
function partName(module: string): string {
  return relative(join(root, 'src'), module).replace(/\.ts$/, '').replaceAll(sep, '-')
}

/** The modules that an entry loads at once. */
async function loadedBy(entry: string): Promise<ReadonlySet<string>> {
  const bundled = await rolldown(from(entry))
  const { output } = await bundled.generate({ format: 'esm' })
  await bundled.close()
  return new Set(output[0].moduleIds)
}

function from(...names: string[]): RolldownOptions {
  return {
    cwd: root,
    input: Object.fromEntries(names.map(name => [name, join(root, 'src', `${name}.ts`)])),
    platform: 'node',
    tsconfig: join(root, 'tsconfig.build.json'),
    // Packages stay packages. What the bundler itself adds for older versions of Node is bundled.
    external: id => !/^[./]/.test(id) && !id.startsWith('@oxc-project/runtime'),
    transform: { target: 'node22.18' },
    checks: { ineffectiveDynamicImport: false },
  }
}
