#!/bin/sh
# usage: exports.sh check|accept GOLDEN LIBRARY
#
# What a library exports is a promise, and each name of it takes the place of other libraries' of that name: the list
# of them is compared with GOLDEN, or GOLDEN written anew.
set -eu
mode=$1 golden=$2 library=$3

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
nm -D --defined-only "$library" | awk '{ print $NF }' | LC_ALL=C sort >"$work/found"

if [ "$mode" = accept ]; then
  cp "$work/found" "$golden.part"
  mv "$golden.part" "$golden"
  exit 0
fi

if difference=$(diff "$golden" "$work/found"); then
  printf 'ok the library exports the %s names that it promises\n' "$(wc -l <"$golden")"
else
  printf 'not ok the library exports other names than it promises: %s; if that is meant, accept it with `make -C allocator golden`\n' \
    "$(printf '%s\n' "$difference" | sed -n 's/^</gone/p; s/^>/new/p' | tr '\n' ' ')"
  exit 1
fi
