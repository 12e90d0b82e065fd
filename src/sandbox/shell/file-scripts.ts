import { pathScript } from './path-script.ts'

// Scripts get the workspace and a path as their first two arguments. `shift 2` leaves those of the call.
export const startScript = `
LC_ALL=C
export LC_ALL
umask 022
_root=$1
_path=$2
shift 2
${pathScript}`

/** Of the file from a byte on; so many of them, or all. */
export const readScript = `${startScript}
resolve "$_path"
[ -e "$_real" ] || fail missing
[ ! -d "$_real" ] || fail folder
[ -f "$_real" ] || fail special
if [ -n "$2" ]; then
  tail -c "+$(($1 + 1))" "$_real" | head -c "$2"
elif [ "$1" -eq 0 ]; then
  cat "$_real"
else
  tail -c "+$(($1 + 1))" "$_real"
fi`

/** Size, mode or nothing, and a name for the new file, which takes the place of the old one when all of it is there. */
export const writeScript = `${startScript}
_input=waiting
resolve "$_path"
[ ! -d "$_real" ] || fail folder
parents
_mode=$2
if [ -z "$_mode" ] && [ -f "$_real" ]; then _mode=$(stat -c %a "$_real"); fi
_new=\${_real%/*}/.openrath-$3.tmp
cat > "$_new" &&
  { [ "$(stat -c %s "$_new")" -eq "$1" ] || { echo 'only a part of it arrived' >&2; false; }; } &&
  { [ -z "$_mode" ] || chmod "$_mode" "$_new"; } &&
  mv -f "$_new" "$_real" && exit 0
rm -f "$_new"
cat > /dev/null
exit 1`

export const statScript = `${startScript}
resolve "$_path"
[ ! -e "$_real" ] || stat -c '%f %s %Y' "$_real"`

/** A letter for the kind, the name and a zero byte for each. */
export const listScript = `${startScript}
resolve "$_path"
[ -e "$_real" ] || fail missing
[ -d "$_real" ] || fail not-folder
cd "$_real" && ls > /dev/null || exit 1
for _name in .* *; do
  case $_name in . | ..) continue ;; esac
  if [ -L "$_name" ]; then _kind=l
  elif [ -f "$_name" ]; then _kind=f
  elif [ -d "$_name" ]; then _kind=d
  elif [ -e "$_name" ]; then _kind=o
  else continue
  fi
  printf '%s%s\\0' "$_kind" "$_name"
done`

export const makeScript = `${startScript}
resolve "$_path"
[ ! -e "$_real" ] || [ -d "$_real" ] || fail not-folder
[ -d "$_real" ] || { parents && mkdir -p "$_real"; }`

export const removeScript = `${startScript}
entry "$_path"
if [ -L "$_real" ]; then rm -f "$_real"
elif [ ! -e "$_real" ]; then fail missing
elif [ ! -d "$_real" ]; then rm -f "$_real"
elif [ -n "$1" ]; then rm -rf "$_real"
else
  [ -z "$(ls -A "$_real")" ] || fail not-empty
  rmdir "$_real"
fi`

/** `mv` would move into a folder that is there, or into one that a link leads to. */
export const renameScript = `${startScript}
entry "$_path"
_from=$_real
[ -e "$_from" ] || [ -L "$_from" ] || fail missing
_which=' second'
entry "$1"
[ "$_from" != "$_real" ] || exit 0
parents
if [ -L "$_real" ]; then
  rm -f "$_real"
elif [ -d "$_real" ]; then
  if [ -L "$_from" ] || [ ! -d "$_from" ]; then fail folder; fi
  [ -z "$(ls -A "$_real")" ] || fail not-empty
  rmdir "$_real" || exit 1
elif [ -e "$_real" ] && [ -d "$_from" ] && [ ! -L "$_from" ]; then
  fail not-folder
fi
mv -f "$_from" "$_real"`
