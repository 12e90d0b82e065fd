import { bytesOf } from './names.ts'

export interface TarEntry {
  readonly path: string
  readonly kind: 'file' | 'folder' | 'link'
  readonly mode: number
  /** What is in a file, or where a link leads. */
  readonly content: Uint8Array
}

const block = 512

/** An archive as every `tar` reads it: the old format, and the entries of GNU for names that are too long for it. */
export function tarOf(entries: readonly TarEntry[]): Buffer {
  const blocks: Buffer[] = []
  for (const entry of entries) blocks.push(...blocksOf(entry))
  return Buffer.concat([...blocks, Buffer.alloc(2 * block)])
}

function blocksOf({ path, kind, mode, content }: TarEntry): Buffer[] {
  const name = bytesOf(kind === 'folder' ? `${path}/` : path)
  const target = kind === 'link' ? Buffer.from(content) : Buffer.alloc(0)
  const blocks: Buffer[] = []
  if (name.length > 100) blocks.push(...longName('L', name))
  if (target.length > 100) blocks.push(...longName('K', target))
  const type = kind === 'file' ? '0' : kind === 'link' ? '2' : '5'
  const size = kind === 'file' ? content.length : 0
  blocks.push(header(name, type, mode, size, target))
  if (kind === 'file') blocks.push(...padded(content))
  return blocks
}

function longName(type: 'L' | 'K', name: Buffer): Buffer[] {
  const content = Buffer.concat([name, Buffer.alloc(1)])
  return [header(Buffer.from('././@LongLink'), type, 0, content.length, Buffer.alloc(0)), ...padded(content)]
}

function padded(content: Uint8Array): Buffer[] {
  const rest = content.length % block
  const bytes = Buffer.from(content.buffer, content.byteOffset, content.byteLength)
  return rest === 0 ? [bytes] : [bytes, Buffer.alloc(block - rest)]
}

function header(name: Buffer, type: string, mode: number, size: number, target: Buffer): Buffer {
  const bytes = Buffer.alloc(block)
  name.copy(bytes, 0, 0, 100)
  bytes.write(`${octal(mode, 7)}\0`, 100, 'latin1')
  bytes.write(`${octal(0, 7)}\0${octal(0, 7)}\0`, 108, 'latin1')
  bytes.write(`${octal(size, 11)}\0${octal(0, 11)}\0`, 124, 'latin1')
  bytes.write(' '.repeat(8), 148, 'latin1')
  bytes.write(type, 156, 'latin1')
  target.copy(bytes, 157, 0, 100)
  bytes.write('ustar  \0', 257, 'latin1')
  const sum = bytes.reduce((all, byte) => all + byte, 0)
  bytes.write(`${octal(sum, 6)}\0 `, 148, 'latin1')
  return bytes
}

function octal(value: number, digits: number): string {
  return value.toString(8).padStart(digits, '0')
}
