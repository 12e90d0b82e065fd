import { fileURLToPath } from 'node:url'
import { Agent } from '../flow/agent.ts'
import { EmptyWorkflow } from '../flow/empty-workflow.ts'
import { Selector } from '../flow/selector.ts'
import { Workflow } from '../flow/workflow.ts'
import { type ModelLike, type ResolvedModel, resolveModel } from '../model/resolve.ts'
import type { Session } from '../session/session.ts'
import { scriptedModels } from './script.ts'
import { Validator, verdictOn } from './validator.ts'

/** Whom each part asks. */
export type DemoModels = Readonly<
  Record<'planner' | 'researcher' | 'quick' | 'careful' | 'tester', ModelLike>
>

/** Where a run of it is found again. */
export const workflowFile = fileURLToPath(
  import.meta.url.endsWith('.ts') ? import.meta.url : new URL('../demo/workflow.js', import.meta.url),
)

const mostTurns = 6

/** Issue in, mended files out: a planner says who goes on, until nothing is left to do. */
export class FixIssue extends Workflow {
  readonly planner: Selector
  readonly researcher: Agent
  readonly attempts: Attempts

  constructor(models: DemoModels = scriptedModels()) {
    super()
    this.planner = new Selector({
      instruction:
        'You lead the work on an issue. First somebody finds out what is wrong, then attempts are made; none once an attempt has passed the tests.',
      model: models.planner,
    })
    this.researcher = new Agent(
      'Read ISSUE.md and the files it is about. Change nothing. Say in a few sentences, beginning with "Findings:", what is wrong and what to watch out for.',
      {
        name: 'researcher',
        description: 'Reads the issue and says what is wrong.',
        model: models.researcher,
        memory: 'local',
        recall: { mode: 'words', query: session => session.chunks.at(0)?.text.split('\n')[0] },
        builtins: ['read_workspace_file', 'list_workspace_files', 'search_workspace'],
      },
    )
    this.attempts = new Attempts(models)
  }

  async forward(session: Session): Promise<Session> {
    const choose = () => this.planner(session, this.researcher, this.attempts)
    let next = await choose()
    for (let turn = 1; !(next instanceof EmptyWorkflow) && turn <= mostTurns; turn++) {
      session = await next(session)
      next = await choose()
    }
    // Calling what was chosen last puts the end on the record, too.
    return next instanceof EmptyWorkflow ? next(session) : session
  }
}

/** The same with a real model: the one that the environment or the config file names, or the usual one of whoever there is a key for. */
export class LiveFixIssue extends FixIssue {
  constructor() {
    const model = liveModel()
    super({ planner: model, researcher: model, quick: model, careful: model, tester: model })
  }
}

function liveModel(): ResolvedModel {
  const { OPENAI_API_KEY, OPENAI_DEFAULT_MODEL, ANTHROPIC_API_KEY, ANTHROPIC_DEFAULT_MODEL } = process.env
  if (OPENAI_DEFAULT_MODEL || ANTHROPIC_DEFAULT_MODEL) return resolveModel(undefined)
  if (OPENAI_API_KEY) return resolveModel('openai/gpt-5.5')
  return resolveModel(ANTHROPIC_API_KEY ? 'anthropic/claude-opus-5-5' : undefined)
}

/** Two coders on two branches, each with files of its own. What the tests accept comes back to the folder. */
class Attempts extends Workflow {
  override description = 'Two coders try to mend it, and the tests judge.'
  readonly quick: Agent
  readonly careful: Agent
  readonly validator: Validator

  constructor(models: DemoModels) {
    super()
    const builtins = ['read_workspace_file', 'edit_workspace_file', 'write_workspace_file'] as const
    this.quick = new Agent('You mend bugs with the smallest edit that could work. Say what you did.', {
      model: models.quick,
      builtins,
    })
    this.careful = new Agent(
      'You mend bugs thoroughly: read the tests first, and keep what works today. Say what you did.',
      { model: models.careful, builtins },
    )
    this.validator = new Validator(models.tester)
  }

  async forward(session: Session): Promise<Session> {
    const [quick, careful] = session
      .user('Mend the code. Do not change the tests.')
      .forks(['quick', 'careful']) as [Session, Session]
    const [first, second] = await Promise.all([
      this.validator(this.quick(quick)),
      this.validator(this.careful(careful)),
    ])
    // What a branch has learned is for everyone from here on; what a rejected one has learned says so.
    for (const branch of [first, second]) await this.validator.tester.commit(branch)
    const accepted = [first, second].find(branch => verdictOn(branch)?.verdict === 'accept')
    if (accepted === undefined) return session.user('Both attempts failed the tests. Go on.')
    // The rejected branch stays in the lineage; its words and files are left out.
    return accepted.merge(accepted === first ? second : first, { policy: 'ours', by: 'attempts' })
  }
}
