import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** The line that the issue is about, as it stands in the file. */
export const brokenLine = "  return title.trim().toLowerCase().replace(' ', '-')"

/** What the agents are asked to do. What is recalled goes by the first line. */
export function taskFor(node: string): string {
  return `Titles get wrong slugs.\nThe issue is in ISSUE.md. The tests are run with \`${node} --test --test-reporter=tap\`.`
}

/** What somebody is said to have noted in this repository a week ago. */
export const noteFromLastWeek =
  'Titles got wrong slugs before: \\W takes letters with accents for no letters; \\p{M} helped.'

/** The tests that pass before anybody has done anything. An edit that breaks one of them can be found. */
export const passingTests: readonly string[] = ['words are joined by dashes', 'no dash at the ends']

/** A small repository with three tests that fail, and those that pass. */
const files: Readonly<Record<string, string>> = {
  'package.json': `${JSON.stringify(
    { name: 'slug', private: true, type: 'module', scripts: { test: 'node --test' } },
    null,
    2,
  )}\n`,
  'ISSUE.md': `# Slugs of some titles come out wrong

- \`Hello   big  World\` gives \`hello-  big  world\`; it should be \`hello-big-world\`.
- \`Ready, steady: go\` keeps its comma and its colon.
- \`Crème brûlée\` keeps its accents, and mail programs break the link.

Addresses that work today must stay as they are.
`,
  'src/slug.js': `/** The part of an address that stands for a title: \`Hello World\` becomes \`hello-world\`. */
export function slug(title) {
${brokenLine}
}
`,
  'test/slug.test.js': `import assert from 'node:assert/strict'
import { test } from 'node:test'
import { slug } from '../src/slug.js'

test('words are joined by dashes', () => assert.equal(slug('Hello World'), 'hello-world'))
test('several spaces make one dash', () => assert.equal(slug('Hello   big  World'), 'hello-big-world'))
test('punctuation is no part of it', () => assert.equal(slug('Ready, steady: go'), 'ready-steady-go'))
test('letters lose their accents', () => assert.equal(slug('Crème brûlée'), 'creme-brulee'))
test('no dash at the ends', () => assert.equal(slug('  Hello World  '), 'hello-world'))
`,
}

/** Writes the repository to a folder. */
export function writeRepository(folder: string): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
}
