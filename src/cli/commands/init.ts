import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { basename, join, relative, resolve } from 'node:path'
import type { Command } from 'commander'
import { examples, type JsonOption, withJson } from '../command.ts'
import { UsageError } from '../errors.ts'
import type { Output } from '../output.ts'
import { projectFiles } from '../project.ts'

export function define(command: Command, output: Output): void {
  command
    .argument('[folder]', 'where; this folder by default', '.')
    .action((folder: string, { json }: JsonOption) => {
      const written = init(folder, command.parent?.version() ?? '')
      if (json) output.json(written)
      else tell(written, output)
    })
  withJson(command)
  examples(command, [
    ['rath init my-agents', 'a project that runs at once, without a key'],
    ['rath init', 'the same in this folder'],
  ])
}

interface Written {
  readonly folder: string
  readonly files: readonly string[]
}

/** Writes everything or nothing: a file that is there is never touched. */
function init(folder: string, version: string): Written {
  const path = resolve(folder)
  const files = projectFiles(basename(path), version)
  const names = Object.keys(files)
  const taken = names.filter(name => existsSync(join(path, name)))
  if (taken.length > 0) {
    const are = taken.length === 1 ? 'is' : 'are'
    throw new UsageError(`${taken.join(', ')} ${are} already in ${path}; nothing was written.`)
  }
  mkdirSync(path, { recursive: true })
  for (const [name, text] of Object.entries(files)) writeFileSync(join(path, name), text, { flag: 'wx' })
  return { folder: path, files: names }
}

function tell({ folder, files }: Written, output: Output): void {
  const there = relative('.', folder)
  const go = there ? `  cd ${JSON.stringify(there)}\n` : ''
  output.print(`${files.join(', ')} written to ${folder}. Now:`)
  output.print(`${go}  npm install\n  npx rath run workflow.ts "Why is the sky blue?"`)
}
