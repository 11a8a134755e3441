#!/bin/sh
# usage: summary.sh LOG...
#
# One line: how many tests passed and failed. Status 1 when one failed.
passed=$(cat "$@" | grep -c '^ok ')
failed=$(cat "$@" | grep -c '^not ok ')
if [ "$failed" -ne 0 ]; then
	echo
	grep -H '^not ok ' "$@" | sed 's,^.*/\([^/]*\)\.log:,\1: ,'
fi
echo "allocator: $passed tests passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
