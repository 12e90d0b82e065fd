import { mkdir, readFile, statfs, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { platformOf } from '../../../base/platform.ts'
import { runSystem } from '../../../base/programs.ts'
import type { Probe } from './method.ts'
import { OverlayMounts } from './overlay-mounts.ts'

/** `f_type` of an overlay. */
const overlayType = 0x794c7630

/** Mounts one, writes to it from here, and reads that from a command. */
export async function tryOverlay(folder: string): Promise<Probe> {
  if (platformOf().name !== 'linux') return no(`overlays need Linux, and this is ${platformOf().label}`)
  let mounts: OverlayMounts | undefined
  try {
    if ((await statfs(folder)).type === overlayType) {
      return no(`${folder} lies on an overlay, as in most containers; put it on a volume`)
    }
    for (const name of ['m', 'base']) await mkdir(join(folder, name))
    await writeFile(join(folder, 'base', 'file'), 'base')
    mounts = await OverlayMounts.start(folder)
    await mounts.mount('try', ['base'], { files: 'upper', work: 'work' })
    const { inside, path } = mounts.at('try')
    await writeFile(join(path, 'file'), 'branch')
    const [program = '', ...args] = mounts.holder.enter
    const seen = await runSystem(program, [...args, 'cat', join(inside, 'file')])
    const kept = await readFile(join(folder, 'base', 'file'), 'utf8')
    if (seen === 'branch' && kept === 'base') return { available: true }
    return no(`a command read "${seen}" where "branch" was written, over "${kept}" where "base" was`)
  } catch (error) {
    return no(
      `${(error as Error).message}; it needs mount, unshare and nsenter of util-linux, Linux 5.11 ${rights}`,
    )
  } finally {
    await mounts?.holder.close()
  }
}

const rights =
  'and user namespaces (sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns)'

const no = (reason: string): Probe => ({ available: false, reason })
