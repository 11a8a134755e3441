#!/bin/sh
# usage: instructions.sh check|accept GOLDEN PROGRAM LIBRARY COMPILER FLAGS
#
# Counts by callgrind how many instructions of LIBRARY each fast path takes in PROGRAM (instructions.c), and compares
# with GOLDEN, so that a change to a fast path is a decision; or writes GOLDEN anew. What other libraries do on the
# way (memset in calloc) is theirs, and differs from machine to machine: it is not counted.
#
# Compilers make different code. With the recorded compiler and flags the counts must be equal; with others they must
# not be above the recorded ones by more than a quarter.
set -eu
mode=$1 golden=$2 program=$3 library=$(readlink -f "$4") compiler=$5 flags=$6

fail() { printf 'not ok instructions: %s\n' "$*"; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

command -v valgrind >/dev/null 2>&1 ||
  fail "valgrind is not installed, which counts the instructions; run bin/setup, or \`apt-get install valgrind\`."

# The names of the figures, from the program itself.
names=$(nm "$program" | sed -n 's/.* T measure_//p' | sort)

# One file of costs for each figure.
count_all() {
  set --
  for name in $names; do set -- "$@" "--dump-after=measure_$name"; done
  env -u LD_LIBRARY_PATH LD_BIND_NOW=1 LD_PRELOAD="$library" \
    valgrind --fair-sched=try --tool=callgrind --callgrind-out-file="$work/costs" --compress-strings=no --compress-pos=no \
    --collect-atstart=no '--toggle-collect=measure_*' "$@" "$program" >"$work/out" 2>&1 ||
    fail "the program failed under valgrind: $(tail -n 1 "$work/out")"
}

# "NAME COUNT" of one file of costs. The line behind "calls=" is what the called function cost, which is counted
# where that function's own lines stand.
count_one() {
  awk -v library="$library" '
    /^desc: Trigger: --dump-after=measure_/ { sub(/.*=measure_/, ""); name = $0 }
    /^ob=/ { ours = substr($0, 4) == library }
    /^fn=/ { measure = substr($0, 4) == "measure_" name }
    /^cob=/ { called = substr($0, 5) == library }
    /^calls=/ { split($1, part, "="); if (measure && called) calls += part[2]; called = 0; skip = 1; next }
    /^[0-9+*-]/ { if (ours && !skip) cost += $2 }
    { skip = 0 }
    END { if (name != "" && calls > 0) printf "%s %s\n", name, cost % calls ? sprintf("%.2f", cost / calls) : cost / calls }
  ' "$1"
}

count_all
for file in "$work"/costs.*; do count_one "$file"; done | sort >"$work/found"
[ "$(wc -l <"$work/found")" -eq "$(printf '%s\n' "$names" | wc -l)" ] ||
  fail "callgrind gave no count for some of: $(echo $names)."

if [ "$mode" = accept ]; then
  {
    printf '# Instructions per call in libculet.so on x86-64, by callgrind. Compared by `make test`.\n'
    printf '# After a change that is meant: make golden (in allocator/), and commit this file with it.\n'
    printf 'compiler %s\nflags %s\n' "$compiler" "$flags"
    cat "$work/found"
  } >"$golden.part"
  mv "$golden.part" "$golden"
  cat "$golden"
  exit 0
fi

[ -e "$golden" ] || fail "there is no $golden; write it with \`make golden\`."
factor=1.25
if grep -qxF "compiler $compiler" "$golden" && grep -qxF "flags $flags" "$golden"; then
  factor=1
else
  printf '# the recorded counts are of %s with %s, these of %s with %s: held to 1.25 times as many\n' \
    "$(sed -n 's/^compiler //p' "$golden")" "$(sed -n 's/^flags //p' "$golden")" "$compiler" "$flags"
fi

awk -v factor="$factor" '
  NR == FNR { if (!/^(#|compiler |flags )/) golden[$1] = $2; next }
  { found[$1] = 1 }
  !($1 in golden) { bad($1, $2 " instructions, but the golden file has none for it"); next }
  factor == 1 && $2 != golden[$1] { bad($1, $2 " instructions, " golden[$1] " are recorded"); next }
  $2 > golden[$1] * factor { bad($1, $2 " instructions, more than " factor " times the recorded " golden[$1]); next }
  { printf "ok instructions of %s (%s)\n", $1, $2 }
  function bad(name, why) {
    printf "not ok instructions of %s: %s; if that is meant, accept it with `make -C allocator golden`\n", name, why
    failed = 1
  }
  END {
    for (name in golden) if (!(name in found)) bad(name, "recorded, but not counted any more")
    exit failed
  }
' "$golden" "$work/found"
