// Builds `dist/` from nothing, so that a file removed from `src/` never lingers in the package.
import { spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

const root = dirname(import.meta.dirname)
const typescript = dirname(createRequire(import.meta.url).resolve('typescript/package.json'))

rmSync(join(root, 'dist'), { recursive: true, force: true })
const compile = [join(typescript, 'bin', 'tsc'), '-p', join(root, 'tsconfig.build.json')]
// The compiler has said what is wrong; a stack trace of this script would only hide it.
process.exitCode = spawnSync(process.execPath, compile, { stdio: 'inherit' }).status ?? 1
