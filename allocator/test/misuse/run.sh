#!/bin/sh
# Runs misuse programs under the preloaded library. Each must end by SIGABRT after exactly the one line on
# stderr that its source expects.
#
#   run.sh LIBRARY SOURCES_DIR PROGRAM...
set -u
library=$1 sources=$2
shift 2
ulimit -c 0

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
tab=$(printf '\t')

# The expected line, with {name} replaced by what the program printed as name=value.
expected() {
  script=$(sed -n "s${tab}^\\([a-z]*\\)=\\(.*\\)${tab}s|{\\1}|\\2|g${tab}p" "$work/out")
  sed -n 's|^/\* expect: \(.*\) \*/$|\1|p' "$1" | sed -e "s|{program}|$2|g" -e "$script"
}

# Runs a program below a shell of its own, which remarks on the signal where nobody reads it.
run() {
  sh -c '(LD_PRELOAD=$1 exec timeout -k 5 60 "$2" >"$3/out" 2>"$3/err" </dev/null); exit $?' \
    sh "$library" "$1" "$work" 2>/dev/null
}

failed=0
for program; do
  name=${program##*/}
  run "$program"
  status=$?
  expected "$sources/$name.c" "$program" >"$work/expected"
  if [ ! -s "$work/expected" ]; then
    why='its source expects nothing'
  elif [ "$status" -ne 134 ]; then
    why="ended with status $status instead of SIGABRT; stderr: $(cat "$work/err")"
  elif ! cmp -s "$work/err" "$work/expected"; then
    why="said '$(cat "$work/err")' instead of '$(cat "$work/expected")'"
  else
    printf 'ok misuse %s\n' "$name"
    continue
  fi
  printf 'not ok misuse %s: %s\n' "$name" "$why"
  failed=1
done
exit $failed
