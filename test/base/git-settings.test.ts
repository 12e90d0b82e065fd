import { expect, test } from 'vitest'
import { gitCaution, gitSettingsIn } from '../../src/base/git-settings.ts'

test('paths that can make git run a program are told from those of everyday work', () => {
  const telling = [
    '.git/config',
    '.git/hooks/pre-commit',
    '.git/info/attributes',
    '.git/commondir',
    '.git/config.worktree',
    '.git/modules/lib/config',
    '.git/modules/libs/deep/hooks/post-checkout',
    '.git/worktrees/other/gitdir',
    'sub/.git',
    'sub/.git/config',
    'a/b/.GIT/Config',
  ]
  const everyday = [
    '.git/HEAD',
    '.git/index',
    '.git/objects/ab/cdef',
    '.git/refs/heads/config',
    '.git/logs/refs/heads/hooks',
    '.gitignore',
    '.github/workflows/ci.yml',
    'src/config',
    'docs/hooks/info.md',
  ]
  expect(gitSettingsIn([...telling, ...everyday])).toEqual(telling)
})

test('a folder that becomes a bare repository is told by its settings', () => {
  expect(gitSettingsIn(['x/HEAD', 'x/config', 'x/objects/pack/p', 'y/config'])).toEqual(['x/config'])
})

test('whoever decides on a call is told when it is about settings of git', () => {
  for (const args of [
    { path: '.git/hooks/pre-push', content: '' },
    { cmd: 'git -C sub config core.fsmonitor x' },
    { cmd: 'echo x >> .git/config' },
    { from: 'a', to: 'sub/.git/config' },
  ])
    expect(gitCaution(args), JSON.stringify(args)).toContain('settings of git')

  for (const args of [{ cmd: 'git commit -m fix' }, { path: 'src/a.ts' }, null, 'x', 3])
    expect(gitCaution(args), JSON.stringify(args)).toBeUndefined()
})
