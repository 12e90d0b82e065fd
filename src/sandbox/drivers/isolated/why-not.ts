import { show } from '../../../base/errors.ts'
import { notMappable } from './stage.ts'

/** Why the walls could not be made, from what the programs that make them said, and what to do about it. */
export function whyNot(said: string, folder: string): string {
  const [, hint = ''] = hints.find(([sign]) => sign.test(said)) ?? []
  return `isolated cannot open ${show(folder)} here: ${said.trim()}${hint && ` ${hint}`}`
}

const hints: readonly (readonly [RegExp, string])[] = [
  [
    new RegExp(notMappable),
    'Root gives commands to another user, to whom the folder has to be shown as his own, and its file system cannot do that. ' +
      'Run as the owner of the folder, or use a folder on ext4, xfs, btrfs or tmpfs.',
  ],
  [/Unknown option/, 'bubblewrap is older than 0.8; install a newer one: apt-get install bubblewrap'],
  [
    /user namespace|uid map|setting up uid|Creating new namespace|No permissions|Operation not permitted/i,
    'User namespaces have to be allowed: sysctl kernel.unprivileged_userns_clone=1, user.max_user_namespaces above 0, ' +
      'and on Ubuntu kernel.apparmor_restrict_unprivileged_userns=0.',
  ],
]
