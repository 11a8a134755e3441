#!/bin/sh
# usage: aarch64.sh PROGRAM [ARGUMENT ...]
#
# Runs an aarch64 program by qemu-user, and ends with its status.
#   ARM_PRELOAD  libraries for the program's LD_PRELOAD (qemu itself must not see them)
#   ARM_PAGE     bytes per page that the program is told of
set -eu

for name in qemu-aarch64 qemu-aarch64-static; do
  if command -v $name >/dev/null 2>&1; then emulator=$name; fi
done
if [ -z "${emulator:-}" ]; then
  printf 'not ok aarch64: qemu-aarch64 is not installed, which runs the programs; run `bin/setup all`, or `apt-get install qemu-user`.\n'
  exit 1
fi

preload=${ARM_PRELOAD:-} page=${ARM_PAGE:-}
unset LD_PRELOAD ARM_PRELOAD ARM_PAGE
work=$(mktemp)
trap 'rm -f "$work"' EXIT
set -- ${page:+-p "$page"} -L "${ARM_ROOT:-/usr/aarch64-linux-gnu}" ${preload:+-E "LD_PRELOAD=$preload"} "$@"
status=0
# Below a shell of its own, which remarks on a signal that ends the program where nobody reads it.
sh -c '(exec "$@" 2>"$0"); exit $?' "$work" "$emulator" "$@" 2>/dev/null || status=$?
# The emulator does so too.
grep -v '^qemu: uncaught target signal' "$work" >&2 || :
exit $status
