import { RathError } from '../../base/errors.ts'
import { Agent } from '../../flow/agent.ts'
import type { ModelLike } from '../../model/resolve.ts'
import type { Approve } from '../../run/context.ts'
import type { RunEvent } from '../../run/event.ts'
import type { Runtime } from '../../run/runtime.ts'
import { Session } from '../../session/session.ts'
import { policy } from '../../tool/policy/policy.ts'
import { approver } from '../ask.ts'
import { Lines } from '../lines.ts'
import type { Output } from '../output.ts'
import { Progress } from '../progress.ts'
import { count, duration, oneLine, plain } from '../text.ts'
import { ChatBranches, mainBranch } from './branches.ts'
import { chatCommands } from './chat-commands.ts'
import type { ChatPlace } from './place.ts'

export interface ChatOptions {
  readonly runtime: Runtime
  readonly output: Output
  /** Where the agent works. */
  readonly folder: string
  /** How its commands are kept in that folder, and the sentence that says so. */
  readonly place: ChatPlace
  readonly model?: ModelLike
  readonly prompt?: string
  /** Leaves the conversation that is there. */
  readonly isNew: boolean
  /** Whether a person is asked before anything is changed. */
  readonly asks: boolean
  /** Whether a conversation that was altered is gone ahead with. */
  readonly acceptsAltered: boolean
}

const usualPrompt =
  'You are a careful engineer who helps with the files in this folder. Look before you change something, make small changes, and say briefly what you did.'

/** Tools that change something or run something. */
const asked = ['write_workspace_file', 'edit_workspace_file', 'run_shell_command', 'run_code']

/** A conversation with an agent in a folder. It outlives the process: every turn is kept, under a tag of the folder and branch. */
export class Chat {
  readonly runtime: Runtime
  readonly output: Output
  readonly branches: ChatBranches
  branch = mainBranch
  session: Session
  readonly #options: ChatOptions
  readonly #agent: Agent
  #answering: AbortController | undefined
  #lines: Lines | undefined
  #printer: AnswerPrinter | undefined
  #isLeaving = false

  constructor(options: ChatOptions) {
    const { runtime, output, folder, place, model, prompt = usualPrompt, asks } = options
    this.#options = options
    this.runtime = runtime
    this.output = output
    this.branches = new ChatBranches(runtime.sessions, folder, place)
    this.session = Session.create('empty').to(place.backend, place.spec)
    const rules = { approval: [{ tool: asked, reason: 'The agent wants to do this:' }] }
    this.#agent = new Agent(prompt, {
      name: 'chat',
      ...(model !== undefined && { model }),
      ...(asks && {
        policy: policy(rules),
        approve: this.#approver(),
      }),
    })
  }

  /** Reads and answers until there is nothing more to read. */
  async run(input: NodeJS.ReadStream): Promise<void> {
    using lines = new Lines({ input, output: this.output.stdout, onInterrupt: () => this.#interrupt() })
    this.#lines = lines
    await this.#begin()
    while (!this.#isLeaving) {
      const said = await lines.read(`${this.branch}> `)
      if (said === undefined) break
      await this.#turn(said.trim())
    }
    this.output.tell(`Kept as session ${this.session.id}. Go on with: rath chat`)
  }

  leave(): void {
    this.#isLeaving = true
  }

  /** Makes a session the one that the conversation goes on from. */
  async goTo(session: Session, branch = this.branch): Promise<void> {
    await this.branches.keep(branch, session)
    this.session = session
    this.branch = branch
  }

  async #begin(): Promise<void> {
    if (this.#options.isNew) await this.branches.clear()
    else {
      this.branch = await this.branches.current()
      const before = await this.branches.load(this.branch)
      if (before) {
        this.session = before
        this.output.tell(
          `Going on with ${count(before.length, 'chunk')} on ${this.branch}; rath chat --new begins anew.`,
        )
      }
    }
    // A model that nothing knows is better missed before the first word.
    this.runtime.models.instead(this.#agent.model)
    this.output.tell(
      `${this.#agent.model.id}${this.#address()} in ${this.#options.folder}. /help says what else there is.`,
    )
    this.output.tell(this.#options.place.said)
  }

  /** Where what is said goes to, by whose word; a model whose key is missing says so when it is asked. */
  #address(): string {
    try {
      const { address, source } = this.#agent.model.credentials?.() ?? {}
      return address ? ` at ${URL.parse(address)?.host}, by ${source},` : ''
    } catch {
      return ''
    }
  }

  async #turn(said: string): Promise<void> {
    if (said === '') return
    try {
      if (said.startsWith('/')) await this.#command(said)
      else await this.#answer(said)
    } catch (error) {
      if (!(error instanceof RathError)) throw error
      this.output.tell(`${this.output.paint('red', 'rath:', this.output.stderr)} ${plain(error.message)}`)
    }
  }

  async #command(line: string): Promise<void> {
    const [name = '', ...rest] = line.slice(1).split(/\s+/)
    const command = Object.hasOwn(chatCommands, name) ? chatCommands[name] : undefined
    if (command) await command.run(this, rest.join(' '))
    else this.output.print(`There is no /${name}; /help lists what there is.`)
  }

  async #answer(said: string): Promise<void> {
    const question = this.session.user(said)
    using progress = new Progress(this.output, {
      quiet: !this.#lines?.isTerminal,
      doing: `asking ${this.#agent.model.id}`,
    })
    const printer = new AnswerPrinter(this.output, progress)
    this.#printer = printer
    const abort = new AbortController()
    this.#answering = abort
    const began = Date.now()
    try {
      const answered = await this.runtime.run(this.#agent, question, {
        signal: abort.signal,
        onEvent: printer.onEvent,
        ...(this.#options.acceptsAltered && { altered: 'accept' as const }),
      })
      printer.pause()
      await this.goTo(answered)
      this.#tellSpent(question, answered, began)
      const { stopped } = answered
      if (stopped)
        this.output.tell(
          `It was stopped before it was done: ${plain(answered.chunks.at(-1)?.text ?? stopped)}`,
        )
    } catch (error) {
      printer.pause()
      if (!(error instanceof RathError)) throw error
      // What was said and done until then stays, so that the next turn can speak of it.
      await this.goTo(error.session instanceof Session ? error.session : question)
      if (!abort.signal.aborted) throw error
      this.output.print('Cancelled; what was done until then is kept. /undo takes it back.')
    } finally {
      this.#answering = undefined
    }
  }

  /** What an answer took, for whoever sits in front of it. */
  #tellSpent(question: Session, { usage }: Session, began: number): void {
    if (!this.#lines?.isTerminal) return
    const tokens = usage.totalTokens - question.usage.totalTokens
    const spent = `${duration(Date.now() - began)}, ${count(tokens, 'token')} of ${usage.totalTokens.toLocaleString('en')}`
    this.output.tell(this.output.paint('dim', spent, this.output.stderr))
  }

  #approver(): Approve {
    return approver({
      output: this.output,
      runtime: this.runtime,
      lines: async () => this.#lines,
      pause: () => this.#printer?.pause(),
      resume: () => this.#printer?.resume(),
    })
  }

  #interrupt(): void {
    if (this.#answering && !this.#answering.signal.aborted) {
      this.#answering.abort(new Error('cancelled with Ctrl-C'))
    } else if (!this.#answering) {
      this.output.print('\n/quit or Ctrl-D leaves.')
      this.#lines?.clear()
    }
  }
}

/** Prints an answer while it is made: its text as it comes, and a line for each tool. Between them the spinner turns. */
class AnswerPrinter {
  readonly #output: Output
  readonly #progress: Progress
  #isInLine = false

  constructor(output: Output, progress: Progress) {
    this.#output = output
    this.#progress = progress
  }

  readonly onEvent = (event: RunEvent): void => {
    this.#progress.follow(event)
    switch (event.type) {
      case 'text-delta':
        this.#progress.stop()
        this.#output.stdout.write(plain(event.text))
        this.#isInLine = !event.text.endsWith('\n')
        break
      case 'tool-call':
        this.#line('cyan', `→ ${event.call.name} ${JSON.stringify(event.call.args)}`)
        break
      case 'tool-result': {
        const { kind } = event.outcome
        if (kind === 'value') this.#line('dim', `← ${event.tool} ${shown(event.outcome.value)}`)
        else
          this.#line(
            'yellow',
            `← ${event.tool} ${kind}: ${kind === 'denied' ? event.outcome.reason : event.outcome.message}`,
          )
        break
      }
      case 'retry':
        this.#line('yellow', `tries again in ${duration(event.waitMs)}: ${event.message}`)
    }
  }

  /** Ends a line that is not ended and takes the spinner away, for a question or for good. */
  pause(): void {
    this.#progress.stop()
    if (this.#isInLine) this.#output.stdout.write('\n')
    this.#isInLine = false
  }

  resume(): void {
    this.#progress.start()
  }

  #line(style: 'cyan' | 'dim' | 'yellow', text: string): void {
    this.pause()
    const width = Math.max(40, this.#output.width(this.#output.stdout) - 2)
    this.#output.print(this.#output.paint(style, oneLine(text, width)))
    this.resume()
  }
}

function shown(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
