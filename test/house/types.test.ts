import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { blocksOf } from './pages.ts'
import { run } from './run.ts'
import { filesUnder, read, root } from './tree.ts'

const program = (entry: string) => `
import { type ChunkInput, type Message, Session, sessionGraph } from '${entry}'

const answer: ChunkInput = { kind: 'assistant', text: 'Four.', toolCalls: [{ id: 'c', name: 'add', args: [2, 2] }] }
const session: Session = Session.fromUserMessage('What is 2 + 2?').append(answer).to('local', './')
export const messages: Message[] = session.messages()
export const merged: Promise<Session> = session.fork('a').merge([session.fork('b')], { policy: 'ours' })
export const drawing: string = sessionGraph([session.detach()]).toMermaid()
for (const chunk of session.chunks) if (chunk.kind === 'tool-result') void chunk.outcome.kind
// @ts-expect-error a chunk is read-only
session.chunks.at(0)!.at = 0
// @ts-expect-error a kind that does not exist
session.append({ kind: 'whisper', text: '' })
`

test('the built types compile in a strict project that knows neither Node nor our source', () => {
  const files = { 'app.ts': program('openrath'), 'page.ts': program('openrath/session') }
  for (const module of ['nodenext', 'preserve']) {
    expect(problems(files, { module, lib: ['es2024', 'esnext.iterator', 'dom'], types: [] }), module).toBe('')
  }
})

test('the programs on the pages compile in a strict project', () => {
  // Without what the site generates there.
  const written = filesUnder('docs', '.md').filter(path => !/^(\.vitepress|api)\//.test(path))
  const pages = ['README.md', ...written.map(path => `docs/${path}`)]
  const files: Record<string, string> = {}
  for (const page of pages) {
    const programs = blocksOf(read(page)).filter(block => block.language === 'ts')
    const code = programs.map(block => block.text).join('\n')
    if (code !== '') files[page.replaceAll('/', '-').replace(/md$/, 'ts')] = code
  }
  expect(Object.keys(files).length).toBeGreaterThan(2)
  // The types of other people's packages are theirs to mend.
  const ours = problems(files, { module: 'nodenext', types: ['node'] })
    .split('\n')
    .filter(line => !/^(\S*node_modules\/|\s|$)/.test(line))
  expect(ours).toEqual([])
})

/** What the compiler says about these files in a project of their own that has openrath installed. */
function problems(files: Record<string, string>, options: object): string {
  const folder = mkdtempSync(join(tmpdir(), 'openrath-types-'))
  try {
    mkdirSync(join(folder, 'node_modules'))
    symlinkSync(root, join(folder, 'node_modules/openrath'))
    // Besides what the pages ask their readers to install.
    for (const name of ['@types', 'zod', 'ai', '@ai-sdk', '@opentelemetry'])
      symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name))
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
    for (const [name, code] of Object.entries(files)) writeFileSync(join(folder, name), code)
    const strict = { strict: true, exactOptionalPropertyTypes: true, noEmit: true, target: 'es2023' }
    const config = { compilerOptions: { ...strict, ...options }, files: Object.keys(files) }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
    const typescript = dirname(createRequire(import.meta.url).resolve('typescript/package.json'))
    const { status, stdout, stderr } = run(process.execPath, join(typescript, 'bin/tsc'), '-p', folder)
    return status === 0 ? '' : stdout + stderr
  } finally {
    rmSync(folder, { recursive: true })
  }
}
