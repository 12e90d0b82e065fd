/** Ways to have git run a program the next time that somebody uses it in the workspace. */
export const attacksOnGit: Readonly<Record<string, string>> = {
  'set a program as the file system monitor': 'git config core.fsmonitor .git/x',
  'append to the settings': 'printf "[core]\\n\\tfsmonitor = .git/x\\n" >> .git/config',
  'put other settings in their place':
    'cp .git/config x && git config -f x core.fsmonitor y && mv x .git/config',
  'link to other settings': 'cp .git/config other; ln -sf ../other .git/config',
  'write a hook': 'echo "#!/bin/sh" > .git/hooks/pre-commit',
  'write a hook where the settings look for hooks': 'echo "#!/bin/sh" > .husky/pre-commit',
  'move the folder of hooks away': 'mv .husky old; mkdir .husky; echo x > .husky/pre-commit',
  'move the repository away and make another one': 'mv .git old; cp -r old .git; git config core.fsmonitor x',
  'remove the settings and make new ones':
    'rm -rf .git/config .git/hooks .git/info; git init -q .; git config core.fsmonitor x',
  'send git to the settings of another folder': 'cp -r .git other.git; echo ../other.git > .git/commondir',
  'mount over the settings': 'mount --bind /tmp .git',
}
