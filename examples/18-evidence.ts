// After the fact: one page that tells what happened, who wrote a line, and which step broke the tests. No model is asked for any of it.
// For what happens before, one is: without a key a script.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Agent, configure, Session, Workflow } from 'openrath'
import { bisect, blame, dossierHtml, dossierOf } from 'openrath/evidence'
import { scripted } from 'openrath/testing'
import { modelOr } from './model.ts'

const home = mkdtempSync(join(tmpdir(), 'openrath-example-'))
const project = join(home, 'project')
const workspaces = join(home, 'kept') // without it: ~/.openrath
const runtime = configure({ store: 'memory:', workspaces })
mkdirSync(project)
writeFileSync(join(project, 'price.js'), 'export const price = (net) => net\n')

const edits = [
  ['ann', 'export', '// With tax.\nexport'],
  ['bob', '=> net', '=> net + net * 0.2'],
  ['cy', 'net * 0.2', 'net * 20'],
  ['dee', 'With tax', 'Price with tax'],
] as const

/** Four agents, each told to replace a piece of price.js. */
class Team extends Workflow {
  async forward(session: Session) {
    for (const [name, old, replacement] of edits) {
      const edit = { path: 'price.js', old, new: replacement }
      const script = scripted([{ toolCalls: [{ name: 'edit_workspace_file', args: edit }] }, 'Done.'])
      const coder = new Agent('Make the one edit that you are asked for, and nothing else.', {
        name,
        model: modelOr(script),
        builtins: ['read_workspace_file', 'edit_workspace_file'],
      })
      const [from, to] = [JSON.stringify(old), JSON.stringify(replacement)]
      session = await coder(session.user(`${name}, replace ${from} in price.js by ${to}`))
    }
    return session
  }
}
const pending = runtime.run(new Team(), Session.fromUserMessage('Add tax to prices.').to('local', project))
const session = await pending

// Blame: where each line comes from, and what was behind it.
for (const { line, text, producer } of await blame(session, { path: 'price.js' }, { workspaces }))
  console.log(`${line} ${producer?.by ?? 'before'}: ${text}`)

// Bisect: the first step after which a check fails. The check is yours, and gets the files of that time.
const found = await bisect(
  session,
  async folder => {
    const { price } = await import(pathToFileURL(join(folder, 'price.js')).href)
    return price(100) < 1000
  },
  { workspaces },
)
console.log(
  `broken by ${found.first?.producer?.by ?? 'nobody'}, ${found.probes.length} of ${found.states} states checked`,
)

// The dossier: task, result, patch, who did what, tokens, and what all of that proves. One file, which opens offline.
const dossier = await dossierOf(await runtime.store, pending.runId, { workspaces })
const page = join(home, 'dossier.html')
writeFileSync(page, dossierHtml(dossier))
console.log(
  `dossier: ${dossier.subject.status}, ${dossier.steps.length} steps, ${dossier.files.length} file changed`,
)
for (const { path, change } of dossier.patch.files) console.log(`  ${change} ${path}`)
console.log(`  it proves: ${dossier.statements[0]?.text.split(/(?<=\.) /)[0]}`)
console.log(
  `  the page needs nothing else: ${!/<script[^>]+src=|<link[^>]+href="http/.test(readFileSync(page, 'utf8'))}`,
)

await runtime.close()
rmSync(home, { recursive: true })
