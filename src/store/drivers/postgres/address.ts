import { shownAddress as shown } from '../../../base/postgres/address.ts'

/** Where a store is, without its password: what messages and `driver.url` show. */
export function shownAddress(url: string): string {
  return shown(url, 'store')
}
