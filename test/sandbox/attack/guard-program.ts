import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isolatedBackend } from '../../../src/sandbox/drivers/isolated/driver.ts'
import { attacksOnGit } from './git-attacks.ts'

/**
 * Started by guard.test.ts, as its own user and as one who is not root. Makes a repository and a loaded module in the folder given, attacks both from
 * isolated, and prints what came of it.
 */
const folder = process.argv[2] as string
const env = { PATH: '/usr/bin:/bin', HOME: folder, GIT_CONFIG_NOSYSTEM: '1' }
const git = (...args: string[]) => execFileSync('git', args, { cwd: folder, env, encoding: 'utf8' })
git('init', '-q', '.')
git('config', 'user.email', 'a@example.com')
git('config', 'user.name', 'a')
git('config', 'core.hooksPath', '.husky')
mkdirSync(join(folder, '.husky'))
mkdirSync(join(folder, 'src'))
const [module, lazy] = [join(folder, 'src/loaded.mjs'), join(folder, 'node_modules/lazy/index.mjs')]
writeFileSync(module, "export const load = () => import('lazy')\n")
mkdirSync(join(folder, 'node_modules/lazy'), { recursive: true })
writeFileSync(join(folder, 'node_modules/lazy/package.json'), '{ "exports": "./index.mjs" }')
writeFileSync(lazy, "export const said = 'as installed'\n")
// Packages behind a link, as some tools lay them out.
mkdirSync(join(folder, 'vendor/linked'), { recursive: true })
mkdirSync(join(folder, 'tools'))
symlinkSync('../vendor', join(folder, 'tools/node_modules'))
writeFileSync(join(folder, 'vendor/linked/package.json'), '{ "exports": "./index.mjs" }')
writeFileSync(join(folder, 'vendor/linked/index.mjs'), "export const said = 'as installed'\n")
writeFileSync(join(folder, 'tools/loaded.mjs'), "export const load = () => import('linked')\n")
git('add', 'src')
git('commit', '-qm', 'one')
const { load } = (await import(`file://${module}`)) as { load(): Promise<{ said: string }> }
const tools = (await import(`file://${join(folder, 'tools/loaded.mjs')}`)) as {
  load(): Promise<{ said: string }>
}
const before = git('config', '--list', '--local')

await using sandbox = await isolatedBackend().open(folder)
const run = async (script: string) => {
  const { exitCode, stdout, stderr } = await sandbox.exec(script).result
  return { exitCode, output: Buffer.from(stdout).toString() + Buffer.from(stderr).toString() }
}
const refused = (work: Promise<unknown>) =>
  work.then(
    () => 'done',
    error => error.code as string,
  )

const attacks: Record<string, boolean> = {}
for (const [name, script] of Object.entries(attacksOnGit)) {
  await run(script)
  const isSame =
    git('config', '--list', '--local') === before && readdirSync(join(folder, '.husky')).length === 0
  const isPointing = existsSync(join(folder, '.git/commondir'))
  const hooks = readdirSync(join(folder, '.git/hooks')).filter(file => !file.endsWith('.sample'))
  attacks[name] = isSame && !isPointing && hooks.length === 0
}
await run(`echo "export const said = 'rewritten'" > node_modules/lazy/index.mjs`)
await run(
  `mv node_modules nm; mkdir -p node_modules/lazy; cp nm/lazy/package.json node_modules/lazy; echo "export const said = 'shadowed'" > node_modules/lazy/index.mjs`,
)
const evil = (path: string) =>
  `mkdir -p ${path}; echo '{ "exports": "./index.mjs" }' > ${path}/package.json; echo "export const said = 'planted'" > ${path}/index.mjs`
const beside = await run(evil('src/node_modules/lazy'))
await run(evil('vendor/linked'))
await run(`rm tools/node_modules; ${evil('tools/node_modules/linked')}`)
await run(`mv src old; mkdir src; echo evil > src/loaded.mjs`)
await run(`rm -rf src node_modules`)
const committed = await run(
  'echo x > src/new.mjs && git add src && git commit -qm two && git log --oneline | wc -l',
)
const planted = await run(
  'mkdir -p .openrath && echo "{}" > .openrath/config.json && ln -s config.json .openrath/rath.db',
)
console.log(
  JSON.stringify({
    uid: process.getuid?.(),
    attacks,
    said: (await load()).said,
    linked: (await tools.load()).said,
    beside: beside.output,
    module: readFileSync(module, 'utf8').length,
    committed: committed.output.trim(),
    planted: { ...planted, left: readdirSync(join(folder, '.openrath')) },
    files: {
      code: await refused(sandbox.files.write('node_modules/lazy/index.mjs', 'x')),
      loaded: await refused(sandbox.files.write('src/loaded.mjs', 'x')),
      parent: await refused(sandbox.files.rename('src', 'elsewhere')),
      git: await refused(sandbox.files.write('.git/hooks/pre-commit', 'x')),
      hooks: await refused(sandbox.files.write('.husky/pre-commit', 'x')),
      record: await refused(sandbox.files.write('.openrath/config.json', 'x')),
      beside: await refused(sandbox.files.write('src/node_modules/lazy/index.mjs', 'x')),
      own: await refused(sandbox.files.write('src/other.mjs', 'x')),
    },
  }),
)
