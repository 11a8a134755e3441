#!/bin/sh
# usage: misuse.sh LIBRARY SKIPPED PROGRAM [COMMAND ...]
#
# Runs every misuse of PROGRAM (misuse.c) under the preloaded library. Each must end with the expected status (134: by
# SIGABRT) after exactly the expected line on stderr. SKIPPED: names to leave out, separated by spaces. COMMAND runs the
# program (an emulator).
set -u
library=$1 skipped=" $2 " program=$3
shift 3
ulimit -c 0

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
tab=$(printf '\t')

failed=0
"$@" "$program" >"$work/list"
while IFS=$tab read -r name expected_status expected; do
  case $skipped in *" $name "*) continue ;; esac
  # In a shell of its own, whose remark on the signal is discarded.
  sh -c 'export LD_PRELOAD="$1"; work=$2; shift 2
    (exec timeout -k 5 60 "$@" >"$work/out" 2>"$work/err" </dev/null); exit $?' \
    sh "$library" "$work" "$@" "$program" "$name" 2>/dev/null
  status=$?
  # {name} in the line is what the program printed as name=value.
  script=$(sed -n "s${tab}^\\([a-z]*\\)=\\(.*\\)${tab}s|{\\1}|\\2|g${tab}p" "$work/out")
  printf '%s\n' "$expected" | sed -e "s|{program}|$program|g" -e "$script" >"$work/expected"
  if [ "$status" -eq "$expected_status" ] && cmp -s "$work/err" "$work/expected"; then
    printf 'ok misuse %s\n' "$name"
  else
    printf 'not ok misuse %s: status %s, "%s" instead of %s, "%s"\n' "$name" "$status" \
      "$(cat "$work/err")" "$expected_status" "$(cat "$work/expected")"
    failed=1
  fi
done <"$work/list"
[ -s "$work/list" ] && exit $failed
