/**
 * Scripts for workspaces that are reached by commands alone: what `sh`, `find`, `stat`, `sha256sum`, `cat` and `tar` of busybox have in common
 * with those of other systems. Each starts in the workspace; `$1` is `text` where output must be text, and is then written as base64.
 */
const begin = `
LC_ALL=C
export LC_ALL
_as=$1
shift
out() { if [ "$_as" = text ]; then base64; else cat; fi; }
`

/** All but what is ours: the time, the names, a zero more, a line for each that ends with the name, and the digest of each file if asked for. */
export const lookScript = `${begin}
{
  date +%s || exit 1
  find . -path ./.openrath -prune -o -print0 || exit 1
  printf '\\0'
  find . -path ./.openrath -prune -o -exec stat -c '%f %s %Y %Z %i %n' {} +
  printf '\\0'
  if [ -n "$1" ]; then find . -path ./.openrath -prune -o -type f -exec sha256sum {} + 2> /dev/null; fi
  printf '\\0done'
} 2> /dev/null | out`

/** The digest of each file, in their order; a line without one for what cannot be read. */
export const hashScript = `${begin}
for _f in "$@"; do
  _h=$(sha256sum < "$_f" 2> /dev/null) || _h=
  printf '%s\\n' "\${_h%% *}"
done | out`

/** Where each link leads, with a line feed and a zero after it. */
export const linkScript = `${begin}
for _f in "$@"; do readlink "$_f"; printf '\\0'; done 2> /dev/null | out`

/** The sizes of files, a line each, a zero, and what is in them, one after the other. */
export const readScript = `${begin}
{ stat -c %s "$@"; printf '\\0'; cat "$@"; } 2> /dev/null | out`

export const removeScript = `
shift
rm -rf "$@"`

/** Takes an archive from the standard input. */
export const unpackScript = `
tar -xopf - 2>&1`

/** A mode and paths. */
export const modeScript = `
shift
_mode=$1
shift
chmod "$_mode" "$@"`
