// Builds the site of the docs into docs/.vitepress/dist: writes the API reference from dist/, then runs VitePress over all pages.
import { spawnSync } from 'node:child_process'
import { dirname, join } from 'node:path'
import { writeApi } from './api.ts'

const root = dirname(import.meta.dirname)
writeApi(root)
const vitepress = join(root, 'node_modules/vitepress/bin/vitepress.js')
// VitePress has said what is wrong; a stack trace of this script would only hide it.
process.exitCode =
  spawnSync(process.execPath, [vitepress, 'build', 'docs'], { cwd: root, stdio: 'inherit' }).status ?? 1
