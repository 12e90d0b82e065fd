import { pathScript, refusalCode } from './path-script.ts'

/** Set in the environment of every command, and inherited by whatever it starts. */
export const markName = 'OPENRATH_SANDBOX'

/**
 * Kills what carries the mark: processes with it in their environment, those that hold the pipe which commands inherit as number 3, and what
 * descends from either. In a container of ours, `_own`, every process that no command is left to answer for goes too. Process 1 and
 * its session are the container's own; commands have no parent that is seen from inside.
 */
const sweepScript = `
sweep() {
  _round=0
  while [ "$_round" -lt 300 ]; do
    _round=$((_round + 1))
    _marked=$(${markName}= grep -lF "$_mark" /proc/[0-9]*/environ 2> /dev/null 3<&-)
    _held=
    [ -z "$_pipe" ] || _held=$(${markName}= ls -l /proc/[0-9]*/fd/3 2> /dev/null 3<&-)
    set -f
    _found=' '
    for _line in $_marked; do
      _pid=\${_line#/proc/}
      _pid=\${_pid%%/*}
      [ "$_pid" = "$$" ] || _found="$_found$_pid "
    done
    IFS='
'
    for _line in $_held; do
      case $_line in *" -> $_pipe") ;; *) continue ;; esac
      _pid=\${_line##*/proc/}
      _pid=\${_pid%%/*}
      [ "$_pid" = "$$" ] || _found="$_found$_pid "
    done
    set +f
    if [ "$_found" = ' ' ] && [ -z "$_own" ]; then unset IFS; return 0; fi
    _stats=$(${markName}= cat /proc/[0-9]*/stat 2> /dev/null 3<&-)
    set -f
    _table=
    _others=
    _orphans=' '
    for _line in $_stats; do
      _pid=\${_line%% *}
      IFS=' '
      set -- \${_line##*) }
      [ "$1" != Z ] && [ "$_pid" != "$$" ] && [ "$2" != "$$" ] || continue
      _table="$_table$_pid:$2 "
      if [ "$2" = 0 ] && [ "$_pid" != 1 ]; then case $_found in *" $_pid "*) ;; *) _others=1 ;; esac; fi
      if [ "$4" != 1 ] && [ "$2" != 0 ]; then _orphans="$_orphans$_pid "; fi
    done
    unset IFS
    _victims=
    if [ -n "$_own" ] && [ -z "$_others" ]; then _found="$_found$_orphans"; fi
    _grown=1
    while [ -n "$_grown" ]; do
      _grown=
      for _pair in $_table; do
        _pid=\${_pair%:*}
        case $_found in *" $_pid "*) continue ;; esac
        case $_found in *" \${_pair#*:} "*) _found="$_found$_pid "; _grown=1 ;; esac
      done
    done
    for _pair in $_table; do
      case $_found in *" \${_pair%:*} "*) _victims="$_victims \${_pair%:*}" ;; esac
    done
    set +f
    [ -n "$_victims" ] || return 0
    kill -9 $_victims 2> /dev/null
    [ "$_round" -lt 3 ] || sleep 0.01 2> /dev/null || sleep 1
  done
}
`

/** Mark, pipe or nothing, and whether the container is ours. */
export const killScript = `
_mark=$1
_pipe=$2
_own=$3
${sweepScript}
sweep`

/**
 * Runs a command and ends what it started. The first line of its standard error is the mark and a word: `started`, a number and a pipe,
 * or why not. The arguments: mark, workspace, folder, size of the standard input to be read or nothing, a file that holds it or nothing,
 * whether the container is ours, whether both streams end with the mark, and the command. Where memory runs out, the kernel is to end the command
 * and not the process that keeps the container.
 */
export const commandScript = `
_mark=$1
_root=$2
_cwd=$3
_size=$4
_file=$5
_own=$6
_ends=$7
shift 7
${pathScript}${sweepScript}
fail() { [ -z "$_input" ] || cat > /dev/null; printf '%s %s\\n' "$_mark" "$1" >&2; exit ${refusalCode}; }
_input=$_size
resolve "$_cwd"
[ -e "$_real" ] || fail missing
[ -d "$_real" ] || fail not-folder
cd "$_real" 2> /dev/null || fail missing
_program=
case $1 in
  */*) if [ -f "$1" ] && [ -x "$1" ]; then _program=$1; fi ;;
  *)
    IFS=:
    set -f
    for _name in $PATH; do
      if [ -f "\${_name:-.}/$1" ] && [ -x "\${_name:-.}/$1" ]; then _program=$1; fi
    done
    set +f
    unset IFS ;;
esac
[ -n "$_program" ] || fail no-program
if [ -n "$_size" ]; then
  _file=\${TMPDIR:-/tmp}/.openrath-$_mark
  (umask 077; cat > "$_file") 2> /dev/null || fail no-input
  _input=
  [ "$(stat -c %s "$_file")" -eq "$_size" ] || { rm -f "$_file"; fail no-input; }
fi
if [ -n "$_file" ]; then exec < "$_file"; rm -f "$_file"; else exec < /dev/null; fi
exec 3<<.
.
_pipe=$(readlink /proc/$$/fd/3)
printf '%s started %s\\n' "$_mark" "$_pipe" >&2
exec 4>&2 2> /dev/null
(echo 500 > /proc/self/oom_score_adj; exec 2>&4 4>&-; exec "$@")
_code=$?
PATH=$PATH:/usr/bin:/bin
sweep
if [ -n "$_ends" ]; then printf '%s' "$_mark"; printf '%s' "$_mark" >&4; fi
exit "$_code"`
