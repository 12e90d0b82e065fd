import type { PoolClient, QueryResult } from 'pg'
import { Overtaken } from './errors.ts'
import { Numbers } from './numbers.ts'

export type Value = string | number | boolean | null | Uint8Array | readonly (string | number | null)[]

export interface Statement {
  readonly text: string
  readonly values?: readonly Value[]
  /** How many rows it has to insert. Fewer mean that another transaction was faster. */
  readonly inserts?: number
}

/** A statement with more was put together for one call, and will not come again. */
const mostValuesOfNamed = 16
/** Statements under way at a time, so that a huge write is not in memory as a whole. */
const mostUnderWay = 8
const int8 = 20

export type TypeParser = (type: number, format?: 'text' | 'binary') => (value: never) => unknown

/** One connection: statements kept prepared, and sent without waiting for each other where `pg` can do that. */
export class Connection {
  /** Small numbers for new rows, reserved by this very connection. */
  readonly numbers = new Numbers()
  readonly #client: PoolClient
  readonly #parser: TypeParser
  readonly #names = new Map<string, string>()

  constructor(client: PoolClient, parser: TypeParser) {
    this.#client = client
    this.#parser = (type, format) => (type === int8 ? Number : parser(type, format))
  }

  async query<R>(text: string, values?: readonly Value[]): Promise<R[]> {
    return (await this.#send(values ? { text, values } : { text })).rows as R[]
  }

  /** The rows of several statements that do not depend on each other's; none where there is no statement. */
  async queries(statements: readonly (Statement | undefined)[]): Promise<unknown[][]> {
    const results = await this.#together(statements.filter(statement => statement !== undefined))
    return statements.map(statement => (statement ? (results.shift() as QueryResult).rows : []))
  }

  async write(statements: Iterable<Statement>): Promise<void> {
    const waiting = statements[Symbol.iterator]()
    for (;;) {
      const next = [...take(waiting, mostUnderWay)]
      if (next.length === 0) return
      const results = await this.#together(next)
      for (const [i, { inserts }] of next.entries()) {
        if (inserts !== undefined && results[i]?.rowCount !== inserts)
          throw new Overtaken('rows were there already')
      }
    }
  }

  release(destroy = false): void {
    this.#client.release(destroy)
  }

  async #together(statements: readonly Statement[]): Promise<QueryResult[]> {
    // Since 8.23; an older `pg` would only queue them, and warn that it did.
    if ((this.#client as { pipeline?: boolean }).pipeline) {
      return Promise.all(statements.map(statement => this.#send(statement)))
    }
    const results: QueryResult[] = []
    for (const statement of statements) results.push(await this.#send(statement))
    return results
  }

  #send({ text, values = [] }: Statement): Promise<QueryResult> {
    const query = { text, values: [...values], types: { getTypeParser: this.#parser } }
    const named = values.length > 0 && values.length <= mostValuesOfNamed
    return this.#client.query(named ? { ...query, name: this.#nameOf(text) } : query)
  }

  /** A named statement is parsed and planned once. */
  #nameOf(text: string): string {
    let name = this.#names.get(text)
    if (name === undefined) {
      name = `openrath_${this.#names.size}`
      this.#names.set(text, name)
    }
    return name
  }
}

function* take<T>(from: Iterator<T>, most: number): Generator<T> {
  for (let i = 0; i < most; i++) {
    const { value, done } = from.next()
    if (done) return
    yield value
  }
}
