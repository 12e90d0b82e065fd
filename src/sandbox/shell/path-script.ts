import { RathError, show } from '../../base/errors.ts'

/** The exit code of a script that says by a word on its standard error why it refuses. */
export const refusalCode = 70

/**
 * The beginning of every script: `resolve` and `entry` set `_real` to where a path leads, and refuse one that leads out of `_root`.
 * Names start with an underscore, since a variable of the sandbox's environment would be changed for its commands too.
 */
export const pathScript = `
fail() { [ -z "$_input" ] || cat > /dev/null; printf '%s%s' "$1" "$_which" >&2; exit ${refusalCode}; }
_input=
_which=
whole() { case $1 in /*) _whole=$1 ;; *) _whole=$_root/$1 ;; esac; }
follow() {
  _rest=$1/
  _real=
  _links=0
  while [ -n "$_rest" ]; do
    _name=\${_rest%%/*}
    _rest=\${_rest#*/}
    case $_name in
      '' | .) ;;
      ..) _real=\${_real%/*} ;;
      *)
        if [ -L "$_real/$_name" ]; then
          _links=$((_links + 1))
          [ "$_links" -le 40 ] || fail circle
          _target=$(readlink "$_real/$_name" && echo .) || fail missing
          _target=\${_target%??}
          case $_target in /*) _real= ;; esac
          _rest=$_target/$_rest
        else
          _real=$_real/$_name
        fi ;;
    esac
  done
}
inside() { case $_real in "$_root" | "$_root"/*) ;; *) fail outside ;; esac; }
resolve() { whole "$1"; follow "$_whole"; inside; }
entry() {
  whole "$1"
  while :; do case $_whole in ?*/) _whole=\${_whole%/} ;; *) break ;; esac; done
  _last=\${_whole##*/}
  if [ "$_whole" = "$_root" ]; then
    _real=$_root
  else
    case $_last in
      '' | . | ..) resolve "$1" ;;
      *) follow "\${_whole%/*}/"; _real=$_real/$_last; inside ;;
    esac
  fi
  [ "$_real" != "$_root" ] || fail workspace
}
parents() {
  _above=\${_real%/*}
  while [ ! -e "$_above" ]; do _above=\${_above%/*}; done
  [ -d "$_above" ] || fail not-folder
  mkdir -p "\${_real%/*}" || { [ -z "$_input" ] || cat > /dev/null; exit 1; }
}
`

/** The error for a word of a script; undefined for one that is none of them. */
export function refusal(word: string, path: string, root: string): RathError | undefined {
  const shown = show(path)
  const options = { data: { path } }
  switch (word) {
    case 'outside':
      return new RathError(
        'path-outside',
        `${shown} leads outside the workspace, ${root}. Give a path inside it, such as "src/main.ts".`,
        options,
      )
    case 'circle':
      return new RathError('path-outside', `${shown} goes through links that lead in a circle.`, options)
    case 'missing':
      return new RathError('path-missing', `There is no ${shown} in the workspace.`, options)
    case 'folder':
      return new RathError('path-kind', `${shown} is a folder, not a file.`, options)
    case 'not-folder':
      return new RathError('path-kind', `${shown} is not a folder, or goes through a file.`, options)
    case 'not-empty':
      return new RathError('path-kind', `${shown} is a folder that is not empty.`, options)
    case 'special':
      return new RathError('path-kind', `${shown} is a pipe, a socket or a device, not a file.`, options)
    case 'workspace':
      return new RathError('path-kind', `${shown} is the workspace itself, which stays where it is.`, options)
  }
}

/** Refuses what no file can be called. */
export function checkPath(path: unknown): asserts path is string {
  if (typeof path !== 'string' || path.includes('\0')) {
    throw new RathError('invalid-argument', `A path is text without a zero byte, not ${show(path)}.`)
  }
}
