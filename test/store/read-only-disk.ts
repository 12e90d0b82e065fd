// Opens a store in a folder that cannot be written, in three ways, and says how each went.
import { openStore } from '../../src/store/open.ts'

const folder = process.argv[2] as string
const attempts = {
  write: () => openStore(`sqlite:${folder}/rath.db`),
  new: () => openStore(`sqlite:${folder}/new.db`),
  read: () => openStore(`sqlite:${folder}/rath.db`, { readOnly: true }),
}
for (const [name, open] of Object.entries(attempts)) {
  try {
    await using store = await open()
    console.log(`${name}: ${(await store.sessions.get('t')).length}`)
  } catch (error) {
    console.log(`${name}: ${(error as { code?: string }).code}`)
  }
}
