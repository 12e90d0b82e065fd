// Makes the pictures of the docs: a graph of sessions, the terminal, a dossier. Needs Chromium and `script` (util-linux):
// node scripts/pictures.ts. What it makes is committed.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { chromium } from 'playwright-core'
import { graphPicture } from './pictures-graph.ts'
import { tellStory } from './pictures-story.ts'
import { terminalPicture } from './pictures-terminal.ts'

const root = dirname(import.meta.dirname)
const pictures = join(root, 'docs/pictures')
mkdirSync(pictures, { recursive: true })

writeFileSync(join(pictures, 'graph.svg'), await graphPicture())

const folder = mkdtempSync(join(tmpdir(), 'openrath-pictures-'))
try {
  const { store, project } = await tellStory(folder)
  const commands = ['rath show last', 'rath graph last', 'rath blame add.mjs:1']
  const screens = commands.map(command => ({ command, printed: terminal(command, store, project) }))
  writeFileSync(join(pictures, 'terminal.svg'), terminalPicture(screens))

  const page = join(folder, 'dossier.html')
  terminal(`rath dossier last -o ${page}`, store, project)
  await photograph(page, join(pictures, 'dossier.png'))
} finally {
  rmSync(folder, { recursive: true })
}

/** What a command prints on a terminal. */
function terminal(command: string, store: string, cwd: string): string {
  const program = `${process.execPath} ${join(root, 'src/cli/main.ts')}`
  const line = `stty cols 100; ${command.replace('rath', program)}`
  const env = { ...process.env, OPENRATH_HOME: folder, OPENRATH_STORE: store, TERM: 'xterm-256color' }
  const { status, stdout, stderr } = spawnSync('script', ['-qec', line, '/dev/null'], {
    cwd,
    env,
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`${command} ended with ${status}: ${stdout}${stderr}`)
  return stdout
}

async function photograph(page: string, picture: string): Promise<void> {
  const executablePath = ['/usr/bin/chromium', '/usr/bin/google-chrome'].find(existsSync)
  if (executablePath === undefined)
    throw new Error('There is no Chromium: install it, such as with apt-get install chromium.')
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
  try {
    const tab = await browser.newPage({ viewport: { width: 1000, height: 1150 }, colorScheme: 'light' })
    await tab.goto(pathToFileURL(page).href)
    await tab.screenshot({ path: picture })
  } finally {
    await browser.close()
  }
}
