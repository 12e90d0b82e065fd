// Runs Python programs one after the other in an isolated sandbox of 256 MB, and prints how each ended: node memory-child.ts PROGRAM…
import { isolatedBackend } from '../../src/sandbox/drivers/isolated/driver.ts'

const isolated = isolatedBackend()
const { memory } = isolated.capabilities.enforced
const { available, reason } = (await isolated.probe?.()) ?? { available: true }
const ends: object[] = []
if (available) {
  await using sandbox = await isolated.open({ limits: { memory: 256 * 2 ** 20 } })
  for (const program of process.argv.slice(2)) {
    const { exitCode, stdout, stderr } = await sandbox.exec(['python3', '-c', program], { timeout: 300_000 })
      .result
    const [out, error] = [stdout, stderr].map(bytes => new TextDecoder().decode(bytes).trim())
    ends.push({ exitCode, out, error })
  }
}
console.log(JSON.stringify({ available, reason, counted: memory, ends }))
