import { Argument, type Command } from 'commander'
import { examples } from '../command.ts'
import { bashScript, fishScript, zshScript } from '../completion.ts'
import type { Output } from '../output.ts'

export function define(command: Command, output: Output, whole: () => Promise<Command>): void {
  command
    .addArgument(new Argument('<shell>').choices(['bash', 'zsh', 'fish']))
    .action(async (shell: 'bash' | 'zsh' | 'fish') => {
      output.print({ bash: bashScript, zsh: zshScript, fish: fishScript }[shell](await whole()))
    })
  examples(command, [
    ['rath completion bash > ~/.local/share/bash-completion/completions/rath', 'for bash'],
    ['rath completion zsh > ~/.zfunc/_rath', 'for zsh, with ~/.zfunc in fpath'],
    ['rath completion fish > ~/.config/fish/completions/rath.fish', 'for fish'],
  ])
}
