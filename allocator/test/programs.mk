# Programs under the preloaded release library: misuses, conformance, forks, hard conditions, real programs.

PROGRAM_CFLAGS := -std=gnu11 -O1 -g -fno-builtin -pthread -Itest $(WARNINGS)
PROGRAM_LIBS := -ldl
PRELOAD := $(abspath $(BUILD))/libculet.so

# ---- misuses: each program is one mistake ----

# The mistakes are meant, so the compiler need not name them.
MISUSE_CFLAGS := $(PROGRAM_CFLAGS) -O0 -Wno-use-after-free -Wno-free-nonheap-object
MISUSES := $(patsubst test/misuse/%.c,$(TEST_BUILD)/misuse/%,$(wildcard test/misuse/*.c))

$(TEST_BUILD)/misuse/%: test/misuse/%.c test/misuse/misuse.h test/programs.mk
	@mkdir -p $(@D)
	$(CC) $(MISUSE_CFLAGS) -o $@ $< $(PROGRAM_LIBS)

TESTS += misuse
DEPS_misuse := $(MISUSES) $(BUILD)/libculet.so test/misuse/run.sh
RUN_misuse := sh test/misuse/run.sh $(PRELOAD) test/misuse $(abspath $(MISUSES))
