import { describe, expect, test } from 'vitest'
import { type Machine, machineOf, seccompFilter } from '../../src/sandbox/drivers/isolated/seccomp.ts'
import { type SystemCall, systemCalls } from '../../src/sandbox/drivers/isolated/system-calls.ts'

const architectures = { arm64: 0xc00000b7, x64: 0xc000003e }

/** What the kernel would do with a call: the filter's instructions, one by one. */
function decide(
  machine: Machine,
  call: number,
  args: readonly number[] = [],
  arch = architectures[machine],
  program = seccompFilter(machine),
) {
  const code = new DataView(program.buffer)
  const data = new DataView(new ArrayBuffer(64))
  data.setUint32(0, call, true)
  data.setUint32(4, arch, true)
  for (const [i, value] of args.entries()) data.setBigUint64(16 + 8 * i, BigInt(value), true)
  let loaded = 0
  for (let at = 0; at < program.length / 8; at++) {
    const value = code.getUint32(at * 8 + 4, true)
    const jump = (isSo: boolean) => code.getUint8(at * 8 + (isSo ? 2 : 3))
    switch (code.getUint16(at * 8, true)) {
      case 0x20:
        loaded = data.getUint32(value, true)
        break
      case 0x15:
        at += jump(loaded === value)
        break
      case 0x35:
        at += jump(loaded >= value)
        break
      case 0x45:
        at += jump((loaded & value) !== 0)
        break
      case 0x06:
        return value === 0x7fff0000 ? 'allowed' : value & 0xffff
      default:
        throw new Error(`an instruction that is not known, at ${at}`)
    }
  }
  throw new Error('the program ran over its end')
}

const [EPERM, ENOSYS, EAFNOSUPPORT] = [1, 38, 97]

describe.each(['arm64', 'x64'] as const)('the filter for %s', machine => {
  const number = (name: SystemCall) => systemCalls[name][machine === 'arm64' ? 0 : 1]
  const answer = (name: SystemCall, ...args: number[]) => {
    const call = number(name)
    return call === null ? undefined : decide(machine, call, args)
  }

  test('refuses memory that lies in no process only where nothing counts it', () => {
    const program = seccompFilter(machine, { hiddenMemory: false })
    const held = (name: SystemCall, ...args: number[]) =>
      decide(machine, number(name) as number, args, architectures[machine], program)
    const sizes = [1, 4096, 4097, 2 ** 32, 2 ** 40 + 1]
    expect(sizes.map(size => held('shmget', 0, size))).toEqual(['allowed', 'allowed', ENOSYS, ENOSYS, ENOSYS])
    for (const name of ['memfd_create', 'memfd_secret'] as const) {
      expect(held(name)).toBe(ENOSYS)
      expect(answer(name)).toBe('allowed')
    }
    expect(answer('shmget', 0, 2 ** 40)).toBe('allowed')
    expect([held('mount'), held('socket', 1), held('openat', 0, 0, 0)]).toEqual([EPERM, 'allowed', 'allowed'])
  })

  test('refuses what leads out, whatever its arguments', () => {
    for (const name of [
      'mount',
      'unshare',
      'setns',
      'ptrace',
      'bpf',
      'keyctl',
      'kexec_load',
      'reboot',
    ] as const) {
      expect([name, answer(name)]).toEqual([name, EPERM])
    }
    for (const name of ['clone3', 'openat2', 'io_uring_setup'] as const) expect(answer(name)).toBe(ENOSYS)
  })

  test('looks at arguments where a call has good uses too', () => {
    expect(answer('clone', 17)).toBe('allowed')
    expect(answer('clone', 0x3d0f00)).toBe('allowed')
    for (const flag of [0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000]) {
      expect(answer('clone', flag | 17)).toBe(EPERM)
    }
    for (const family of [1, 2, 10, 16]) expect(answer('socket', family)).toBe('allowed')
    for (const family of [0, 17, 38, 40]) expect(answer('socket', family)).toBe(EAFNOSUPPORT)
    expect(answer('personality', 0xffffffff)).toBe('allowed')
    expect(answer('personality', 0x0040000)).toBe(EPERM)
    expect([answer('ioctl', 0, 0x5413), answer('ioctl', 0, 0x5412), answer('ioctl', 0, 0x541c)]).toEqual([
      'allowed',
      EPERM,
      EPERM,
    ])
  })

  test('lets no file be made that runs as its owner', () => {
    expect([answer('fchmod', 3, 0o755), answer('fchmod', 3, 0o4755)]).toEqual(['allowed', EPERM])
    expect([answer('fchmodat', 3, 0, 0o2755), answer('fchmodat2', 3, 0, 0o4755)]).toEqual([EPERM, EPERM])
    expect(answer('openat', 3, 0, 0o101, 0o4755)).toBe(EPERM)
    expect(answer('openat', 3, 0, 0o101, 0o1755)).toBe('allowed')
    // Without O_CREAT the mode is whatever lay in the register.
    expect(answer('openat', 3, 0, 0, 0o7777)).toBe('allowed')
    expect([undefined, EPERM]).toContain(answer('chmod', 0, 0o4755))
  })

  test('answers calls by another convention as if there were none', () => {
    expect(decide(machine, 1, [], 0x40000003)).toBe(ENOSYS)
    expect(decide('x64', 0x40000000 + 56)).toBe(ENOSYS)
  })

  test('lets every other call through', () => {
    const known = new Set<number | null>(Object.keys(systemCalls).map(name => number(name as SystemCall)))
    for (let call = 0; call < 470; call++) if (!known.has(call)) expect(decide(machine, call)).toBe('allowed')
  })
})

test('a machine without a table has no filter', () => {
  expect([machineOf('arm64'), machineOf('x64'), machineOf('riscv64')]).toEqual(['arm64', 'x64', undefined])
})
