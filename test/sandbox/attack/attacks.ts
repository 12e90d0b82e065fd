import { systemCalls } from '../../../src/sandbox/drivers/isolated/system-calls.ts'
import type { Targets } from './targets.ts'

/** One thing that a command must not be able to do. */
export interface Attack {
  readonly name: string
  /** Prints OPEN where it succeeds and CLOSED where it is stopped; anything else is an attack that was not made. */
  readonly script: string
  /** Why the same is not done without walls, to see that it can succeed; most are. */
  readonly noControl?: string
}

const call = (name: keyof typeof systemCalls) => systemCalls[name][process.arch === 'arm64' ? 0 : 1]

/** Python that prints OPEN unless it fails with an error of the system. */
const python = (code: string) => `python3 - <<'END'
import ctypes, os, signal, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    result = libc.syscall(number, *arguments)
    if result < 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
try:
${code.replace(/^/gm, '    ')}
    print('OPEN', flush=True)
except (OSError, MemoryError) as error:
    print('CLOSED', error)
END`

const shell = (condition: string) => `if ${condition} >/dev/null; then echo OPEN; else echo CLOSED; fi`

const isRoot = process.getuid?.() === 0
const onlyRoot = isRoot ? {} : { noControl: 'only root can' }
const harmful = { noControl: 'it would harm this machine' }

export function attacks(at: Targets): readonly Attack[] {
  return [
    { name: 'read a file outside the workspace', script: shell(`cat '${at.secretFile}'`) },
    { name: 'read the password file', script: shell('cat /etc/shadow'), ...onlyRoot },
    {
      name: 'read a key in the environment of a process',
      script: shell(`cat /proc/[0-9]*/environ 2>/dev/null | grep -aq '${at.key}'`),
    },
    { name: 'write a file outside the workspace', script: shell(`touch '${at.folder}/new'`) },
    {
      name: 'write into the system',
      script: shell('touch /usr/openrath-attack /etc/openrath-attack'),
      ...harmful,
    },
    { name: 'write into the root folder', script: shell('touch /openrath-attack'), ...harmful },
    {
      name: 'write a setting of the kernel',
      script: shell('echo x | tee /proc/sys/kernel/hostname'),
      ...harmful,
    },
    {
      name: 'reach this machine by TCP',
      script: python(`socket.create_connection(('127.0.0.1', ${at.tcp}), 3)`),
    },
    {
      name: 'reach this machine by UDP',
      script: python(`s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(3)
s.connect(('127.0.0.1', ${at.udp}))
s.send(b'x')
s.recv(9)`),
    },
    {
      name: 'reach a socket in the file system',
      script: python(`socket.socket(socket.AF_UNIX).connect('${at.socket}')`),
    },
    {
      name: 'reach a socket without a path',
      script: python(`socket.socket(socket.AF_UNIX).connect('\\0${at.abstract}')`),
    },
    {
      name: 'reach the outside by TCP',
      script: python(`socket.create_connection(('192.0.2.1', 80), 3)`),
      noControl: 'there may be no network',
    },
    {
      name: 'reach the outside by UDP',
      script: python(`s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(('192.0.2.1', 53))
s.send(b'x')`),
      noControl: 'there may be no network',
    },
    { name: 'make a packet socket', script: python('socket.socket(17, socket.SOCK_RAW, 3)'), ...onlyRoot },
    {
      name: 'see a process of this machine',
      script: shell(`cat /proc/[0-9]*/cmdline 2>/dev/null | grep -aq '[v]${at.victimMark?.slice(1)}'`),
    },
    { name: 'signal a process of this machine', script: shell(`kill -0 ${at.victim}`) },
    {
      name: 'mount',
      script: python(`os.makedirs('mnt', exist_ok=True)
if libc.mount(b'none', b'mnt', b'tmpfs', 0, None): raise OSError(ctypes.get_errno(), 'mount')`),
      ...onlyRoot,
    },
    { name: 'make a user namespace', script: python(`call(${call('unshare')}, 0x10000000)`) },
    {
      name: 'clone into a user namespace',
      script: python(`pid = call(${call('clone')}, 0x10000000 | 17, 0, 0, 0, 0)
if pid == 0: os._exit(0)`),
    },
    { name: 'trace a process', script: python(`call(${call('ptrace')}, 0, 0, 0, 0)`) },
    {
      name: 'read the memory of a process',
      script: python(`child = os.fork()
if child == 0: signal.pause()
b = ctypes.create_string_buffer(8)
class V(ctypes.Structure): _fields_ = [('base', ctypes.c_void_p), ('size', ctypes.c_size_t)]
v = V(ctypes.addressof(b), 8)
try: call(${call('process_vm_readv')}, child, ctypes.byref(v), 1, ctypes.byref(v), 1, ctypes.c_ulong(0))
finally: os.kill(child, 9)`),
    },
    { name: 'use the keys of the kernel', script: python(`call(${call('keyctl')}, 0, -3, 1)`) },
    {
      name: 'set up a queue of system calls that no filter sees',
      script: python(`p = ctypes.create_string_buffer(120)
call(${call('io_uring_setup')}, 1, p)`),
    },
    {
      name: 'make a program that runs as its owner',
      script: `touch own; chmod 4755 own; ${shell('test -u own')}`,
    },
    {
      name: 'create a program that runs as its owner',
      script: python(`os.umask(0)
os.open('created', os.O_CREAT | os.O_WRONLY, 0o4755)
if not os.stat('created').st_mode & 0o4000: raise OSError(1, 'no such mode')`),
    },
    { name: 'make a device', script: shell('mknod device c 1 3'), ...onlyRoot },
    { name: 'see the record of the runtime', script: shell('cat .openrath/record') },
    {
      name: 'start more processes than allowed',
      script: python(`children = []
try:
    for _ in range(100):
        child = os.fork()
        if child == 0: signal.pause()
        children.append(child)
finally:
    for child in children: os.kill(child, 9)`),
    },
    {
      name: 'use more memory than allowed',
      script: python('block = bytearray(400_000_000)'),
    },
    {
      name: 'write a larger file than allowed',
      script: `head -c 5000000 /dev/zero > big; ${shell('test "$(stat -c %s big)" -gt 2000000')}`,
    },
  ]
}
