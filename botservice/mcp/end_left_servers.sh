# Ends the servers that are left once standard input closes. Before, each line of it names a group of processes:
# "+ 42" for a server that runs, "- 42" for one that has ended.
groups=
while read -r change number; do
  others=
  for each in $groups; do
    [ "$each" = "$number" ] || others="$others $each"
  done
  groups=$others
  [ "$change" = - ] || groups="$groups $number"
done
for signal in TERM KILL; do
  is_left=
  for each in $groups; do
    kill -s "$signal" -- "-$each" 2>/dev/null && is_left=1
  done
  [ -n "$is_left" ] || break
  [ "$signal" = KILL ] || sleep 2
done
