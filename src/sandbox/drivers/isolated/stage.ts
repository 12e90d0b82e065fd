import { randomInt } from 'node:crypto'
import type { Programs } from './programs.ts'
import type { Machine } from './seccomp.ts'

/** A file or folder that the sandbox is to see. */
export interface Staged {
  /** Where it lies on this machine. */
  readonly source: string
  /** A file or folder of ours to mount it on. */
  readonly at: string
  /** Shown as the files of the spare user, whoever they belong to. What is written belongs to the same owner on the disk. */
  readonly isOwned: boolean
}

/**
 * How root stops being root: in a mount namespace of its own, everything that the sandbox needs is mounted where another user may look, the
 * folders that it may write into as if they were that user's (an idmapped mount: the files stay their owner's on the disk), and then it
 * becomes that user. bubblewrap has no way to do the first, so a few calls to the kernel are made from Perl, which every Debian has.
 */
export function leaveRoot(
  { unshare, setpriv, perl }: NonNullable<Programs['root']>,
  machine: Machine,
  uid: number,
  staged: readonly Staged[],
): string[] {
  const user = ['--reuid', String(uid), '--regid', String(uid), '--clear-groups']
  const mounts = staged.flatMap(({ source, at, isOwned }) => [isOwned ? 'own' : 'bind', source, at])
  return [
    // What is mounted and unmounted outside later is so inside too.
    ...[unshare, '--mount', '--propagation', 'slave'],
    ...[
      perl,
      '-e',
      mountAll,
      machine === 'arm64' ? '97' : '272',
      String(uid),
      String(staged.length),
      ...mounts,
    ],
    ...[setpriv, ...user, '--inh-caps=-all'],
  ]
}

/** A user that nobody is: beyond what systems, directories and containers give out. One for each sandbox, so that none can touch another's. */
export function spareUser(): number {
  return 2_100_000_000 + randomInt(40_000_000)
}

/** What `mountAll` says first when a file system cannot show its files as another user's. */
export const notMappable = 'openrath: not mappable'

const mountAll = `
use strict;
my ($unshare, $uid, $count) = splice @ARGV, 0, 3;
my ($open_tree, $move_mount, $mount_setattr) = (428, 429, 442);
my $empty = "";
for (1 .. $count) {
  my ($kind, $source, $at) = splice @ARGV, 0, 3;
  # A file of the system can go while the sandbox is there.
  next if $kind eq "bind" && $source =~ m{^/etc/} && !-e $source;
  my @stat = stat $source or die "openrath: $source: $!\\n";
  # OPEN_TREE_CLONE and O_CLOEXEC, from AT_FDCWD.
  my $tree = syscall($open_tree, -100, $source, 1 | 02000000);
  $tree >= 0 or die "openrath: $source cannot be opened: $!\\n";
  if ($kind eq "own") {
    my ($ns, $done) = userns($stat[4], $stat[5]);
    # MOUNT_ATTR_IDMAP, NOSUID and NODEV; AT_EMPTY_PATH.
    my $attributes = pack "QQQQ", 0x100000 | 2 | 4, 0, 0, fileno $ns;
    syscall($mount_setattr, $tree, $empty, 0x1000, $attributes, 32) == 0 or die "${notMappable}: $source: $!\\n";
    $done->();
  }
  # MOVE_MOUNT_F_EMPTY_PATH.
  syscall($move_mount, $tree, $empty, -100, $at, 4) == 0 or die "openrath: $at cannot be mounted: $!\\n";
}
exec { $ARGV[0] } @ARGV or die "openrath: $ARGV[0]: $!\\n";

# A user namespace in which the owner of the files is the spare user, kept by a process that waits for us.
sub userns {
  my ($owner, $group) = @_;
  pipe my $ready, my $tell or die $!;
  pipe my $wait, my $end or die $!;
  my $pid = fork // die $!;
  if ($pid == 0) {
    close $ready; close $end;
    syswrite $tell, syscall($unshare, 0x10000000) == 0 ? "y" : "n";
    sysread $wait, my $byte, 1;
    require POSIX; POSIX::_exit(0);
  }
  close $tell; close $wait;
  sysread $ready, my $answer, 1;
  $answer eq "y" or die "openrath: no user namespace can be made\\n";
  for (["uid", $owner], ["gid", $group]) {
    open my $map, ">", "/proc/$pid/$_->[0]_map" or die "openrath: $!\\n";
    syswrite $map, "$_->[1] $uid 1\\n" or die "openrath: $!\\n";
  }
  open my $ns, "<", "/proc/$pid/ns/user" or die "openrath: $!\\n";
  return ($ns, sub { close $end; waitpid $pid, 0 });
}
`
