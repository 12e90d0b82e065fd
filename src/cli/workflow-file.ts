import { existsSync, realpathSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { show } from '../base/errors.ts'
import { Workflow } from '../flow/workflow.ts'
import type { ModelLike } from '../model/resolve.ts'
import type { RunModule } from '../run/replay/resume.ts'
import { UsageError } from './errors.ts'

/** The workflow that a file exports, as an instance or as a class that needs no arguments, and where it was found. */
export async function loadWorkflow(
  file: string,
  name = 'default',
): Promise<{ readonly workflow: Workflow; readonly module: Required<Pick<RunModule, 'file' | 'export'>> }> {
  const path = resolve(file)
  const exported = await load(path)
  const found = exported[name]
  const module = { file: path, export: name }
  if (found instanceof Workflow) return { workflow: found, module }
  if (isWorkflowClass(found)) return { workflow: new found(), module }
  checkInstallation(path)
  const names = Object.keys(exported).filter(key => isRunnable(exported[key]))
  const hint =
    names.length > 0
      ? `; it exports ${names.join(', ')}: choose one with --export NAME.`
      : '; export one, or a class of one that needs no arguments.'
  throw new UsageError(`${file} exports no Workflow or Agent as ${show(name)}, but ${show(found)}${hint}`)
}

/** What `--model` names, as the run records it: a file is found from any folder. */
export function modelNamed(model: string): string {
  return isFile(model) ? resolve(model) : model
}

/** What may stand behind `--model`: a name, or a file whose default export is a model. */
export async function loadModel(model: string): Promise<ModelLike> {
  if (!isFile(model)) return model
  const found = (await load(resolve(model))).default
  if (typeof (found as { answer?: unknown } | undefined)?.answer === 'function' || isAiModel(found)) {
    return found as ModelLike
  }
  throw new UsageError(`${model} exports no model as its default, but ${show(found)}.`)
}

function isFile(model: string): boolean {
  return /\.[cm]?[jt]s$/.test(model)
}

async function load(path: string): Promise<Record<string, unknown>> {
  if (!existsSync(path)) throw new UsageError(`there is no file ${path}.`)
  return import(pathToFileURL(path).href)
}

function isRunnable(value: unknown): boolean {
  return value instanceof Workflow || isWorkflowClass(value)
}

function isWorkflowClass(value: unknown): value is new () => Workflow {
  return typeof value === 'function' && value.prototype instanceof Workflow
}

function isAiModel(value: unknown): boolean {
  return typeof (value as { doStream?: unknown } | undefined)?.doStream === 'function'
}

/** A file that loads another copy of openrath makes workflows that this one does not know. */
function checkInstallation(path: string): void {
  const ours = realpathSync(createRequire(import.meta.url).resolve('openrath/package.json'))
  let theirs: string
  try {
    theirs = realpathSync(createRequire(path).resolve('openrath/package.json'))
  } catch {
    return
  }
  if (theirs === ours) return
  throw new UsageError(
    `${path} uses openrath in ${dirname(theirs)}, and this rath is the one in ${dirname(ours)}. Run the command of the project: npx rath.`,
  )
}
