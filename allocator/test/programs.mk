# Programs under the preloaded release library: conformance, forks, hard conditions, misuses, real programs.

PROGRAM_CFLAGS := -std=gnu11 -O1 -g -fno-builtin -pthread -Itest $(WARNINGS)
PROGRAM_LIBS := -ldl
PRELOAD := $(abspath $(BUILD))/libculet.so

# ---- programs of ours ----

PROGRAM_HEADERS := $(CHECK_HEADER) test/programs/programs.h
ON_CULET := env EXPECT_CULET=1 LD_PRELOAD=$(PRELOAD)

$(TEST_BUILD)/programs/%: test/programs/%.c $(PROGRAM_HEADERS) test/programs.mk
	@mkdir -p $(@D)
	$(CC) $(PROGRAM_CFLAGS) -o $@ $< $(PROGRAM_LIBS)

$(TEST_BUILD)/programs/%: test/programs/%.cc test/programs.mk
	@mkdir -p $(@D)
	$(CXX) -std=c++17 -O1 -g -Wall -Wextra -pthread -o $@ $<

# $(call PROGRAM,list,program[,arguments,suffix]): a run under the preloaded library.
define PROGRAM
$(1) += $(2)$(4)
DEPS_$(2)$(4) := $(TEST_BUILD)/programs/$(2) $(BUILD)/libculet.so
RUN_$(2)$(4) := $(ON_CULET) $(TEST_BUILD)/programs/$(2) $(3)
endef

$(eval $(call PROGRAM,TESTS,api))
$(eval $(call PROGRAM,TESTS,cxx))

# The expectations themselves are tested on glibc's own allocator.
LONG_TESTS += api-glibc cxx-glibc
DEPS_api-glibc := $(TEST_BUILD)/programs/api
RUN_api-glibc := $(TEST_BUILD)/programs/api
DEPS_cxx-glibc := $(TEST_BUILD)/programs/cxx
RUN_cxx-glibc := $(TEST_BUILD)/programs/cxx

$(eval $(call PROGRAM,TESTS,fork))
LONG_TESTS += fork-long fork-more-long
DEPS_fork-long := $(DEPS_fork)
RUN_fork-long := env FORKS=4000 $(RUN_fork) fork_with_live_threads
DEPS_fork-more-long := $(DEPS_fork)
RUN_fork-more-long := env FORKS=1000 $(RUN_fork) fork_while_threads_only_free threads_fork_at_the_same_time \
	fork_while_threads_come_and_go

# Shared libraries that the programs load.
$(TEST_BUILD)/programs/%.so: test/programs/%.c test/programs.mk
	@mkdir -p $(@D)
	$(CC) $(PROGRAM_CFLAGS) -fPIC -shared -o $@ $<

HANDLERS := $(abspath $(TEST_BUILD))/programs/handlers.so
TESTS += fork_handlers
LONG_TESTS += fork_handlers-glibc fork_handlers-long
DEPS_fork_handlers := $(TEST_BUILD)/programs/fork_handlers $(HANDLERS) $(BUILD)/libculet.so
RUN_fork_handlers := env EXPECT_CULET=1 HANDLERS=$(HANDLERS) "LD_PRELOAD=$(PRELOAD) $(HANDLERS)" $(TEST_BUILD)/programs/fork_handlers
DEPS_fork_handlers-glibc := $(TEST_BUILD)/programs/fork_handlers $(HANDLERS)
DEPS_fork_handlers-long = $(DEPS_fork_handlers)
RUN_fork_handlers-long = env FORKS=200 $(RUN_fork_handlers)
RUN_fork_handlers-glibc := env HANDLERS=$(HANDLERS) LD_PRELOAD=$(HANDLERS) $(TEST_BUILD)/programs/fork_handlers
$(TEST_BUILD)/programs/fork_handlers: test/programs/handlers.c

# Variants of one library: in TLS models and sizes, of which the last do not fit into what libc reserves.
TLS_DYNAMIC := tls100 tls5000 tls70000 tls300000
TLS_STATIC := tls64-static tls400-static tls1500-static tls2000-static
TLS_LIBRARIES := $(patsubst %,$(abspath $(TEST_BUILD))/programs/tls/%.so,$(TLS_DYNAMIC) $(TLS_STATIC))
$(TEST_BUILD)/programs/tls/%-static.so: test/programs/tls.c test/programs.mk
	@mkdir -p $(@D)
	$(CC) $(PROGRAM_CFLAGS) -fPIC -shared -ftls-model=initial-exec -DTLS_BYTES=$(*:tls%=%) -o $@ $<
$(TEST_BUILD)/programs/tls/%.so: test/programs/tls.c test/programs.mk
	@mkdir -p $(@D)
	$(CC) $(PROGRAM_CFLAGS) -fPIC -shared -DTLS_BYTES=$(*:tls%=%) -o $@ $<

empty :=
space := $(empty) $(empty)
TLS_PATHS := TLS_LIBRARIES=$(subst $(space),:,$(TLS_LIBRARIES))

$(eval $(call PROGRAM,TESTS,conditions))
DEPS_conditions += $(TLS_LIBRARIES)
RUN_conditions := env $(TLS_PATHS) $(RUN_conditions)

$(eval $(call PROGRAM,TESTS,fork_locks))
DEPS_fork_locks += $(TLS_LIBRARIES)
RUN_fork_locks := env $(TLS_PATHS) $(RUN_fork_locks)

$(eval $(call PROGRAM,TESTS,double_free_race))

# Programs for musl are run by env, so that the library is not preloaded into the script's own, which glibc would report.
ifeq ($(LIBC),musl)
MISUSE_PRELOAD := ""
MISUSE_COMMAND := env LD_PRELOAD=$(PRELOAD)
# musl's sbrk moves nothing.
MISUSE_SKIPPED := free_brk
else
MISUSE_PRELOAD := $(PRELOAD)
endif

# The mistakes are meant, so the compiler need not report them.
$(TEST_BUILD)/programs/misuse: PROGRAM_CFLAGS += -O0 -Wno-use-after-free -Wno-free-nonheap-object
TESTS += misuse
DEPS_misuse := $(TEST_BUILD)/programs/misuse $(BUILD)/libculet.so test/programs/misuse.sh
RUN_misuse := sh test/programs/misuse.sh $(MISUSE_PRELOAD) "$(MISUSE_SKIPPED)" $(abspath $(TEST_BUILD))/programs/misuse $(MISUSE_COMMAND)

$(TEST_BUILD)/programs/hardened: PROGRAM_CFLAGS += -O0 -Wno-use-after-free -Wno-free-nonheap-object
TESTS += hardened
DEPS_hardened := $(TEST_BUILD)/programs/hardened $(BUILD)/libculet.so test/programs/misuse.sh
RUN_hardened := env CULET_HARDEN=3 sh test/programs/misuse.sh $(MISUSE_PRELOAD) "" $(abspath $(TEST_BUILD))/programs/hardened \
	$(MISUSE_COMMAND)

TESTS += probes
DEPS_probes := $(TEST_BUILD)/programs/probes $(BUILD)/libculet.so test/programs/probes.sh
RUN_probes := sh test/programs/probes.sh $(PRELOAD) $(abspath $(TEST_BUILD))/programs/probes

# A hundred libraries, copies of one, and one that needs them all.
MANY_NUMBERS := $(shell seq 1 100)
MANY := $(abspath $(TEST_BUILD))/programs/many
$(MANY)/all.so: $(TEST_BUILD)/programs/tls/tls100.so test/programs.mk
	@mkdir -p $(@D)
	@for number in $(MANY_NUMBERS); do cp $< $(@D)/$$number.so; done
	$(CC) -shared -fPIC -o $@ -x c /dev/null -x none -Wl,--no-as-needed $(MANY_NUMBERS:%=$(@D)/%.so)

$(eval $(call PROGRAM,TESTS,loading))
DEPS_loading += $(MANY)/all.so
RUN_loading := env MANY_AT_ONCE=$(MANY)/all.so MANY_LIBRARIES=$(subst $(space),:,$(MANY_NUMBERS:%=$(MANY)/%.so)) $(RUN_loading)

# With as little room for static thread-local storage as libc lets one have.
TESTS += conditions-tls-poor
DEPS_conditions-tls-poor := $(DEPS_conditions)
RUN_conditions-tls-poor := env GLIBC_TUNABLES=glibc.rtld.optional_static_tls=0 $(RUN_conditions) \
	libraries_with_thread_local_storage threads_that_load_libraries

# A library that is preloaded twice: in front of culet and behind it.
EARLY := $(patsubst %,$(abspath $(TEST_BUILD))/programs/early-%.so,before behind)
$(TEST_BUILD)/programs/early-%.so: test/programs/early_library.c test/programs.mk
	@mkdir -p $(@D)
	$(CC) $(PROGRAM_CFLAGS) -fPIC -shared -o $@ $<

TESTS += early
DEPS_early := $(TEST_BUILD)/programs/early $(EARLY) $(BUILD)/libculet.so
RUN_early := env EXPECT_CULET=1 EARLY_LIBRARIES=$(subst $(space),:,$(EARLY)) \
	"LD_PRELOAD=$(word 1,$(EARLY)) $(PRELOAD) $(word 2,$(EARLY))" $(TEST_BUILD)/programs/early

$(eval $(call PROGRAM,TESTS,shape))

# A hardened child does not write to what it frees either; and the quarantine keeps little for long.
HARDENED_SHAPE := frees_in_a_child_keep_pages_shared_256 frees_in_a_child_keep_pages_shared_1024 blocks_after_frees_in_a_child
$(eval $(call PROGRAM,LONG_TESTS,shape,$(HARDENED_SHAPE),-hardened-2))
$(eval $(call PROGRAM,TESTS,shape,$(HARDENED_SHAPE),-hardened-3))
$(foreach level,2 3,$(eval RUN_shape-hardened-$(level) := env CULET_HARDEN=$(level) $(RUN_shape-hardened-$(level))))
$(TEST_BUILD)/programs/profile: PROGRAM_LIBS += -lm
$(TEST_BUILD)/programs/profile: ../sampler/core/profile.h
$(eval $(call PROGRAM,TESTS,profile))

$(eval $(call PROGRAM,TESTS,decay,a_short_interval_returns_the_burst,-short))
$(eval $(call PROGRAM,TESTS,decay,a_long_interval_keeps_the_burst,-long))
RUN_decay-short := env CULET_DECAY=20 $(RUN_decay-short)
$(eval $(call PROGRAM,TESTS,decay,a_burst_leaves_little a_trim_empties_the_quarantine,-hardened))
RUN_decay-hardened := env CULET_HARDEN=3 CULET_DECAY=20 $(RUN_decay-hardened)
RUN_decay-long := env CULET_DECAY=3600000 $(RUN_decay-long)

# The fuzzer, preloaded and on glibc's own allocator; unit.mk has the runs with the sources linked in.
$(TEST_BUILD)/programs/fuzz: test/unit/fuzz.c test/fuzz_block.h test/programs/scavenger.h $(CHECK_HEADER) src/culet.h test/programs.mk
	@mkdir -p $(@D)
	$(CC) $(PROGRAM_CFLAGS) -O2 -Isrc -Wno-alloc-size-larger-than -Wno-address -o $@ $< $(PROGRAM_LIBS)
$(eval $(call PROGRAM,TESTS,fuzz,--rounds 1 --steps 2000))
$(eval $(call PROGRAM,LONG_TESTS,fuzz,--seed 0 --rounds 60,-long))
LONG_TESTS += fuzz-glibc
DEPS_fuzz-glibc := $(TEST_BUILD)/programs/fuzz
RUN_fuzz-glibc := $(TEST_BUILD)/programs/fuzz --rounds 1

# ---- programs of others ----

TESTS += real
DEPS_real := $(BUILD)/libculet.so test/programs/real.sh
RUN_real := sh test/programs/real.sh $(PRELOAD)
LONG_TESTS += real-long
DEPS_real-long := $(DEPS_real)
RUN_real-long := $(RUN_real) 60000

# Programs of others, and those whose expectations do not depend on what the heap counts, in a hardened process.
TESTS += cxx-hardened
LONG_TESTS += real-hardened
DEPS_real-hardened := $(DEPS_real)
RUN_real-hardened := env CULET_HARDEN=3 $(RUN_real)
DEPS_cxx-hardened := $(DEPS_cxx)
RUN_cxx-hardened := env CULET_HARDEN=3 $(RUN_cxx)

# ---- programs on a library that checks its invariants as it goes: only in `make test-all` ----

DEBUG_PRELOAD := $(abspath $(TEST_BUILD))/debug-preload/libculet.so
$(DEBUG_PRELOAD): $(SOURCES) $(PROFILE_SOURCES) $(HEADERS) test/programs.mk
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -O1 -DCULET_DEBUG -shared -Wl,-soname,libculet.so -Wl,-z,now -Wl,-z,initfirst -o $@ $(SOURCES) $(PROFILE_SOURCES) -ldl

define DEBUG_RUN
LONG_TESTS += $(1)-checked
DEPS_$(1)-checked := $(DEPS_$(1)) $(DEBUG_PRELOAD)
RUN_$(1)-checked := $(subst $(PRELOAD),$(DEBUG_PRELOAD),$(RUN_$(1)))
endef
$(foreach name,api cxx fuzz fork fork_handlers fork_locks conditions loading real,$(eval $(call DEBUG_RUN,$(name))))

# ---- musl ----

# What musl itself does not do, by name:
#   - fork takes the lock on the list of open streams, which has no name, after the fork handlers (docs/known-issues.md);
#   - a child of a raw fork waits for locks that other threads of its parent held; on musl's own malloc it may crash;
#   - up to 1.2.3, a forked child whose main thread has ended can start no threads.
# A shell is linked with glibc, and cannot have the library preloaded.
ifeq ($(LIBC),musl)
MUSL_WITHOUT := fork_beside_a_flush_of_all_streams fork_within_a_flush_of_all_streams raw_forks_beside_busy_threads \
	main_thread_ends_first spawn_with_live_threads
TESTS_OF = $(shell sed -n 's/^TEST(\(.*\))$$/\1/p' test/programs/programs.h test/programs/$(1).c)
RUN_fork := $(RUN_fork) $(filter-out $(MUSL_WITHOUT),$(call TESTS_OF,fork))
RUN_fork_locks := $(RUN_fork_locks) $(filter-out $(MUSL_WITHOUT),$(call TESTS_OF,fork_locks))
RUN_conditions := $(RUN_conditions) $(filter-out $(MUSL_WITHOUT),$(call TESTS_OF,conditions))
endif
