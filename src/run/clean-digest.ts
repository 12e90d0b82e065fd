import { type Digest, digestOf } from '../base/digest.ts'
import type { Json } from '../base/json.ts'
import type { Store } from '../store/spec.ts'

const known = new WeakMap<Store, WeakMap<object, Digest>>()

/**
 * The digest of something a request names, without the secrets in it: keys are changed from time to time, and what is keyed by the digest
 * stays the same. Made once for each object.
 */
export function cleanDigest(value: object, store: Store): Digest {
  let digests = known.get(store)
  if (digests === undefined) {
    digests = new WeakMap()
    known.set(store, digests)
  }
  let digest = digests.get(value)
  if (digest === undefined) {
    digest = digestOf(store.clean(value as Json))
    digests.set(value, digest)
  }
  return digest
}
