import { startScript } from './file-scripts.ts'

/** Larger files are data, and are not read whole to look for a word. */
const largest = 10 * 1024 * 1024

const begin = `${startScript}
resolve "$_path"
[ -e "$_real" ] || fail missing
if [ -d "$_real" ]; then
  _kind=d
  _from=.
  cd "$_real" || exit 1
else
  _kind=f
  _from=./\${_real##*/}
  cd "\${_real%/*}" || exit 1
fi
`

const files = `find "$_from" \\( -name .git -o -name node_modules \\) -type d -prune -o -type f`

/**
 * Where the search starts, then the names of large files, then of the others, each with a zero byte behind it and an empty one behind the
 * last. For a search of lines then the names of those that hold the text, if there is one, and a zero byte; the beginnings of all as
 * `head` heads them, of which only zero bytes are left, written as ones, and a zero byte; sizes with names, a line for each.
 */
export const candidateScript = `${begin}
printf '%s%s\\0' "$_kind" "\${_real#"$_root"}"
${files} -size +${largest}c -print0 2> /dev/null
printf '\\0'
${files} ! -size +${largest}c -print0 2> /dev/null
printf '\\0'
[ -z "$1" ] || ${files} ! -size +${largest}c -exec grep -lF -e "$1" {} + 2> /dev/null
printf '\\0'
[ -n "$2" ] || exit 0
_one=$(printf '\\001')
${files} ! -size +${largest}c -exec head -v -c 8192 {} + 2> /dev/null |
  tr '\\001\\000' ' \\001' | tr -s '\\001' | grep -o -e '^==> \\./.* <==$' -e "$_one"
printf '\\0'
${files} ! -size +${largest}c -exec stat -c '%s %n' {} + 2> /dev/null
exit 0`

/** Sizes with names, a zero byte, and all of the files one behind the other. */
export const contentScript = `${begin}
stat -c '%s %n' "$@" 2> /dev/null
printf '\\0'
cat "$@" 2> /dev/null
exit 0`
