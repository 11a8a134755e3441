#!/bin/sh
# usage: run.sh LOG NAME COMMAND...
#
# Runs a test program, keeps what it prints in LOG and shows it when it is done. Ends with status 0 even when
# tests fail, so that the others run too: summary.sh reads the logs and tells.
log=$1 name=$2
shift 2

# Programs that are tested must not see the make that runs them.
unset MAKEFLAGS MFLAGS MAKELEVEL

began=$(date +%s)
"$@" >"$log.part" 2>&1
status=$?
seconds=$(($(date +%s) - began))
if [ $status -ne 0 ] && ! grep -q '^not ok ' "$log.part"; then
	echo "not ok $name: exit status $status" >>"$log.part"
elif ! grep -Eq '^(not )?ok ' "$log.part"; then
	echo "not ok $name: it reported nothing" >>"$log.part"
fi
mv "$log.part" "$log"
# In one go, so that runs side by side do not mix their lines.
{ echo "# $name ($seconds s)"; cat "$log"; } | sed -e 's/^/  /' -e '1s/^  //' | cat
