// Appends so many chunks to a session, a hundred at a time, and ends: node appender.ts URL SESSION NAME COUNT
import { openStore } from '../../../src/store/open.ts'

const [url = '', session = '', name = '', count = '0'] = process.argv.slice(2)
const store = await openStore(url, { secrets: {}, durability: 'normal' })
let next = 0
const lane = async () => {
  while (next < Number(count))
    await store.sessions.append(session, [{ kind: 'user', text: `${name} ${next++}` }])
}
await Promise.all(Array.from({ length: 100 }, lane))
await store.close()
