# The copy-on-write experiment for Python 3; experiment.rb describes the protocol. Python's reference counts are in the
# objects, so even a read writes to them. gc.freeze, Python's warm-up before a fork, excludes them from collections.
import gc
import os
import sys
import time

STRINGS = int(os.environ["CULET_COW_STRINGS"])
VARIANT = os.environ.get("CULET_COW_VARIANT", "parent")
LONG = "a string that is longer than the small ones of this language; " * 11


def phase(name, figure=None):
    print("phase", name, *([] if figure is None else [figure]), flush=True)
    if not sys.stdin.readline():
        os._exit(0)


def collect():
    start = time.monotonic()
    gc.collect()
    return time.monotonic() - start


def prepare(strings):
    if VARIANT == "frees":
        for index in range(0, STRINGS, 8):
            strings[index] = None
    elif VARIANT == "mutates":
        for index in range(0, STRINGS, 8):
            strings[index] += "!"


def build(number):
    if number % 2500 == 0:
        return LONG + str(number)
    if number % 4 == 0:
        return "middling string %d, " % number
    return "s%d" % number


strings = [build(number) for number in range(STRINGS)]
gc.collect()
if os.environ.get("CULET_COW_WARM") == "1":
    gc.freeze()
phase("built")

orders, order = os.pipe()
answers, answer = os.pipe()
child = os.fork()
if child == 0:
    os.close(order)
    os.close(answers)
    prepare(strings)
    with os.fdopen(orders) as lines, os.fdopen(answer, "w") as replies:
        for _ in range(2):
            if lines.readline():
                print(collect(), file=replies, flush=True)
        lines.read()
    os._exit(0)
os.close(orders)
os.close(answer)
phase("forked", child)
with os.fdopen(order, "w") as commands, os.fdopen(answers) as replies:
    for name in ["first", "second"]:
        if VARIANT == "parent":
            phase(name, collect())
        else:
            print("collect", file=commands, flush=True)
            phase(name, float(replies.readline()))
os.waitpid(child, 0)
