import { expect, test } from 'vitest'
import { isAtOrBelow, killGroup, platformOf } from '../../src/base/platform.ts'
import { findProgram } from '../../src/base/programs.ts'
import { platformLacks } from '../../src/cli/commands/doctor.ts'
import { findPrograms } from '../../src/sandbox/drivers/isolated/programs.ts'
import { localBackend } from '../../src/sandbox/drivers/local/driver.ts'

const [linux, mac, windows] = (['linux', 'darwin', 'win32'] as const).map(name => platformOf(name, {})) as [
  ReturnType<typeof platformOf>,
  ReturnType<typeof platformOf>,
  ReturnType<typeof platformOf>,
]

test('names that lead to one entry of a folder are one name, as each system has it', () => {
  const same = (platform: typeof linux, path: string) => isAtOrBelow(path, '.git/config', platform)
  expect(same(linux, '.git/config')).toBe(true)
  expect(same(linux, '.GIT/config')).toBe(false)
  expect(same(linux, '.git/config.lock')).toBe(false)
  for (const path of ['.GIT/Config', '.g\u200cit/config', '.git/CONFIG/below'])
    expect(same(mac, path), path).toBe(true)
  expect(same(mac, '.git.')).toBe(false)
  for (const path of ['.GIT\\Config', '.git./config', '.git/config::$DATA', '.git /config'])
    expect(same(windows, path), path).toBe(true)
})

test('accents written in two ways are one name on macOS', () => {
  expect(isAtOrBelow('caf\u0065\u0301', 'caf\u00e9', mac)).toBe(true)
  expect(isAtOrBelow('caf\u0065\u0301', 'caf\u00e9', linux)).toBe(false)
})

test('programs come from folders of the system on every system, absolute and never the current one', () => {
  for (const { programFolders, name } of [linux, mac, windows]) {
    expect(programFolders.length).toBeGreaterThan(2)
    for (const folder of programFolders) expect(folder).toMatch(name === 'win32' ? /^C:\\/ : /^\//)
  }
  expect(platformOf('win32', { SystemRoot: 'D:\\Win' }).programFolders[0]).toBe('D:\\Win\\System32')
  expect(findProgram('sh', undefined, linux)).toMatch(/^\/.*\/sh$/)
  expect(findProgram('C:\\x\\y.exe', [], windows)).toBe('C:\\x\\y.exe')
})

test('what needs Linux says so by name elsewhere, and offers something that isolates', async () => {
  expect(findPrograms([], mac)).toBe('isolated needs Linux, and this is macOS; use docker.')
  expect(findPrograms([], windows)).toBe('isolated needs Linux, and this is Windows; use docker.')
  const local = localBackend({ platform: windows })
  expect(await local.probe?.()).toMatchObject({
    available: false,
    reason: expect.stringContaining('Windows'),
  })
  await expect(local.open(undefined)).rejects.toMatchObject({ code: 'sandbox-unavailable' })
  expect(await localBackend({ platform: mac }).probe?.()).toEqual({ available: true })
  expect(platformLacks(linux)).toEqual([])
  expect(platformLacks(mac)[0]).toEqual({
    what: 'macOS',
    state: 'missing',
    found: 'isolated needs Linux (namespaces, seccomp, bubblewrap)',
    fix: 'use docker, or run in a Linux virtual machine',
  })
  for (const { lacks } of [mac, windows]) {
    expect(lacks.map(({ what }) => what).join('\n')).toMatch(/isolated needs Linux/)
    for (const { instead } of lacks) expect(instead).not.toBe('')
  }
})

test('a process that is gone is not killed, with groups and without', () => {
  for (const platform of [linux, windows]) expect(killGroup(2 ** 22 + 1, 'SIGKILL', platform)).toBe(false)
})
