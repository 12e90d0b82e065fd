import { writtenPages } from '../../docs/.vitepress/pages.ts'
import { exportsOf } from './imports.ts'
import { blocksOf } from './pages.ts'
import { read } from './tree.ts'

/**
 * The `typescript` blocks of the pages, which are pieces of programs and not run, as files that a compiler can check, with what a reader
 * takes for given. Programs of other libraries are not among them.
 */
export function fragments(): Record<string, string> {
  const files: Record<string, string> = { ...given, 'names.d.ts': names() }
  for (const { path, markdown } of writtenPages()) {
    if (path.startsWith('coming-from/')) continue
    const pieces = blocksOf(markdown).filter(block => block.language === 'typescript')
    for (const [i, { text }] of pieces.entries())
      files[`${path.replaceAll('/', '.').replace(/md$/, '')}${i + 1}.ts`] = `${text}\nexport {}\n`
  }
  return files
}

/** Everything that the package exports, without an import, and things that a page speaks of. */
function names(): string {
  const { exports } = JSON.parse(read('package.json')) as { exports: Record<string, { types?: string }> }
  const lines = new Map<string, string>()
  for (const [door, { types: path }] of Object.entries(exports)) {
    if (path === undefined || door === './testing') continue
    const from = `import('openrath${door.slice(1)}')`
    const { values, types } = exportsOf(path, read(path))
    const classes = values.filter(name => /^[A-Z]/.test(name))
    for (const name of values) lines.set(name, `  var ${name}: typeof ${from}.${name}`)
    for (const name of [...classes, ...types]) lines.set(`type ${name}`, `  type ${name} = ${from}.${name}`)
  }
  return `export {}
declare global {
${[...lines.values()].join('\n')}
${Object.entries(things)
  .map(([name, type]) => `  var ${name}: ${type}`)
  .join('\n')}
}
`
}

const things: Record<string, string> = {
  session: 'Session',
  model: 'ModelLike',
  store: 'Store',
  runtime: 'Runtime',
  runId: 'string',
  key: 'string',
  snapshot: 'string',
  sandbox: 'Promise<Sandbox>',
  myBackend: 'SandboxBackend',
  e2bBackend: '() => SandboxBackend',
  mem0: '(key: string) => MemoryBackend',
  except: 'Record<string, string>',
  emptyPlace: '() => Promise<string>',
  homedir: "typeof import('node:os').homedir",
  writeFile: "typeof import('node:fs/promises').writeFile",
  test: "typeof import('vitest').test",
}

const languageModel = "import('@ai-sdk/provider').LanguageModelV4"

/** Files and packages that a page imports and this repository does not have. */
const given: Record<string, string> = {
  'mine.ts': 'export declare const mine: MemoryBackend\n',
  'e2b.ts': 'export declare const e2bBackend: () => SandboxBackend\n',
  'my-driver.ts': 'export declare const myDriver: (place: string) => Promise<StoreDriver>\n',
  'packages.d.ts': ['google:google', 'amazon-bedrock:bedrock', 'mistral:mistral']
    .map(pair => pair.split(':'))
    .map(
      ([name, model]) =>
        `declare module '@ai-sdk/${name}' { export const ${model}: (id: string) => ${languageModel} }\n`,
    )
    .join(''),
}
