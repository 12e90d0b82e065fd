import { newId } from '../../base/ids.ts'

/** For what is about to take this name. Systems take names of 255 bytes, and a character may have three. */
export function temporaryName(name: string): string {
  return `.${name.slice(0, 60)}.${newId()}.tmp`
}
