import { type Lineage, namedBy } from '../../../session/lineage.ts'
import type { SessionRow } from '../../spec.ts'
import type { Statement } from './connection.ts'
import type { RowNumbers } from './row-numbers.ts'
import type { SessionRecord } from './rows.ts'
import { toText, toTextOrNull } from './text.ts'

export function* insertSessions(rows: readonly SessionRow[], numbers: RowNumbers): Generator<Statement> {
  if (rows.length === 0) return
  const parents = rows.flatMap(row =>
    namedBy(row.lineage).map(parent => ({ parent, child: numbers.session(row.id) })),
  )
  yield {
    inserts: rows.length,
    text: `WITH linked AS (
        INSERT INTO openrath.parent (parent, child) SELECT * FROM unnest($12::text[], $13::bigint[]) ON CONFLICT DO NOTHING
      )
      INSERT INTO openrath.session (n, id, head, length, branch, lineage, operation, made_by, label, created, updated)
      SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::integer[], $5::text[], $6::text[], $7::text[],
        $8::text[], $9::text[], $10::bigint[], $11::bigint[])
      ON CONFLICT (id) DO NOTHING`,
    values: [
      rows.map(row => numbers.session(row.id)),
      rows.map(row => toText(row.id)),
      rows.map(row => (row.head === null ? null : numbers.chunk(row.head))),
      rows.map(row => row.length),
      rows.map(row => toText(row.branch)),
      rows.map(row => JSON.stringify(row.lineage)),
      rows.map(row => toText(row.lineage.operation)),
      rows.map(row => toTextOrNull(row.lineage.by)),
      rows.map(row => toTextOrNull(row.lineage.label)),
      rows.map(row => row.created),
      rows.map(row => row.updated),
      parents.map(row => toText(row.parent)),
      parents.map(row => row.child),
    ],
  }
}

export function* updateSessions(rows: readonly SessionRow[], numbers: RowNumbers): Generator<Statement> {
  if (rows.length === 0) return
  yield {
    text: `UPDATE openrath.session SET head = given.head, length = given.length, updated = given.updated,
       changed = pg_current_xact_id()
     FROM unnest($1::bigint[], $2::bigint[], $3::integer[], $4::bigint[]) AS given (n, head, length, updated)
     WHERE session.n = given.n`,
    values: [
      rows.map(row => numbers.session(row.id)),
      rows.map(row => (row.head === null ? null : numbers.chunk(row.head))),
      rows.map(row => row.length),
      rows.map(row => row.updated),
    ],
  }
}

export function* deleteSessions(rows: readonly SessionRecord[]): Generator<Statement> {
  if (rows.length === 0) return
  const parents = rows.flatMap(row =>
    namedBy(JSON.parse(row.lineage) as Lineage).map(parent => ({ parent, child: row.n })),
  )
  yield {
    text: `WITH untagged AS (DELETE FROM openrath.tag WHERE session = ANY ($1)),
     unlinked AS (
       DELETE FROM openrath.parent USING unnest($2::text[], $3::bigint[]) AS given (parent, child)
       WHERE parent.parent = given.parent AND parent.child = given.child
     )
     DELETE FROM openrath.session WHERE n = ANY ($1)`,
    values: [rows.map(row => row.n), parents.map(row => toText(row.parent)), parents.map(row => row.child)],
  }
}

export function* writeTags(tags: ReadonlyMap<string, string | null>): Generator<Statement> {
  const removed = [...tags].filter(([, id]) => id === null)
  const set = [...tags].filter(([, id]) => id !== null).sort(([a], [b]) => (a < b ? -1 : 1))
  if (removed.length > 0) {
    yield {
      text: 'DELETE FROM openrath.tag WHERE name = ANY ($1)',
      values: [removed.map(([tag]) => toText(tag))],
    }
  }
  if (set.length === 0) return
  yield {
    text: `INSERT INTO openrath.tag (name, session)
     SELECT given.name, session.n FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS given (name, id, place)
     JOIN openrath.session ON session.id = given.id ORDER BY given.place
     ON CONFLICT (name) DO UPDATE SET session = excluded.session`,
    values: [set.map(([tag]) => toText(tag)), set.map(([, id]) => toText(id as string))],
  }
}
