import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isolatedBackend } from '../../../src/sandbox/drivers/isolated/driver.ts'
import { temporaryFolder } from '../make.ts'

const { available, reason } = (await isolatedBackend().probe?.()) ?? { available: true }
if (!available) console.warn(`What commands make for git to run is not tried: ${reason}`)

interface Attack {
  /** Before the sandbox is opened, in a repository with one commit; `none` for a folder that is no repository. */
  readonly before: 'none' | ((git: (...args: string[]) => string, folder: string) => void)
  /** Has git run `MARK`, a program that leaves a mark. */
  readonly script: string
  readonly says?: string
}

const hook = (path: string) => `cp mark.sh ${path}/pre-commit`

const submodule = (path: string) =>
  `git init -q ${path}; git -C ${path} -c user.name=a -c user.email=a@example.com commit -q --allow-empty -m x`

/** Ways that no mount alone closes: what git would look for is missing or is a link, or the repository is of the command's making. */
const attacks: Readonly<Record<string, Attack>> = {
  'replaces a link to hooks, and writes where it leads': {
    before: (_, folder) => {
      execFileSync('rm', ['-r', join(folder, '.git/hooks')])
      mkdirSync(join(folder, 'tools'))
      symlinkSync('../tools', join(folder, '.git/hooks'))
    },
    script: `${hook('tools')}; rm .git/hooks; mkdir .git/hooks; ${hook('.git/hooks')}`,
    says: 'the command changed the link .git/hooks',
  },
  'makes the folder of hooks that the settings name': {
    before: git => void git('config', 'core.hooksPath', '.husky/_'),
    script: `mkdir -p .husky/_; ${hook('.husky/_')}; mv .husky h; mkdir -p .husky/_; ${hook('.husky/_')}`,
  },
  'makes the settings that other settings include': {
    before: git => void git('config', 'include.path', '../conf/more'),
    script: 'mkdir conf; git config -f conf/more core.fsmonitor MARK',
    says: 'the command made conf/more',
  },
  'makes them through a link': {
    before: git => void git('config', 'include.path', '../conf/more'),
    script: 'mkdir other; git config -f other/more core.fsmonitor MARK; ln -s other conf',
    says: 'the command made conf,',
  },
  'writes where included settings point to': {
    before: (git, folder) => {
      writeFileSync(join(folder, '.gitmore'), '[core]\n\thooksPath = .gh\n')
      mkdirSync(join(folder, '.gh'))
      git('config', 'include.path', '../.gitmore')
    },
    script: hook('.gh'),
  },
  'makes settings of the worktree that git was told to look for': {
    before: git => void git('config', 'extensions.worktreeConfig', 'true'),
    script: 'git config -f .git/config.worktree core.fsmonitor MARK',
    says: 'the command made .git/config.worktree',
  },
  'breaks the repository and makes the folder one': {
    before: () => {},
    script:
      'rm .git/HEAD; git init -q --bare /tmp/b; cp -r /tmp/b/HEAD /tmp/b/objects /tmp/b/refs .; printf "[core]\\nrepositoryformatversion = 0\\nbare = false\\nworktree = .\\nfsmonitor = MARK\\n" > config',
    says: 'look like a bare repository',
  },
  'makes a repository with settings': {
    before: 'none',
    script: 'git init -q; git config core.fsmonitor MARK',
    says: 'the command made .git/config with fsmonitor',
  },
  'makes a repository with hooks': {
    before: 'none',
    script: `git init -q; git config user.name a; git config user.email a@example.com; ${hook('.git/hooks')}`,
    says: 'the command made .git/hooks',
  },
  'makes a submodule': {
    before: () => {},
    script: `${submodule('sub')}; git add sub; git -C sub config core.fsmonitor MARK`,
    says: 'the command made sub/.git/config with fsmonitor',
  },
  'makes a submodule in an index of version 4': {
    before: git => void git('config', 'index.version', '4'),
    script: `${submodule('a/b/c/d/e')}; touch a/b/c/x z; git add .; git -C a/b/c/d/e config core.fsmonitor MARK`,
    says: 'the command made a/b/c/d/e/.git/config with fsmonitor',
  },
  'makes a submodule in a split index': {
    before: () => {},
    script: `${submodule('sub')}; git add sub; git update-index --split-index; git -C sub config core.fsmonitor MARK`,
    says: 'the command made sub/.git/config with fsmonitor',
  },
  'makes a submodule of a submodule': {
    before: () => {},
    script: `${submodule('sub')}; cd sub; ${submodule('deep')}; git add deep; git -C deep config core.fsmonitor MARK; cd ..; git add sub`,
    says: 'the command made sub/deep/.git/config with fsmonitor',
  },
  'checks out a submodule that was only listed': {
    before: git => void git('update-index', '--add', '--cacheinfo', `160000,${'1'.repeat(40)},sub`),
    script: `${submodule('sub')}; git -C sub config core.fsmonitor MARK`,
    says: 'the command made sub/.git/config with fsmonitor',
  },
  'hides the index behind a link': {
    before: () => {},
    script: `${submodule('sub')}; git add sub; git -C sub config core.fsmonitor MARK; mv .git/index other; ln -s ../other .git/index`,
    says: 'the command left .git/index in a form that cannot be checked',
  },
  'points to a repository of its own': {
    before: 'none',
    script: 'git init -q sub; git -C sub config core.fsmonitor MARK; echo "gitdir: sub/.git" > .git',
    says: 'the command made .git,',
  },
}

for (const [name, { before, script, says }] of Object.entries(attacks)) {
  for (const walls of [true, false]) {
    test.runIf(available)(
      `a command that ${name} ${walls ? 'has git run nothing' : 'would have git run a program'}`,
      async () => {
        using place = temporaryFolder()
        const [folder, mark] = [join(place.path, 'work'), join(place.path, 'mark')]
        mkdirSync(folder)
        const program = join(folder, 'mark.sh')
        writeFileSync(program, `#!/bin/sh\n: > '${mark}'\n`, { mode: 0o755 })
        const env = { PATH: '/usr/bin:/bin', HOME: place.path, GIT_CONFIG_NOSYSTEM: '1' }
        const options = { cwd: folder, env, encoding: 'utf8', stdio: 'pipe' } as const
        const git = (...args: string[]) => execFileSync('git', args, options)
        if (before !== 'none') {
          for (const args of [
            ['init', '-q'],
            ['config', 'user.name', 'a'],
            ['config', 'user.email', 'a@example.com'],
          ])
            git(...args)
          before(git, folder)
        }
        const attack = script.replaceAll('MARK', program)
        if (walls) {
          await using sandbox = await isolatedBackend().open(folder)
          const { stderr } = await sandbox.exec(attack).result
          if (says) expect(Buffer.from(stderr).toString()).toContain(says)
        } else execFileSync('/bin/sh', ['-c', attack], options)
        for (const args of [['status'], ['commit', '-qm', 'x', '--allow-empty']]) {
          try {
            git(...args)
          } catch {
            // It may be no repository any more, which is harm of another kind.
          }
        }
        expect(existsSync(mark)).toBe(!walls)
      },
    )
  }
}

test.runIf(available)('a repository that a command makes keeps settings that run nothing', async () => {
  using place = temporaryFolder()
  await using sandbox = await isolatedBackend().open(place.path)
  const script = 'git init -q; git config user.name me; git remote add origin https://example.com/x.git'
  const { stderr } = await sandbox.exec(script).result
  expect(Buffer.from(stderr).toString()).not.toContain('openrath')
  expect(readFileSync(join(place.path, '.git/config'), 'utf8')).toContain('name = me')
})
