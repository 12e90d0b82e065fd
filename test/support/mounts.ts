import { spawnSync } from 'node:child_process'

/** Runs a shell script that may mount what it likes: nobody else sees it, and it is gone when the script ends. */
export function inPrivateMounts(script: string, ...args: string[]): { status: number; output: string } {
  const { status, stdout, stderr } = spawnSync(
    'unshare',
    [...mountFlags(), 'sh', '-ec', script, 'sh', ...args],
    {
      encoding: 'utf8',
    },
  )
  return { status: status ?? -1, output: stdout + stderr }
}

/** Why such scripts cannot run here, or nothing. */
export function mountProblem(): string | undefined {
  if (process.platform !== 'linux') return 'private mounts need Linux'
  const { status, output } = inPrivateMounts('mount -t tmpfs -o size=64k tmpfs /mnt')
  return status === 0 ? undefined : `private mounts are not allowed here: ${output.trim()}`
}

/** As somebody else than root, a user namespace gives the right to mount. */
export function mountFlags(): string[] {
  return process.getuid?.() === 0 ? ['-m'] : ['-rm']
}
