import { type SystemCall, systemCalls } from './system-calls.ts'

export type Machine = 'arm64' | 'x64'

/** Undefined where no filter is known for the machine. */
export function machineOf(arch: string): Machine | undefined {
  return arch === 'arm64' || arch === 'x64' ? arch : undefined
}

/**
 * A filter for the system calls of commands, as the kernel takes it: a list of `struct sock_filter`. Everything is allowed but what leads
 * out of namespaces, into other processes or into the kernel, and files that would run as their owner: those outlive the sandbox. Without
 * `hiddenMemory` there is no memory either that lies in no process, which only a cgroup can count.
 */
export function seccompFilter(
  machine: Machine,
  { hiddenMemory = true }: { readonly hiddenMemory?: boolean } = {},
): Uint8Array {
  const isArm = machine === 'arm64'
  const program = [
    load(offset.arch),
    // Calls by another convention have other numbers, and would go past the filter.
    ...unless(isArm ? 0xc00000b7 : 0xc000003e, refuse(errno.ENOSYS)),
    load(offset.call),
    ...(isArm ? [] : [jump(op.atLeast, 0x40000000, 0, 1), refuse(errno.ENOSYS)]),
  ]
  for (const { calls, when = [], error } of hiddenMemory ? rules : [...rules, ...heldMemory]) {
    for (const name of calls) {
      const call = systemCalls[name][isArm ? 0 : 1]
      if (call === null) continue
      const body = [...check(when), refuse(error)]
      // A body that finds nothing wrong falls through, and the number is loaded again.
      program.push(jump(op.equal, call, 0, body.length), ...body)
      if (when.length > 0) program.push(load(offset.call))
    }
  }
  program.push(instruction(op.return, 0, 0, allow))
  return bytesOf(program)
}

/** True when a number in the call is so: all conditions of a rule together make it apply. */
type Condition =
  | { readonly argument: number; readonly has: number }
  | { readonly argument: number; readonly is: number }
  | { readonly argument: number; readonly half?: 'high'; readonly isNot: readonly number[] }
  | { readonly argument: number; readonly atLeast: number }

interface Rule {
  readonly calls: readonly SystemCall[]
  readonly when?: readonly Condition[]
  readonly error: number
}

const errno = { EPERM: 1, ENOSYS: 38, EAFNOSUPPORT: 97 }

/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET. */
const newNamespace = 0x7e020000
const setIds = 0o6000
/** O_CREAT and the bit of O_TMPFILE: only then is there a mode. */
const creates = 0o20000100
const [unix, internet, internet6, netlink] = [1, 2, 10, 16]
const [TIOCSTI, TIOCLINUX] = [0x5412, 0x541c]

const forbidden: readonly SystemCall[] = (
  'mount umount2 pivot_root chroot open_tree move_mount fsopen fsconfig fsmount fspick mount_setattr open_tree_attr name_to_handle_at ' +
  'open_by_handle_at fanotify_init quotactl quotactl_fd unshare setns ptrace process_vm_readv process_vm_writev kcmp pidfd_getfd bpf ' +
  'perf_event_open userfaultfd keyctl add_key request_key init_module finit_module delete_module kexec_load kexec_file_load ' +
  'lookup_dcookie nfsservctl uselib modify_ldt iopl ioperm mbind set_mempolicy migrate_pages move_pages reboot swapon swapoff acct ' +
  'syslog settimeofday clock_settime adjtimex clock_adjtime sethostname setdomainname vhangup'
).split(' ') as SystemCall[]

const rules: readonly Rule[] = [
  { calls: forbidden, error: errno.EPERM },
  // Their arguments lie in memory, where a filter cannot look. Programs fall back to the older call.
  {
    calls: ['clone3', 'openat2', 'io_uring_setup', 'io_uring_enter', 'io_uring_register'],
    error: errno.ENOSYS,
  },
  { calls: ['clone'], when: [{ argument: 0, has: newNamespace }], error: errno.EPERM },
  {
    calls: ['personality'],
    when: [{ argument: 0, isNot: [0, 0xffffffff] }],
    error: errno.EPERM,
  },
  {
    calls: ['socket', 'socketpair'],
    when: [{ argument: 0, isNot: [unix, internet, internet6, netlink] as number[] }],
    error: errno.EAFNOSUPPORT,
  },
  // Typing into the terminal of whoever started it.
  { calls: ['ioctl'], when: [{ argument: 1, is: TIOCSTI as number }], error: errno.EPERM },
  { calls: ['ioctl'], when: [{ argument: 1, is: TIOCLINUX as number }], error: errno.EPERM },
  {
    calls: ['chmod', 'fchmod', 'mkdir', 'mknod', 'creat'],
    when: [{ argument: 1, has: setIds }],
    error: errno.EPERM,
  },
  {
    calls: ['fchmodat', 'fchmodat2', 'mkdirat', 'mknodat'],
    when: [{ argument: 2, has: setIds }],
    error: errno.EPERM,
  },
  {
    calls: ['open'],
    when: [
      { argument: 1, has: creates },
      { argument: 2, has: setIds },
    ],
    error: errno.EPERM,
  },
  {
    calls: ['openat'],
    when: [
      { argument: 2, has: creates },
      { argument: 3, has: setIds },
    ],
    error: errno.EPERM,
  },
]

/** Programs fall back to files in /dev/shm, which has a size. PostgreSQL needs a small segment, and a sandbox has 4,096 at most. */
const heldMemory: readonly Rule[] = [
  { calls: ['memfd_create', 'memfd_secret'], error: errno.ENOSYS },
  { calls: ['shmget'], when: [{ argument: 1, half: 'high', isNot: [0] }], error: errno.ENOSYS },
  { calls: ['shmget'], when: [{ argument: 1, atLeast: 4097 }], error: errno.ENOSYS },
]

/** Jumps behind the refusal that follows, as soon as one condition does not hold. */
function check(conditions: readonly Condition[]): Instruction[] {
  const lengths = conditions.map(condition => ('isNot' in condition ? condition.isNot.length : 1) + 1)
  const end = lengths.reduce((sum, length) => sum + length, 1)
  const made: Instruction[] = []
  for (const condition of conditions) {
    // Both machines are little-endian: the low half of an argument comes first, and nearly all of these fit into it.
    const half = 'half' in condition ? 4 : 0
    made.push(load(offset.arguments + 8 * condition.argument + half))
    const rest = () => end - made.length - 1
    if ('has' in condition) made.push(jump(op.has, condition.has, 0, rest()))
    else if ('atLeast' in condition) made.push(jump(op.atLeast, condition.atLeast, 0, rest()))
    else if ('is' in condition) made.push(jump(op.equal, condition.is, 0, rest()))
    else for (const value of condition.isNot) made.push(jump(op.equal, value, rest(), 0))
  }
  return made
}

interface Instruction {
  readonly code: number
  readonly ifTrue: number
  readonly ifFalse: number
  readonly value: number
}

/** Of `struct seccomp_data`. */
const offset = { call: 0, arch: 4, arguments: 16 }
const op = { load: 0x20, equal: 0x15, atLeast: 0x35, has: 0x45, return: 0x06 }
const [allow, refusal] = [0x7fff0000, 0x00050000] as const

const load = (at: number) => instruction(op.load, 0, 0, at)
const refuse = (error: number) => instruction(op.return, 0, 0, refusal | error)
const unless = (value: number, then: Instruction) => [jump(op.equal, value, 1, 0), then]

function jump(code: number, value: number, ifTrue: number, ifFalse: number): Instruction {
  return instruction(code, ifTrue, ifFalse, value)
}

function instruction(code: number, ifTrue: number, ifFalse: number, value: number): Instruction {
  return { code, ifTrue, ifFalse, value }
}

function bytesOf(program: readonly Instruction[]): Uint8Array {
  const bytes = new Uint8Array(program.length * 8)
  const view = new DataView(bytes.buffer)
  program.forEach(({ code, ifTrue, ifFalse, value }, i) => {
    view.setUint16(i * 8, code, true)
    view.setUint8(i * 8 + 2, ifTrue)
    view.setUint8(i * 8 + 3, ifFalse)
    view.setUint32(i * 8 + 4, value, true)
  })
  return bytes
}
