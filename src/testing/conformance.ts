/**
 * One behaviour that a spec asks of every driver. A suite is a list of them, so that it runs under any test runner:
 * `for (const { name, run } of testStore(open)) it(name, run)`.
 */
export interface ConformanceCase {
  readonly name: string
  run(): Promise<void>
}
