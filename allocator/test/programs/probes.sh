#!/bin/sh
# usage: probes.sh LIBRARY PROGRAM
#
# The USDT probes of LIBRARY: their notes, and what a debugger that attaches to them sees of PROGRAM (probes.c).
set -u
library=$1 program=$2

fail() { printf 'not ok probes: %s\n' "$*"; exit 1; }

printf '#include <sys/sdt.h>\n' | cc -E - >/dev/null 2>&1 ||
  fail "there is no sys/sdt.h; run bin/setup, or \`apt-get install systemtap-sdt-dev\`, and build again."
command -v gdb >/dev/null 2>&1 || fail "gdb is not installed; run bin/setup, or \`apt-get install gdb\`."
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# The arguments are in the registers of a call.
case $(uname -m) in
  x86_64) three='8@%rdi 8@%rsi 8@%rdx' one='8@%rdi' ;;
  *) three='8@x0 8@x1 8@x2' one='8@x0' ;;
esac
LC_ALL=C readelf -n "$library" | awk '
  /Provider:/ { provider = $2 }
  /Name:/ { name = $2 }
  /Semaphore:/ { semaphore = $NF ~ /[1-9a-f]/ && $NF !~ /^0x0+$/ ? "semaphore" : "none" }
  /Arguments:/ { sub(/ *Arguments: /, ""); print provider, name, semaphore, $0 }' | sort >"$work/notes"
printf 'otel_memory alloc semaphore %s\notel_memory free semaphore %s\n' "$three" "$one" >"$work/expected"
diff "$work/expected" "$work/notes" >"$work/difference" || fail "other notes: $(tr '\n' ' ' <"$work/difference")"
printf 'ok the notes of the probes\n'

cat >"$work/script" <<END
set pagination off
set confirm off
set exec-wrapper env LD_PRELOAD=$library
break probes_attach
run
break -probe-stap otel_memory:alloc
commands
silent
printf "alloc %lx %lu %lu\n", \$_probe_arg0, \$_probe_arg1, \$_probe_arg2
continue
end
break -probe-stap otel_memory:free
commands
silent
printf "free %lx\n", \$_probe_arg0
continue
end
break probes_leave
commands
silent
printf "left\n"
delete
continue
end
continue
END
gdb -nx -batch -x "$work/script" "$program" >"$work/out" 2>&1 </dev/null || fail "gdb: $(tail -n 3 "$work/out")"
grep -q '^left$' "$work/out" || fail "it has not run to its end: $(tail -n 3 "$work/out")"
grep -q 'exited normally' "$work/out" || fail "the program failed: $(tail -n 3 "$work/out")"

# The weighted bytes estimate the allocated ones. Their variance is the sum of weighted * (weighted - size): within 6 deviations.
awk '
  $1 == "bytes" { bytes = $2 }
  $1 == "alloc" && left { bad("an alloc after the debugger has left") }
  $1 == "alloc" {
    if ($2 in live) bad("a block is allocated that was not freed: " $2)
    if ($4 < $3) bad("size " $3 ", weighted " $4)
    live[$2] = 1; allocs++
    sum += $4; variance += $4 * ($4 - $3)
  }
  $1 == "free" { if (!($2 in live)) bad("a block is freed that was not allocated: " $2); delete live[$2] }
  $1 == "left" { left = 1 }
  function bad(why) { if (!failed) printf "not ok probes: %s\n", why; failed = 1 }
  END {
    if (allocs < 100) bad(allocs + 0 " samples")
    for (block in live) bad("never freed: " block)
    if ((sum - bytes) ^ 2 > 36 * variance) bad(sum " weighted bytes in place of " bytes)
    if (!failed) print "ok a debugger at the probes"
    exit failed
  }' "$work/out"
