// Holds the write lock of a database from the line `held` until its input ends.
import { DatabaseSync } from 'node:sqlite'

const db = new DatabaseSync(process.argv[2] as string)
db.exec('BEGIN IMMEDIATE')
console.log('held')
process.stdin.resume().on('end', () => {
  db.exec('COMMIT')
  db.close()
})
