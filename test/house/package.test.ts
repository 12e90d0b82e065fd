import { existsSync, statSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { writtenPages } from '../../docs/.vitepress/pages.ts'
import { version } from '../../src/base/version.ts'
import { importsOf } from './imports.ts'
import { run } from './run.ts'
import { filesUnder, read, root } from './tree.ts'

interface Manifest {
  readonly name: string
  readonly version: string
  readonly license: string
  readonly type: string
  readonly engines: Record<string, string>
  readonly exports: Record<string, string | { readonly types: string; readonly default: string }>
  readonly scripts: Record<string, string>
  readonly dependencies: Record<string, string>
  readonly devDependencies: Record<string, string>
  readonly peerDependencies: Record<string, string>
  readonly peerDependenciesMeta: Record<string, { readonly optional?: boolean }>
}

const manifest: Manifest = JSON.parse(read('package.json'))
const entries = Object.entries(manifest.exports).filter(entry => typeof entry[1] !== 'string') as [
  string,
  { types: string; default: string },
][]

test('what the exports map promises is built, types included', () => {
  expect(manifest.exports['./package.json']).toBe('./package.json')
  for (const [name, targets] of entries) {
    // Resolution takes the first condition that matches, so the order is part of the promise.
    expect(Object.keys(targets), name).toEqual(['types', 'default'])
    for (const target of Object.values(targets)) expect(existsSync(join(root, target)), target).toBe(true)
  }
})

test('every index file is a door, and so is every file in doors', () => {
  const built = filesUnder('dist', '.js').filter(path => /(^|\/)index\.js$/.test(path))
  const exported = entries
    .map(([, targets]) => targets.default.replace('./dist/', ''))
    .filter(path => /(^|\/)index\.js$/.test(path))
  expect(built).toEqual(exported.sort())
  const doors = entries.map(([, targets]) => targets.default).filter(path => path.startsWith('./dist/doors/'))
  expect(filesUnder('dist/doors', '.js').map(path => `./dist/doors/${path}`)).toEqual(doors.sort())
})

test('dist holds the types of each file in src, and code that something in it loads, with a map', () => {
  // Types that a package does not bring are for the compiler alone.
  const sources = filesUnder('src', '.ts').filter(path => !path.endsWith('.d.ts'))
  expect(filesUnder('dist', '.d.ts')).toEqual(sources.map(path => path.replace(/\.ts$/, '.d.ts')))
  const code = filesUnder('dist', '.js')
  const named = [
    ...entries.map(([, targets]) => targets.default),
    './dist/cli/main.js',
    './dist/demo/workflow.js',
  ]
  const loaded = new Set(named.map(path => path.replace('./dist/', '')))
  for (const path of loaded) {
    for (const { specifier } of importsOf(path, read(`dist/${path}`)))
      if (specifier.startsWith('.')) loaded.add(join(dirname(path), specifier))
  }
  expect(code).toEqual([...loaded].sort())
  // What only passes on what another file exports has nothing to map.
  const mapped = code.filter(path => read(`dist/${path}`).includes('sourceMappingURL'))
  expect(filesUnder('dist')).toEqual(
    [...filesUnder('dist', '.d.ts'), ...code, ...mapped.map(path => `${path}.map`)].sort(),
  )
  expect(mapped).toContain('parts/core.js')
})

test('a program that imports openrath loads a handful of its files', () => {
  const loaded = new Set(['index.js'])
  for (const path of loaded) {
    for (const { specifier, isLater } of importsOf(path, read(`dist/${path}`)))
      if (specifier.startsWith('.') && !isLater) loaded.add(join(dirname(path), specifier))
  }
  expect(loaded.size).toBeLessThanOrEqual(6)
})

test('the typechecker reads the same entries from src that users import from dist', () => {
  const paths = JSON.parse(read('tsconfig.json')).compilerOptions.paths
  const expected = entries.map(([name, targets]) => [
    manifest.name + name.slice(1),
    [targets.default.replace('./dist/', './src/').replace(/\.js$/, '.ts')],
  ])
  expect(paths).toEqual(Object.fromEntries(expected))
})

test('every module that dist imports is a dependency, a peer, or part of Node', () => {
  const peers = Object.keys(manifest.peerDependencies)
  const known = new Set([...Object.keys(manifest.dependencies), ...peers])
  for (const path of filesUnder('dist', '.js')) {
    for (const { specifier } of importsOf(path, read(`dist/${path}`))) {
      if (specifier.startsWith('.')) continue
      if (specifier.startsWith('node:')) {
        expect(builtinModules.includes(specifier.slice(5)) || builtinModules.includes(specifier)).toBe(true)
        continue
      }
      expect(known, `${path} imports ${specifier}`).toContain(packageName(specifier))
    }
  }
})

test('the package has one licence, asks for the Node it needs, pins what it brings and runs nothing when installed', () => {
  expect(manifest.license).toBe('BSD-3-Clause')
  expect(read('LICENSE')).toContain('Redistribution and use in source and binary forms')
  expect(manifest.type).toBe('module')
  expect(manifest.engines).toEqual({ node: '>=22.18' })
  for (const script of ['preinstall', 'install', 'postinstall'])
    expect(manifest.scripts).not.toHaveProperty(script)
  const pinned = { ...manifest.dependencies, ...manifest.devDependencies }
  for (const [name, version] of Object.entries(pinned))
    expect(version, name).toMatch(/^\d+\.\d+\.\d+(-[\w.]+)?$/)
  for (const name of Object.keys(manifest.peerDependencies)) {
    expect(manifest.peerDependenciesMeta[name]?.optional, `peer ${name}`).toBe(true)
  }
})

test('the version that runs record is that of the package', () => {
  expect(version).toBe(manifest.version)
})

test('what npm packs is the build, the docs and the papers, and nothing else', () => {
  const { status, stdout, stderr } = run('npm', 'pack', '--dry-run', '--json', '--ignore-scripts')
  expect(status, stderr).toBe(0)
  const [packed] = JSON.parse(stdout) as [{ files: { path: string }[] }]
  const paths = packed.files.map(file => file.path)
  const papers = ['CHANGELOG.md', 'LICENSE', 'README.md', 'package.json']
  expect(paths.filter(path => !/^(dist|docs)\//.test(path)).sort()).toEqual(papers)
  expect(paths.filter(path => path.startsWith('dist/')).sort()).toEqual(
    filesUnder('dist').map(path => `dist/${path}`),
  )
  // The pages as they are written and their pictures; neither the site, nor what makes it, nor what is made from the types.
  const docs = paths.filter(path => path.startsWith('docs/'))
  const pages = writtenPages().map(({ path }) => path)
  expect(docs.filter(path => path.endsWith('.md'))).toEqual(pages.map(path => `docs/${path}`))
  const others = [
    ...filesUnder('docs/pictures').map(path => `docs/pictures/${path}`),
    'docs/format/example.jsonl',
  ]
  expect(docs.filter(path => !path.endsWith('.md')).sort()).toEqual(others.sort())
  for (const path of others) expect(statSync(join(root, path)).size, path).toBeLessThan(150_000)
})

function packageName(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
}
