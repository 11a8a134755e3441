# Unit tests of the core, and of the sampler's table of live blocks. Included by ../Makefile.

ALL_CFLAGS = -std=gnu11 -pthread -fPIC -fvisibility=hidden $(WARNINGS) $(CFLAGS)
CHECK := ../allocator/test
# Nothing to compare native stacks with: musl has no backtrace, and gcc's unwinder is built for glibc.
TESTS := $(filter-out live $(if $(filter musl,$(LIBC)),unwind unwind_modules),$(patsubst test/%.c,%,$(wildcard test/*.c)))
# gcc has no sanitizers for musl.
VARIANTS := release $(if $(filter musl,$(LIBC)),,asan tsan)
VARIANT_release := -O2
VARIANT_asan := -O1 -fsanitize=address,undefined -fno-sanitize-recover=all
VARIANT_tsan := -O1 -fsanitize=thread
# Mappings that fail.
LINK_samples := -Wl,--wrap=mmap,--wrap=clock_gettime
LINK_index := -Wl,--wrap=mmap
ENVIRONMENT_tsan := TSAN_OPTIONS=halt_on_error=1:die_after_fork=0:report_thread_leaks=0 $(shell setarch -R true 2>/dev/null && echo setarch -R)
# TSan is for programs with threads, and has a backtrace of its own, which is no measure.
# `make test` runs those of the tables under ASan only; musl has no other.
IN_ALL := $(if $(filter musl,$(LIBC)),,$(addprefix $(BUILD)/release/,index random samples))
PROGRAMS := $(filter-out $(BUILD)/tsan/index $(BUILD)/tsan/random $(BUILD)/tsan/unwind%,$(foreach variant,$(VARIANTS),$(TESTS:%=$(BUILD)/$(variant)/%))) \
            $(VARIANTS:%=$(BUILD)/%/live)

define VARIANT
$(BUILD)/$(1)/%.o: core/%.c $(HEADERS) Makefile test/tests.mk ../part.mk
	@mkdir -p $$(@D)
	$(CC) $(ALL_CFLAGS) $(VARIANT_$(1)) -c -o $$@ $$<

$(BUILD)/$(1)/%: test/%.c $(SOURCES:core/%.c=$(BUILD)/$(1)/%.o) $(HEADERS) $(CHECK)/check.h
	$(CC) $(ALL_CFLAGS) $(VARIANT_$(1)) -fno-builtin -Icore -I$(CHECK) -o $$@ $$< $(SOURCES:core/%.c=$(BUILD)/$(1)/%.o) $$(LINK_$$*) -ldl -lm

$(BUILD)/$(1)/live: test/live.c preload/live.c $(HEADERS) $(CHECK)/check.h Makefile test/tests.mk ../part.mk
	@mkdir -p $$(@D)
	$(CC) $(ALL_CFLAGS) $(VARIANT_$(1)) -Ipreload -I$(CHECK) -o $$@ test/live.c preload/live.c
endef
$(foreach variant,$(VARIANTS),$(eval $(call VARIANT,$(variant))))

include test/unwind.mk

# Under TSan, the tests with threads.
THREADED_samples := the_forking_thread_is_not_locked_out threads_share_the_tables threads_start_and_stop_it
THREADED_live := a_block_is_found_while_others_come_and_go

# Runs all tests, then fails if one of them did.
test: override PROGRAMS := $(filter-out $(IN_ALL),$(PROGRAMS))
test: $(filter-out $(IN_ALL),$(PROGRAMS))
test-all: $(PROGRAMS)
test test-all:
	@failed=; $(foreach program,$(PROGRAMS),echo "# $(program:$(BUILD)/%=%)"; env -u LD_PRELOAD \
	  $(if $(findstring /tsan/,$(program)),$(ENVIRONMENT_tsan) $(program) $(THREADED_$(notdir $(program))),$(program)) || failed=1;) \
	  test -z "$$failed"
