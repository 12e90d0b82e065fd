// Writes to a memory until it is killed, and prints each acknowledgement: node writer.ts PATH NAME
import { writeSync } from 'node:fs'
import { localMemory } from '../../src/memory/drivers/local/local-memory.ts'

const [path = '', name = ''] = process.argv.slice(2)
const store = await localMemory({ durability: 'normal' }).open({ path })
for (let i = 0; ; i++) {
  const [entry] = await store.write([{ text: `${name} number${i} lighthouse`, key: `${name}-${i}` }])
  if (i % 5 === 0 && entry) await store.update(entry.id, { text: `${name} number${i} beacon` })
  writeSync(1, `${name} ${i} ${i % 5 === 0 ? 'beacon' : 'lighthouse'}\n`)
}
