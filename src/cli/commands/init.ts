import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { basename, join, relative, resolve } from 'node:path'
import type { Command } from 'commander'
import { examples } from '../command.ts'
import { UsageError } from '../errors.ts'
import type { Output } from '../output.ts'
import { projectFiles } from '../project.ts'

export function define(command: Command, output: Output): void {
  command
    .argument('[folder]', 'where; this folder by default', '.')
    .action((folder: string) => init(folder, command.parent?.version() ?? '', output))
  examples(command, [
    ['rath init my-agents', 'a project that runs at once, without a key'],
    ['rath init', 'the same in this folder'],
  ])
}

/** Writes everything or nothing: a file that is there is never touched. */
function init(folder: string, version: string, output: Output): void {
  const path = resolve(folder)
  const files = projectFiles(basename(path), version)
  const taken = Object.keys(files).filter(name => existsSync(join(path, name)))
  if (taken.length > 0) {
    throw new UsageError(
      `${taken.join(', ')} ${taken.length === 1 ? 'is' : 'are'} already in ${path}; nothing was written.`,
    )
  }
  mkdirSync(path, { recursive: true })
  for (const [name, text] of Object.entries(files)) writeFileSync(join(path, name), text, { flag: 'wx' })
  const there = relative('.', path)
  output.print(`${Object.keys(files).join(', ')} written to ${path}. Now:`)
  output.print(
    `${there ? `  cd ${there}\n` : ''}  npm install\n  npx rath run workflow.ts "Why is the sky blue?"`,
  )
}
