import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const source = (path: string) => JSON.stringify(join(import.meta.dirname, '../../src', path))

const run = (program: string) =>
  execFileSync(process.execPath, ['--input-type=module', '-e', program], {
    env: { PATH: process.env.PATH, SHOP_API_KEY: 'sk-of-the-shop', EMPTY_KEY: '', ODD: 'a=b=\u00fc' },
    encoding: 'utf8',
  })

test.runIf(process.platform === 'linux')(
  'a local command does not find keys in the environment of the process that started it, which has them still',
  () => {
    const said = run(`
      import { localBackend } from ${source('sandbox/drivers/local/driver.ts')}
      import { execFileSync } from 'node:child_process'
      await using sandbox = await localBackend().open(undefined)
      const { stdout } = await sandbox.exec('tr "\\\\0" "\\\\n" < /proc/' + process.pid + '/environ').result
      const inherited = execFileSync('sh', ['-c', 'echo "$SHOP_API_KEY $ODD"'], { encoding: 'utf8' })
      console.log(JSON.stringify({ block: Buffer.from(stdout).toString(), own: { ...process.env }, inherited }))
    `)
    const { block, own, inherited } = JSON.parse(said)
    expect(block).toContain('SHOP_API_KEY=')
    expect(block).toContain('PATH=/')
    expect(block).not.toContain('sk-of-the-shop')
    expect(own).toMatchObject({ SHOP_API_KEY: 'sk-of-the-shop', EMPTY_KEY: '', ODD: 'a=b=\u00fc' })
    expect(inherited).toBe('sk-of-the-shop a=b=\u00fc\n')
  },
)

test.runIf(process.platform === 'linux')('a worker leaves the environment of its process as it is', () => {
  const said = run(`
      import { Worker } from 'node:worker_threads'
      import { once } from 'node:events'
      const worker = new Worker('import(' + JSON.stringify(${source('base/programs.ts')}) + ').then(({ startGiven }) => startGiven(process.execPath, ["--version"], { env: {} }))', { eval: true })
      await once(worker, 'exit')
      console.log(process.env.SHOP_API_KEY)
    `)
  expect(said).toBe('sk-of-the-shop\n')
})
