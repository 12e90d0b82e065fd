import { RathError, show } from '../../base/errors.ts'
import type { Tool } from '../spec.ts'
import { toolTable } from '../tool.ts'
import { editWorkspaceFile, writeWorkspaceFile } from './edit-file.ts'
import {
  inWorkspaceByDefault,
  listWorkspaceFiles,
  searchWorkspace,
  workspacePathExists,
} from './list-files.ts'
import { readWorkspaceFile } from './read-file.ts'
import { runCode, runShellCommand } from './run-shell-command.ts'

export type BuiltinName =
  | 'run_shell_command'
  | 'read_workspace_file'
  | 'write_workspace_file'
  | 'edit_workspace_file'
  | 'list_workspace_files'
  | 'search_workspace'
  | 'workspace_path_exists'
  | 'run_code'

const builtins: Readonly<Record<BuiltinName, Tool>> = {
  run_shell_command: runShellCommand,
  read_workspace_file: readWorkspaceFile,
  write_workspace_file: writeWorkspaceFile,
  edit_workspace_file: editWorkspaceFile,
  list_workspace_files: inWorkspaceByDefault(listWorkspaceFiles),
  search_workspace: inWorkspaceByDefault(searchWorkspace),
  workspace_path_exists: workspacePathExists,
  run_code: runCode,
}

/** The tools that work on a session's sandbox: all of them, those named, or none. */
export function builtinTools(which: boolean | readonly string[] = true): Tool[] {
  if (which === true) return Object.values(builtins)
  if (which === false) return []
  return [...new Set(which)].map(name => {
    if (isBuiltin(name)) return builtins[name]
    throw new RathError(
      'invalid-argument',
      `There is no built-in tool ${show(name)}; there are ${Object.keys(builtins).join(', ')}.`,
    )
  })
}

/** A table of built-in tools and others. One that takes the name of a built-in tool is refused with the way out. */
export function withBuiltins(taken: readonly Tool[], others: readonly Tool[]): ReadonlyMap<string, Tool> {
  for (const { name } of others) {
    if (!taken.some(builtin => builtin.name === name)) continue
    throw new RathError(
      'invalid-argument',
      `${show(name)} is a built-in tool, and the agent has it. Rename yours, or leave the built-in one out: ` +
        `builtins: false, or a list of those that you want.`,
    )
  }
  return toolTable([...taken, ...others])
}

/** Whether a tool is one of these, and not only called like one. */
export function isBuiltinTool(tool: Tool): boolean {
  return isBuiltin(tool.name) && builtins[tool.name] === tool
}

export function isBuiltin(name: string): name is BuiltinName {
  return Object.hasOwn(builtins, name)
}
