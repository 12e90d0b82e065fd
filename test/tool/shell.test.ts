import { expect, test } from 'vitest'
import { longestLine, readShell, ShellProblem } from '../../src/tool/policy/shell.ts'

const names = async (line: string) => (await readShell(line)).commands.map(command => command.name)

test('every command is found, wherever in the line it stands', async () => {
  const lines: Record<string, string[]> = {
    'ls -la': ['ls'],
    'cat a | grep b | wc -l': ['cat', 'grep', 'wc'],
    'make && make install || echo no; ls & date': ['make', 'make', 'echo', 'ls', 'date'],
    'ls\nrm x': ['ls', 'rm'],
    '(cd a; rm b)': ['cd', 'rm'],
    '{ a; b; } > out': ['a', 'b'],
    'if a; then b; elif c; then d; else e; fi': ['a', 'b', 'c', 'd', 'e'],
    'for x in $(a); do b; done': ['a', 'b'],
    'while a; do b; done; until c; do d; done': ['a', 'b', 'c', 'd'],
    'case $x in y) a;; *) b;; esac': ['a', 'b'],
    'f() { rm x; }; f': ['rm', 'f'],
    '! a': ['a'],
    'time a': ['a'],
    'X=$(a) Y=`b` c': ['c', 'a', 'b'],
    'X=$(a)': ['a'],
    'echo "$(a "$(b)")" `c`': ['echo', 'a', 'b', 'c'],
    'echo ${x:-$(a)} $((1 + $(b)))': ['echo', 'a', 'b'],
    'cat <(a) >(b)': ['cat', 'a', 'b'],
    'cat <<E\n$(a)\nE': ['cat', 'a'],
    "cat <<'E'\n$(a)\nE": ['cat'],
    'cat <<< "$(a)"': ['cat', 'a'],
    'a > "$(b)"': ['a', 'b'],
    'list=($(a) b)': ['a'],
    '[[ -f $(a) ]]': ['a'],
    'ls # ; rm x': ['ls'],
    'ls "; rm x"': ['ls'],
    "r\\m x; 'r'm; \"rm\" x; $'\\x72m' x": ['rm', 'rm', 'rm', 'rm'],
  }
  for (const [line, found] of Object.entries(lines)) expect(await names(line), line).toEqual(found)
})

test('commands that run commands are looked through', async () => {
  const lines: Record<string, string[]> = {
    'sh -c "rm x; ls"': ['sh', 'rm', 'ls'],
    'bash -ec \'sh -c "rm x"\'': ['bash', 'sh', 'rm'],
    "/bin/bash -o pipefail -c 'rm x' name arg": ['/bin/bash', 'rm'],
    'sudo -u root -n rm x': ['sudo', 'rm'],
    'sudo A=1 env -i B=2 rm': ['sudo', 'env', 'rm'],
    'env - rm x': ['env', 'rm'],
    'env -u HOME -C /tmp -- rm x': ['env', 'rm'],
    'nohup nice -n 5 rm x': ['nohup', 'nice', 'rm'],
    'nice -5 rm': ['nice', 'rm'],
    'timeout -k 5 10s rm x': ['timeout', 'rm'],
    'stdbuf -oL rm': ['stdbuf', 'rm'],
    'command rm x': ['command', 'rm'],
    'command -v rm': ['command'],
    'exec rm x': ['exec', 'rm'],
    'eval "rm x" "; ls"': ['eval', 'rm', 'ls'],
    "trap 'rm x' EXIT": ['trap', 'rm'],
    "trap -- 'rm x' EXIT": ['trap', 'rm'],
    'trap - EXIT': ['trap'],
    'find . -name x -exec rm {} \\;': ['find', 'rm'],
    'find . -exec sh -c \'rm "$1"\' _ {} +': ['find', 'sh', 'rm'],
    'find . -type f': ['find'],
    'ls | xargs -0 -n 1 rm -f': ['ls', 'xargs', 'rm'],
    'xargs -I{} mv {} there': ['xargs', 'mv'],
    xargs: ['xargs'],
    'busybox rm x': ['busybox', 'rm'],
  }
  for (const [line, found] of Object.entries(lines)) expect(await names(line), line).toEqual(found)
})

test('what cannot be known for sure is refused and never guessed', async () => {
  const lines = [
    '$cmd x',
    '"$cmd" x',
    '$(echo rm) x',
    'r* x',
    '{rm,x}',
    '~/bin/x',
    'sudo $cmd',
    'sudo -Z x rm',
    'sudo -s',
    'sudo - rm',
    'env -S "rm x"',
    'env $x rm',
    'nice --what rm',
    'sh script.sh',
    'bash',
    'bash < script',
    'bash <<E\nrm x\nE',
    'bash -c "$x"',
    'sh -c "rm $x; $y"',
    'bash --rcfile x -c ls',
    'eval "$x"',
    'eval rm $x',
    'source x',
    '. ./x',
    'xargs -I% sh -c "rm %"',
    "xargs -I{} sh -c 'rm {}'",
    'xargs -i rm {}',
    "find . -exec sh -c 'rm {}' \\;",
    'find . $x -name y',
    'find . -exec a \\; -exec rm {} \\;',
    'find . -exec rm {}',
    'parallel rm',
    'su -c "rm x"',
    'trap "$x" EXIT',
    'rm "',
    'if true',
    'ls )',
    'echo $(',
    'ls \0 rm',
    "x='a[$(rm y)]'; echo $((x))",
    "test -v 'a[$(rm y)]'",
    "x='$(rm y)'; echo $" + '{x@P}',
  ]
  for (const line of lines) await expect(readShell(line), line).rejects.toThrow(ShellProblem)
})

test('what takes a placeholder of find or xargs is known to nobody', async () => {
  const lines = [
    'echo rm x | xargs env',
    'echo rm x | xargs nice',
    'echo rm x | xargs xargs',
    "echo '. -exec rm {} ;' | xargs find",
    'echo rm | xargs -I{} env {} x',
    "echo 'rm x' | xargs -I {} sh -c {}",
    "echo 'rm x' | xargs -0I X sh -c X",
    'find . -exec {} \\;',
    'find . -exec env {} \\;',
    'find . -exec sh -c {} \\;',
  ]
  for (const line of lines) await expect(readShell(line), line).rejects.toThrow(ShellProblem)
  expect((await readShell('find . -exec grep -l x {} +')).commands[1]?.args).toEqual(['-l', 'x', undefined])
  expect((await readShell('ls | xargs git add')).commands[2]).toEqual({
    name: 'git',
    args: ['add', undefined],
  })
  expect(await names('find . -exec env -u + rm \\;')).toEqual(['find', 'env', 'rm'])
})

test('a line that another shell would read as other commands is refused', async () => {
  const lines = [
    '[[ x || rm ]]',
    '[[ a =~ x|rm ]]',
    '[[ a > /etc/x ]]',
    'echo `[[ x || rm ]]`',
    'ls &>/dev/null rm x',
    "echo $'\\'; rm x; echo \\''",
    "ls <<$'A'\n$A\nrm x\nA",
    'ls <<$"A"\n$A\nrm x\nA',
    'echo "$' + '{x:-\'}"; rm x; echo "\'}"',
    'cat <<E\n$' + "{x:-'$(rm x)'}\nE",
    'time -o out rm x',
  ]
  for (const line of lines) await expect(readShell(line), line).rejects.toThrow(ShellProblem)
  expect(await names('((rm x))')).toEqual(['rm'])
  expect(await names('[[ -f "a|b" ]] && ls &> /dev/null')).toEqual(['ls'])
})

test('a name that is made to stand for another command is refused', async () => {
  const lines = [
    'alias q=rm\nq x',
    'hash -p /bin/rm q; q x',
    'enable -f ./x.so q',
    'compgen -C rm',
    'mapfile -C rm -c 1',
    'x="rm EXIT"; trap $x',
    'sh -c - "$x"',
    "x='a[$(rm y)]'; y[x]=1",
    "x='a[$(rm y)]'; eval 'echo $((x))'",
    "PS4='$(rm y)'; set -x; ls",
  ]
  for (const line of lines) await expect(readShell(line), line).rejects.toThrow(ShellProblem)
  expect(await names('sh -c - rm')).toEqual(['sh', 'rm'])
  expect(await names('mapfile -t lines < in')).toEqual(['mapfile'])
})

test('scripts within scripts are followed, though not for ever', async () => {
  const nested = (depth: number): string =>
    depth === 0 ? 'rm x' : `sh -c '${nested(depth - 1).replaceAll("'", "'\\''")}'`
  expect((await names(nested(5))).at(-1)).toBe('rm')
  await expect(readShell(nested(9))).rejects.toThrow('characters, and 10000 are looked at')
  await expect(readShell('env '.repeat(20))).rejects.toThrow('nested too deeply')
  const deep = Array.from({ length: 9 }).reduce<string>(inner => `eval ${inner}`, 'rm')
  await expect(readShell(deep)).rejects.toThrow('nested too deeply')
})

test('variables and redirections are taken down too', async () => {
  const script = await readShell(
    'A=1 env B=2 x > out 2>&1 < in >> "$y" 2> /dev/null; export C=3; D=4; cat <&3 &> both',
  )
  expect([...new Set(script.assignments)].toSorted()).toEqual(['A', 'B', 'C', 'D'])
  expect(script.redirects).toEqual(['out', 'in', undefined, 'both'])
})

test('every way to set a variable is taken down', async () => {
  const lines: Record<string, string[]> = {
    'for PATH in /evil; do ls; done': ['PATH'],
    'select PATH in /evil; do ls; done': ['PATH'],
    'for ((i = 0; i < 3; i++)); do ls; done': ['i', 'i'],
    'ls $((PATH = 5)) $((n += 1)) $((a == b))': ['PATH', 'n'],
    ['ls $' + '{LD_PRELOAD:=x} $' + '{y:-x}']: ['LD_PRELOAD'],
    'ls {PATH}> /dev/null': ['PATH'],
    'coproc PATH { ls; }': ['PATH'],
  }
  for (const [line, set] of Object.entries(lines)) {
    expect((await readShell(line)).assignments, line).toEqual(set)
  }
})

test('a word that only the shell knows is not taken for text', async () => {
  const { commands } = await readShell('git "commit" $x -m "a $y" *.ts \'b c\'')
  expect(commands).toEqual([{ name: 'git', args: ['commit', undefined, '-m', undefined, undefined, 'b c'] }])
})

test('a line of tens of thousands of quotes is refused at once, and the longest that is read takes about a second', async () => {
  const spent = () => process.cpuUsage().user / 1000
  const begun = spent()
  await expect(readShell('"'.repeat(60_000))).rejects.toThrow('characters')
  expect(spent() - begun).toBeLessThan(1000)
  for (const piece of [
    '"',
    "'",
    '`',
    '$(',
    '$((',
    '$[',
    '{a,',
    'cat <<E\n$(',
    '`{a,',
    '<<E\n$((1?',
    '\\${',
    'env ',
    'a=',
  ]) {
    const from = spent()
    await readShell(piece.repeat(longestLine / piece.length)).catch(error =>
      expect(error).toBeInstanceOf(ShellProblem),
    )
    expect(spent() - from, piece).toBeLessThan(10_000)
  }
})
