#!/bin/sh
# Real programs under the preloaded library. Each piece of work is done twice, without the library and with it, and
# must give the same bytes on stdout and stderr.
#
#   real.sh LIBRARY [LINES]        LINES: of the text that they work on
set -u
library=$1 lines=${2:-4000}
export LC_ALL=C TZ=UTC
unset LD_PRELOAD CULET_CHILDREN CULET_INHERITED
ulimit -c 0

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0

# Prepared once: a tree of files, and a text.
prepare() {
  awk -v lines="$lines" 'BEGIN { for (i = 0; i < lines; i++) printf "%d word%d %x line of text\n", i * 7919 % lines, i % 977, i }' >"$work/text"
  mkdir "$work/tree"
  (cd "$work/tree" && split -l 200 ../text part. && touch -d @1000000000 part.*)
}

fail() {
  printf 'not ok %s: %s\n' "$1" "$2"
  failed=1
}

# The command, in a fresh folder; stdout and stderr are kept in $work/$1.out.
in_fresh_folder() {
  folder=$work/$1
  shift
  mkdir "$folder"
  (cd "$folder" && exec timeout -k 5 300 "$@") >"$folder.out" 2>&1 </dev/null
  status=$?
  rm -rf "$folder"
  return $status
}

# compare NAME PROGRAM SCRIPT: the script finds the program in $1 and the prepared files in $2.
compare() {
  name=$1 program=$2
  shift 2
  if ! command -v "$program" >/dev/null 2>&1; then
    fail "$name" "$program is not installed; bin/setup installs it"
    return
  fi
  in_fresh_folder plain sh -c "$1" sh "$program" "$work"
  plain=$?
  in_fresh_folder preloaded env CULET_CHILDREN=all LD_PRELOAD="$library" sh -c "$1" sh "$program" "$work"
  preloaded=$?
  if [ $plain -ne 0 ]; then
    fail "$name" "it fails without the library too, with status $plain: $(tail -n 3 "$work/plain.out" | tr '\n' ' ')"
  elif [ $preloaded -ne 0 ]; then
    fail "$name" "status $preloaded: $(tail -n 3 "$work/preloaded.out" | tr '\n' ' ')"
  elif [ ! -s "$work/plain.out" ]; then
    fail "$name" 'it printed nothing'
  elif ! cmp -s "$work/plain.out" "$work/preloaded.out"; then
    fail "$name" "other output: $(diff "$work/plain.out" "$work/preloaded.out" | head -n 3 | tr '\n' ' ')"
  else
    printf 'ok %s\n' "$name"
  fi
  rm -f "$work/plain.out" "$work/preloaded.out"
}

prepare
python=/usr/bin/python3

compare 'python3: containers, text, numbers' $python '
exec "$1" -c "
import json, re, zlib, hashlib, collections, decimal, random, itertools
random.seed(5)
text = open(\"$2/text\").read()
words = collections.Counter(re.findall(r\"[a-z]+[0-9]*\", text))
print(words.most_common(5), len(words))
table = {i: {\"a\": [str(i)] * (i % 20), \"b\": random.random()} for i in range(len(text) // 16)}
dump = json.dumps(table, sort_keys=True)
assert json.loads(dump)[\"7\"][\"a\"] == [\"7\"] * 7
packed = zlib.compress(dump.encode(), 6)
assert zlib.decompress(packed).decode() == dump
print(hashlib.sha256(dump.encode()).hexdigest(), len(packed))
decimal.getcontext().prec = 3000
print(str(decimal.Decimal(2).sqrt())[-20:], sum(map(len, itertools.permutations(range(8)))))
"'

compare 'python3: threads, processes, sockets' $python '
exec "$1" -c "
import threading, multiprocessing, subprocess, socket, queue, os
results = queue.Queue()
def work(n):
    results.put(sum(len(str(i) * (i % 50)) for i in range(n, n + 20000)))
threads = [threading.Thread(target=work, args=(i,)) for i in range(20)]
[t.start() for t in threads]; [t.join() for t in threads]
print(sorted(results.get() for _ in threads))
def square(x): return [x * x] * 100
if __name__ == \"__main__\":
    with multiprocessing.get_context(\"fork\").Pool(4) as pool:
        print(sum(sum(l) for l in pool.map(square, range(2000))))
    print(subprocess.run([\"sh\", \"-c\", \"echo out of a shell\"], capture_output=True, text=True).stdout)
    a, b = socket.socketpair()
    threading.Thread(target=lambda: (a.sendall(b\"x\" * 3000000), a.close())).start()
    got = 0
    while True:
        part = b.recv(65536)
        if not part: break
        got += len(part)
    print(got)
"'

compare 'python3: compiler, tokenizer, difflib, doctest' $python '
exec "$1" -c "
import doctest, difflib, ast, tokenize, io, os
source = open(os.__file__).read()
tree = ast.parse(source)
print(len(list(ast.walk(tree))), len(list(tokenize.generate_tokens(io.StringIO(source).readline))))
code = compile(tree, \"os\", \"exec\")
print(len(code.co_consts))
print(len(list(difflib.unified_diff(source.splitlines(), source.upper().splitlines()))))
print(doctest.testmod(difflib).failed)
"'

compare 'git: init, commit, log, branch, merge, gc, fsck' git '
git=$1
export HOME=$PWD GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_DATE="2020-01-01T00:00:00Z" GIT_COMMITTER_DATE="2020-01-01T00:00:00Z"
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org
set -e
"$git" init -q -b main . && cp "$2"/tree/* . && "$git" add . && "$git" commit -q -m first
for i in 1 2 3 4 5 6; do sed -i "s/word$i /changed$i /" part.a*; "$git" commit -q -a -m "change $i"; done
"$git" checkout -q -b side HEAD~3 && echo side >side.txt && "$git" add side.txt && "$git" commit -q -m side
"$git" checkout -q main && "$git" merge -q -m merge side
"$git" -c gc.autoDetach=false gc -q --aggressive --prune=now
"$git" fsck --full --strict
"$git" log --stat --oneline --graph | cat
"$git" diff HEAD~4 | tail -n 50
"$git" blame part.aa | tail -n 5
"$git" rev-parse HEAD "HEAD^{tree}"
"$git" clone -q . copy && "$git" -C copy rev-parse HEAD'

compare 'perl: hashes, regular expressions, sorting' perl '
exec "$1" -e "
my %words; my @lines;
open(my \$text, \"<\", \"$2/text\") or die; while (<\$text>) { push @lines, \$_; \$words{\$_}++ for split }
print scalar(keys %words), \" \", scalar(@lines), \"\n\";
my \$all = join q{}, @lines; my \$n = () = \$all =~ /(word\d+) ([0-9a-f]+) line/g; print \"\$n\n\";
\$all =~ s/line of/lines of/g; print length(\$all), \"\n\";
print join(q{,}, (sort { \$words{\$b} <=> \$words{\$a} || \$a cmp \$b } keys %words)[0..9]), \"\n\";
for my \$i (1..20) { my \$pid = fork; if (!\$pid) { my @mine = map { \$_ x 3 } @lines[0..999]; exit(@mine == 1000 ? 0 : 1) } waitpid(\$pid, 0); die if \$? }
print \"forked\n\";
"'

compare 'sqlite3: tables, indices, queries, vacuum' sqlite3 '
"$1" test.db "
create table t(id integer primary key, name text, amount real, data blob);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 100000)
  insert into t select i, \"name\" || (i * 7919 % 100003), i * 0.5, zeroblob(i % 300) from n;
create index by_name on t(name); create index by_amount on t(amount, name);
begin; delete from t where id % 3 = 0; update t set name = name || \"x\" where id % 5 = 0; commit;
select count(*), sum(amount), min(name), max(name), sum(length(data)) from t;
select substr(name, 1, 6) as start, count(*) c from t group by start order by c desc, start limit 10;
select a.name from t a join t b on a.name = b.name and a.id <> b.id order by a.name limit 5;
vacuum; analyze; pragma integrity_check; select count(*) from sqlite_schema;" &&
"$1" test.db .dump | cksum'

compare 'sort' sort '"$1" -n "$2/text" | cksum && "$1" -k2,2 -k3,3r --parallel=4 -S 1M "$2/text" | cksum && "$1" -u -k2,2 "$2/text" | wc -l'
compare 'tar and gzip' tar '"$1" --sort=name --owner=0 --group=0 -C "$2" -cf - tree | gzip -n9 >a.tgz && cksum <a.tgz && "$1" -xzf a.tgz && cat tree/* | cmp - "$2/text" && echo same'
compare 'xargs, grep, sed, awk, find' find '"$1" "$2/tree" -type f | sort | xargs -P 4 -n 20 grep -c word7 | wc -l; sed "s/word/WORD/g; s/line/&&/" "$2/text" | awk "{ n[\$2] += \$1 } END { for (k in n) s += n[k]; print s, length(n) }"'

# A compiler of many processes: the object's code and data must be the same to the byte.
compare 'cc: preprocess, compile, assemble, archive' cc '
awk -v lines="$(wc -l <"$2/text")" "BEGIN { print \"#include <stdio.h>\\n#include <stdlib.h>\\n#include <string.h>\"
  for (i = 0; i < lines / 60; i++) printf \"int f%d(int n, const char *s) { int t = 0; for (int k = 0; k < n; k++) { t += s[k %% %d] * %d; if (t > 1000000) t %%= %d; switch (t %% 5) { case 0: t += k; break; case 3: t ^= n; } } return t; }\\n\", i, i + 1, i, i + 7 }" >many.c
"$1" -O2 -c many.c -o many.o && "$1" -O0 -g -fdebug-prefix-map="$PWD"=. -S many.c -o many.s && "$1" -E many.c | wc -l && cksum <many.o && cksum <many.s && ar rcD many.a many.o && nm many.a | grep -c " T " && objdump -d many.o | cksum'
compare 'make and cc' make 'printf "all: a b\n\t./a && ./b\n%%: %%.c\n\tcc -O1 -o \$@ \$<\n" >Makefile
for p in a b; do printf "#include <stdio.h>\n#include <stdlib.h>\nint main(void) { char *t = malloc(20); sprintf(t, \"$p\"); puts(t); free(t); return 0; }\n" >$p.c; done; "$1" -j2 2>&1 | sort'
compare 'bash' bash '"$1" -c "declare -A t; for i in {1..20000}; do t[k\$((i % 3000))]+=x\$i; done; s=0; for k in \${!t[@]}; do ((s += \${#t[\$k]})); done; echo \$s \${#t[@]} \$(for i in {1..50}; do (echo \$i) & done | sort -n | tail -n 1)"'

# What is there only on some machines is not missed on others.
compare_if_there() {
  if command -v "$2" >/dev/null 2>&1; then compare "$@"; fi
}

compare_if_there 'node: objects, strings, JSON, workers, zlib, a child' node '
exec "$1" -e "
const { Worker, isMainThread } = require(\"worker_threads\"), zlib = require(\"zlib\"), crypto = require(\"crypto\"), fs = require(\"fs\");
const text = fs.readFileSync(process.argv[1] + \"/text\", \"utf8\"), words = new Map();
for (const word of text.split(/\\s+/)) words.set(word, (words.get(word) || 0) + 1);
console.log(words.size, [...words].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, 5));
const table = JSON.stringify([...words]), packed = zlib.deflateSync(table);
console.log(crypto.createHash(\"sha256\").update(table).digest(\"hex\"), zlib.inflateSync(packed).toString() === table);
let buffers = []; for (let i = 0; i < 3000; i++) { buffers.push(Buffer.alloc(i * 17 % 70000, i)); if (i % 3) buffers[i * 7 % buffers.length] = null; }
console.log(buffers.reduce((sum, one) => sum + (one ? one.length + (one[one.length - 1] || 0) : 0), 0));
console.log(require(\"child_process\").execFileSync(\"sh\", [\"-c\", \"echo a child of node\"]).toString());
let left = 4, total = 0;
for (let i = 0; i < 4; i++) new Worker(\"const { parentPort, workerData } = require(\\\"worker_threads\\\"); let s = 0; for (let k = 0; k < 20000; k++) s += String(k).repeat(k % 20).length; parentPort.postMessage(s + workerData)\", { eval: true, workerData: i })
  .on(\"message\", (sum) => { total += sum; if (--left === 0) console.log(total); });
" "$2"'

compare_if_there 'ImageMagick: draw, resize, convert' magick '"$1" -size 400x300 plasma:fractal -seed 7 -resize 50% -rotate 30 -blur 2 ppm:- | cksum'

# What malloc_info writes is read by an XML parser, in a process that has done some work.
xml() {
  LD_PRELOAD=$library timeout -k 5 60 $python -c "
import ctypes, xml.etree.ElementTree as tree
text = [str(i) * (i % 100) for i in range(50000)]
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
libc.fclose.argtypes = [ctypes.c_void_p]
libc.malloc_info.argtypes = [ctypes.c_int, ctypes.c_void_p]
libc.culet_active.restype = ctypes.c_int
assert libc.culet_active() == 1, 'culet is not active'
stream = libc.fopen(b'$work/info.xml', b'w')
assert libc.malloc_info(0, stream) == 0 and libc.fclose(stream) == 0
root = tree.parse('$work/info.xml').getroot()
assert root.tag == 'malloc' and root.get('version') == '1', root.attrib
sizes = root.findall('./heap/sizes/size')
assert len(sizes) > 20, len(sizes)
for size in sizes:
    assert int(size.get('from')) <= int(size.get('to')) and int(size.get('slabs')) > 0, size.attrib
total = {t.get('type'): int(t.get('size')) for t in root.findall('./total')}
mapped = int(root.find('./system').get('size'))
assert total['used'] + total['rest'] == mapped, (total, mapped)
small = sum(int(s.get('to')) * int(s.get('used')) for s in sizes)
assert small + total['run'] + total['mmap'] == total['used'], (small, total)
" 2>&1
}
if out=$(xml); then printf 'ok malloc_info is well-formed XML and adds up\n'; else fail 'malloc_info' "$(printf %s "$out" | tail -n 1)"; fi

exit $failed
