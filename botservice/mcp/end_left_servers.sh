# Ends the servers that are left once standard input closes. $0 is the folder of the files with their numbers.
read -r _
cd "$0" || exit 0
for signal in TERM KILL; do
  is_left=
  for file in *; do
    [ -f "$file" ] && kill -s "$signal" -- "-$(cat "$file")" 2>/dev/null && is_left=1
  done
  [ -n "$is_left" ] || break
  [ "$signal" = KILL ] || sleep 2
done
rm -rf "$0"
