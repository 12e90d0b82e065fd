import type { Json } from '../../base/json.ts'
import type {
  JournalEntry,
  NewEntry,
  RunChange,
  RunLog,
  RunRow,
  RunStore,
  RunWrite,
  Store,
} from '../../store/spec.ts'

/** A store whose runs also have a method for each single write, by the fence of any claim: cases read better by them. */
export type CaseStore = Omit<Store, 'runs'> & { readonly runs: CaseRuns }

export interface CaseRuns extends Omit<RunStore, 'claim'> {
  claim(...args: Parameters<RunStore['claim']>): Promise<RunRow & RunLog>
  renew(id: string, fence: number, leaseMs: number): Promise<RunRow>
  update(id: string, fence: number, change: RunChange): Promise<RunRow>
  intend(id: string, fence: number, entry: NewEntry): Promise<JournalEntry>
  conclude(id: string, fence: number, key: string, occurrence: number, outcome: Json): Promise<JournalEntry>
  write(id: string, fence: number, writes: readonly RunWrite[]): Promise<void> | undefined
}

export function withRunMethods(store: Store): CaseStore {
  const { runs } = store
  const entry = async (id: string, { key, occurrence }: Pick<NewEntry, 'key' | 'occurrence'>) =>
    (await runs.entry(id, key, occurrence)) as JournalEntry
  const own: CaseRuns = {
    ...runs,
    async claim(...args) {
      const log = await runs.claim(...args)
      return { ...(await runs.get(args[0])), ...log }
    },
    write: (id, fence, writes) => runs.log(id, fence).append(writes),
    renew: async (id, fence, leaseMs) => runs.log(id, fence).renew(leaseMs),
    async update(id, fence, change) {
      await runs.log(id, fence).append([{ kind: 'update', change }])
      return runs.get(id)
    },
    async intend(id, fence, given) {
      await runs.log(id, fence).append([{ kind: 'intend', entry: given }])
      return entry(id, given)
    },
    async conclude(id, fence, key, occurrence, outcome) {
      await runs.log(id, fence).append([{ kind: 'conclude', key, occurrence, outcome }])
      return entry(id, { key, occurrence })
    },
  }
  return { ...store, runs: own }
}
