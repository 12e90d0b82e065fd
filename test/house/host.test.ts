import { expect, test } from 'vitest'
import { importsOf } from './imports.ts'
import { filesUnder, read } from './tree.ts'

const files = filesUnder('src', '.ts').map(path => ({ path, code: read(`src/${path}`) }))

test('one module starts programs: nothing else in src imports what could start one', () => {
  const starters = /^(node:)?(child_process|cluster)$/
  const found = files
    .filter(({ path, code }) =>
      importsOf(path, code).some(one => starters.test(one.specifier) && !one.typeOnly),
    )
    .map(({ path }) => path)
  expect(found).toEqual(['base/programs.ts'])
})

test('nothing in src reaches for a module that its imports do not name', () => {
  const ways = /\bcreateRequire\(|\bprocess\.(binding|getBuiltinModule|dlopen)\b|[^.\w]require\(/
  const found = files.filter(({ code }) => ways.test(code)).map(({ path }) => path)
  // In turn: finds another installation of this package and loads nothing of it, loads one optional package, runs inside a sandbox, asks Node's debugger what is loaded.
  expect(found).toEqual([
    'cli/workflow-file.ts',
    'run/telemetry/otel.ts',
    'sandbox/drivers/isolated/forwarder.ts',
    'sandbox/host/loaded-code.ts',
  ])
})

test('one module knows which system this is', () => {
  const found = files
    .filter(({ code }) => /process\.platform|os\.platform\(/.test(code))
    .map(({ path }) => path)
  expect(found).toEqual(['base/platform.ts'])
})
