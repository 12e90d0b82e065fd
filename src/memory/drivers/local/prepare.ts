import type { JsonObject } from '../../../base/json.ts'
import { tokenizerVersion } from '../../words.ts'
import type { Database } from './database.ts'
import { labelsOf } from './filter.ts'
import { mergeIfDue } from './merge.ts'
import { parsed } from './rows.ts'
import { numberIn, setNumber, tailWords, WordIndex } from './word-index.ts'

/** Makes the index anew when its words were divided in another way than they are now; whole or not at all. */
export async function prepareIndex(db: Database): Promise<void> {
  const isCurrent = () => numberIn(db, 'tokenizer') === tokenizerVersion
  if (await db.read(isCurrent)) return
  await db.write(() => {
    if (isCurrent()) return
    const last = db.get("SELECT seq FROM sqlite_sequence WHERE name = 'change'")?.seq as number | undefined
    for (const table of ['tail', 'posting', 'segment', 'block', 'change']) db.run(`DELETE FROM ${table}`)
    setNumber(db, 'generation', numberIn(db, 'generation') + 1)
    // As if nothing had ever been merged: everyone who has the store open loads it anew.
    setNumber(db, 'merged', last ?? 0)
    const index = new WordIndex()
    for (const { n } of db.all('SELECT n FROM entry ORDER BY n')) {
      const row = db.get('SELECT text, tags, metadata FROM entry WHERE n = ?', n as number)
      if (row === undefined) continue
      const labels = labelsOf(
        parsed(row.tags as string, db.path),
        parsed<JsonObject>(row.metadata as string, db.path),
      )
      const { words, length } = tailWords(row.text as string, labels)
      db.run('UPDATE entry SET length = ? WHERE n = ?', length, n as number)
      if (words !== '') db.run('INSERT INTO tail VALUES (?, ?)', n as number, words)
      db.run('INSERT INTO change (n) VALUES (?)', n as number)
      mergeIfDue(db, index)
    }
    setNumber(db, 'tokenizer', tokenizerVersion)
  })
}
