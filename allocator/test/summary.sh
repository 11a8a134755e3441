#!/bin/sh
# usage: summary.sh LOG...
#
# One line: how many tests of $SUITE (default: allocator) passed and failed. Status 1 when one failed.
passed=$(cat "$@" | grep -c '^ok ')
failed=$(cat "$@" | grep -c '^not ok ')
if [ "$failed" -ne 0 ]; then
	echo
	grep -H '^not ok ' "$@" | sed 's,^.*/\([^/]*\)\.log:,\1: ,'
fi
echo "${SUITE:-allocator}: $passed tests passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
