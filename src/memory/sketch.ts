/** A vector of length one. A vector of nothing stays one. */
export function normalised(vector: ArrayLike<number>): Float32Array {
  const copy = Float32Array.from(vector)
  let sum = 0
  for (const value of copy) sum += value * value
  const scale = sum > 0 && Number.isFinite(sum) ? 1 / Math.sqrt(sum) : 0
  for (let i = 0; i < copy.length; i++) copy[i] = (copy[i] as number) * scale
  return copy
}

export function product(a: Float32Array, b: Float32Array, offset = 0): number {
  let sum = 0
  for (let i = 0; i < a.length; i++) sum += (a[i] as number) * (b[offset + i] as number)
  return sum
}

/** One bit for each number of a vector: whether it is above zero. 32 of them in each word. */
export function sketchOf(vector: Float32Array): Uint32Array {
  const sketch = new Uint32Array(Math.ceil(vector.length / 32))
  for (let i = 0; i < vector.length; i++) {
    if ((vector[i] as number) > 0) sketch[i >>> 5] = (sketch[i >>> 5] as number) | (1 << (i & 31))
  }
  return sketch
}

/** In how many bits a sketch differs from the one at an offset of many. */
export function distance(a: Uint32Array, many: Uint32Array, offset: number): number {
  let bits = 0
  for (let i = 0; i < a.length; i++) {
    let x = (a[i] as number) ^ (many[offset + i] as number)
    x -= (x >>> 1) & 0x55555555
    x = (x & 0x33333333) + ((x >>> 2) & 0x33333333)
    bits += (((x + (x >>> 4)) & 0x0f0f0f0f) * 0x01010101) >>> 24
  }
  return bits
}

export function toBytes(array: Float32Array | Uint32Array): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength)
}

export function toFloats(bytes: Uint8Array): Float32Array {
  return new Float32Array(bytes.slice().buffer)
}
