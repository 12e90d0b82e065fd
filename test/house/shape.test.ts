import { expect, test } from 'vitest'
import { filesUnder, read } from './tree.ts'

const sources = filesUnder('src', '.ts').map(path => ({ path: `src/${path}`, code: read(`src/${path}`) }))
const others = ['test', 'bench', 'scripts'].flatMap(folder =>
  filesUnder(folder, '.ts').map(path => ({ path: `${folder}/${path}`, code: read(`${folder}/${path}`) })),
)

test('what asynchronous code inherits is one frame', () => {
  const holders = sources.filter(({ code }) => code.includes('AsyncLocalStorage'))
  expect(holders.map(({ path }) => path)).toEqual(['src/run/frame.ts'])
})

test('a function, class or constant is exported only where another file uses it', () => {
  const words = new Map<string, Set<string>>()
  for (const { path, code } of [...sources, ...others])
    for (const [word] of code.matchAll(/\w+/g)) words.set(word, (words.get(word) ?? new Set()).add(path))
  const unused = sources.flatMap(({ path, code }) => {
    const names = [
      ...code.matchAll(/^export (?:async |abstract )?(?:function\*?|const|let|class) (\w+)/gm),
    ].map(match => match[1] as string)
    return names.filter(name => words.get(name)?.size === 1).map(name => `${path}: ${name}`)
  })
  expect(unused).toEqual([])
})

test('every file of src is imported, or is where a program or a door begins', () => {
  const imported = new Set(
    sources.flatMap(({ path, code }) =>
      [...code.matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+\.ts)'/g)].map(([, specifier]) =>
        new URL(specifier as string, `file:///${path}`).pathname.slice(1),
      ),
    ),
  )
  const manifest = read('package.json') + read('scripts/build.ts')
  const lost = sources.filter(({ path }) => {
    const built = path.replace(/^src\//, '').replace(/\.ts$/, '')
    return !imported.has(path) && !path.endsWith('.d.ts') && !manifest.includes(built)
  })
  expect(lost.map(({ path }) => path)).toEqual([])
})
