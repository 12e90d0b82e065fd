import { expect, test } from 'vitest'
import { blocksOf, runPage } from './pages.ts'
import { filesUnder, read } from './tree.ts'

const readme = read('README.md')

test('the code in the README prints what the README shows', () => {
  const results = runPage(readme)
  expect(results).toHaveLength(2)
  for (const { shown, printed } of results) expect(printed).toBe(shown)
})

test('each program is at most ten lines', () => {
  for (const { language, text } of blocksOf(readme)) {
    if (language === 'ts')
      expect(text.split('\n').filter(line => line.trim() !== '').length).toBeLessThanOrEqual(10)
  }
})

test('the table of examples has every one of them, in order', () => {
  const linked = [...readme.matchAll(/^\| \[.*?\]\(examples\/(\S+?\.ts)\)/gm)].map(([, name]) => name)
  const there = filesUnder('examples', '.ts').filter(name => !name.includes('/') && name !== 'model.ts')
  expect(linked).toEqual(there)
})

test('the two commands are there, and .ci/run runs the second as it is, as an ordinary user and as root', () => {
  const commands = blocksOf(readme)
    .find(block => block.language === 'sh')
    ?.text.trim()
    .split('\n')
  expect(commands).toEqual(['npm install && npm start', 'npm install && npm test'])
  const script = read('.ci/run')
  expect(script).toContain(`\ncommand='${commands?.[1]}'\n`)
  const [, ordinary = ''] = /^as_ordinary_user\(\) \{\n(.*?)^\}$/ms.exec(script) ?? []
  expect(ordinary).toContain('bash -c "cd ~/checkout && $command"')
  const [, main = ''] = /^main\(\) \{\n(.*?)^\}$/ms.exec(script) ?? []
  const passes = [...main.matchAll(/\bpass "(.+?)" (.+)$/gm)].map(([, name, what]) => [name, what])
  expect(passes).toEqual([
    ['as an ordinary user', 'as_ordinary_user'],
    ['as root', 'bash -c "$command"'],
    ['as $(id -un)', 'bash -c "$command"'],
  ])
  expect(script.trim().split('\n').at(-1)).toBe('main')
})
