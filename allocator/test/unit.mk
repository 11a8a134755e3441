# Unit tests, fuzzer, failures: the sources built beside libc's allocator (CULET_PREFIXED), in variants.
#
# `make test` runs each in the variant that checks the invariants as it goes, under ASan and UBSan; those with threads also
# with the release's optimisations and under TSan. `make test-all` runs the others in `release` too, and in `debug`, which
# checks what `asan` does without the sanitizers, as where gcc has none.

VARIANTS := release debug asan tsan
CHECKED := $(if $(filter musl,$(LIBC)),debug,asan)
UNCHECKED := $(filter-out $(CHECKED),debug)
# For a debugger, `debug` knows variables as well as lines; that costs a sixth of the compiler's time.
VARIANT_release := -O2 -g1
VARIANT_debug := -O1 -g -DCULET_DEBUG
VARIANT_asan := -O1 -g1 -DCULET_DEBUG -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
VARIANT_tsan := -O1 -g1 -DCULET_DEBUG -fsanitize=thread

UNIT_CFLAGS := -std=gnu11 -pthread -fvisibility=hidden -Isrc -Itest -DCULET_PREFIXED -DCULET_TEST \
               -DCULET_PROFILE_SAMPLES_MALLOC \
               -DCULET_VERSION='"$(VERSION)"' $(WARNINGS)
UNIT_HEADERS := $(HEADERS) $(wildcard test/*.h) test/programs/scavenger.h

# Older ThreadSanitizers cannot map their shadow under some kernels' address randomisation.
STILL := $(shell setarch -R true 2>/dev/null && echo setarch -R)
ENVIRONMENT_asan := ASAN_OPTIONS=detect_leaks=0:abort_on_error=1:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1
ENVIRONMENT_tsan := TSAN_OPTIONS=halt_on_error=1:die_after_fork=0:second_deadlock_stack=1 $(STILL)

# What a program needs besides to be linked.
LINK_bin := -Wl,--wrap=culet_bin_free_remote
LINK_scavenger := -Wl,--wrap=culet_os_pause
LINK_takeover := -Wl,--wrap=culet_os_barrier
LINK_sampling := -Wl,--wrap=culet_profile_distance -Wl,--wrap=culet_probes_alloc -Wl,--wrap=culet_probes_free

define UNIT_VARIANT
$(TEST_BUILD)/$(1)/src/%.o: src/%.c $$(UNIT_HEADERS) Makefile test/unit.mk
	@mkdir -p $$(@D)
	$$(CC) $$(UNIT_CFLAGS) $$(VARIANT_$(1)) -c -o $$@ $$<

$(TEST_BUILD)/$(1)/sampler/core/%.o: ../sampler/core/%.c $$(UNIT_HEADERS) Makefile test/unit.mk
	@mkdir -p $$(@D)
	$$(CC) $$(UNIT_CFLAGS) $$(VARIANT_$(1)) -c -o $$@ $$<

$(TEST_BUILD)/$(1)/libculet.a: $(SOURCES:src/%.c=$(TEST_BUILD)/$(1)/src/%.o) $(PROFILE_SOURCES:../%.c=$(TEST_BUILD)/$(1)/%.o)
	@rm -f $$@
	$$(AR) rcs $$@ $$^

# Apart from the linking: a change of the library compiles no test, and several programs are made of one object file.
.PRECIOUS: $(TEST_BUILD)/$(1)/unit/%.o
$(TEST_BUILD)/$(1)/unit/%.o: test/unit/%.c $$(UNIT_HEADERS) test/unit.mk
	@mkdir -p $$(@D)
	$$(CC) $$(UNIT_CFLAGS) $$(VARIANT_$(1)) -c -o $$@ $$<

$(TEST_BUILD)/$(1)/%: $(TEST_BUILD)/$(1)/unit/%.o $(TEST_BUILD)/$(1)/libculet.a test/unit.mk
	$$(CC) $$(UNIT_CFLAGS) $$(VARIANT_$(1)) $$(LINK_$$*) -o $$@ $$< $(TEST_BUILD)/$(1)/libculet.a -ldl -lm
endef
$(foreach variant,$(VARIANTS),$(eval $(call UNIT_VARIANT,$(variant))))

# $(call UNIT_TEST,list,program,variant[,arguments,suffix]): a run of a program of test/unit in a variant.
define UNIT_TEST
$(1) += $(2)-$(3)$(5)
DEPS_$(2)-$(3)$(5) := $(TEST_BUILD)/$(3)/$(2)
RUN_$(2)-$(3)$(5) := env $(ENVIRONMENT_$(3)) $(TEST_BUILD)/$(3)/$(2) $(4)
endef

# ThreadSanitizer is for programs with threads; the slowest of them run with the long tests.
# The window of `barrier` is one of the processor's: a sanitizer only makes it rarer.
UNITS := $(filter-out fuzz rings failure weak barrier,$(patsubst test/unit/%.c,%,$(wildcard test/unit/*.c)))
THREADED := arena takeover bin lock scavenger
SLOWLY_THREADED := checked pages purge sampling stats
$(foreach unit,$(UNITS),$(foreach variant,$(CHECKED) $(if $(filter $(unit),$(THREADED)),release tsan),\
    $(eval $(call UNIT_TEST,TESTS,$(unit),$(variant)))))
$(foreach unit,$(UNITS),$(foreach variant,$(UNCHECKED) $(if $(filter-out $(THREADED),$(unit)),release) $(if $(filter $(unit),$(SLOWLY_THREADED)),tsan),\
    $(eval $(call UNIT_TEST,LONG_TESTS,$(unit),$(variant)))))

$(eval $(call UNIT_TEST,TESTS,barrier,release))

# The model of the memory orders runs no code of the library's but its header of orders.
# That a step is missed, and which orders would do, is of the model, and not of the library.
$(eval $(call UNIT_TEST,TESTS,weak,release,the_orders_of_the_code_suffice a_weaker_order_is_found a_double_free_is_not_noticed_once_the_block_is_given_out))
LONG_TESTS += weak-long
DEPS_weak-long := $(DEPS_weak-release)
RUN_weak-long := env WEAK_ALL=1 $(TEST_BUILD)/release/weak

# Longer ones, with bounds on the work that fit the variant.
# $(call UNIT_LOAD,list,program,variant,suffix,settings[,arguments])
define UNIT_LOAD
$(call UNIT_TEST,$(1),$(2),$(3),,$(4))
RUN_$(2)-$(3)$(4) := env $(5) $(ENVIRONMENT_$(3)) $(TEST_BUILD)/$(3)/$(2) $(6)
endef
$(foreach variant,release asan tsan,$(eval $(call UNIT_LOAD,LONG_TESTS,arena,$(variant),-long,ARENA_ENDS=3000 ARENA_FORKS=400)))
$(foreach variant,release debug,$(eval $(call UNIT_LOAD,LONG_TESTS,signals,$(variant),-long,SIGNAL_FORKS=5000)))
RINGS := CULET_DECAY=10
$(foreach variant,release $(CHECKED) tsan,$(eval $(call UNIT_LOAD,TESTS,rings,$(variant),,$(RINGS) STRESS_MS=250)))
RUN_rings-tsan += threads_in_parallel_and_threads_under_a_lock blocks_of_few_sizes a_heap_without_a_scavenger
$(foreach variant,$(VARIANTS),$(eval $(call UNIT_LOAD,LONG_TESTS,rings,$(variant),-long,$(RINGS) STRESS_MS=30000 STRESS_SEED=0)))
$(eval $(call UNIT_LOAD,TESTS,failure,$(CHECKED)))
$(foreach variant,release $(UNCHECKED) tsan,$(eval $(call UNIT_LOAD,LONG_TESTS,failure,$(variant))))

# The fuzzer. A long run takes another seed each time, and prints it.
FUZZ_THREADS := one_thread threads_that_share_blocks trims_and_statistics_in_the_middle
$(eval $(call UNIT_TEST,TESTS,fuzz,release,--rounds 20 --steps 2000 $(FUZZ_THREADS) refusals_in_the_middle))
$(eval $(call UNIT_TEST,TESTS,fuzz,$(CHECKED),--rounds 1 --steps 2000))
$(eval $(call UNIT_TEST,TESTS,fuzz,$(CHECKED),--rounds 20 --steps 1000 $(FUZZ_THREADS) refusals_in_the_middle,-threads))
$(eval $(call UNIT_TEST,TESTS,fuzz,tsan,--rounds 1 --steps 500))
$(eval $(call UNIT_TEST,TESTS,fuzz,tsan,--rounds 6 --steps 500 threads_that_share_blocks trims_and_statistics_in_the_middle,-threads))
$(foreach variant,release debug,$(eval $(call UNIT_TEST,LONG_TESTS,fuzz,$(variant),--seed 0 --rounds 60,-long)))
$(eval $(call UNIT_TEST,LONG_TESTS,fuzz,asan,--seed 0 --rounds 30,-long))
$(eval $(call UNIT_TEST,LONG_TESTS,fuzz,tsan,--seed 0 --rounds 12,-long))

# With the memory profile: with samples, and, where they would be counted as large blocks, with a distance no run reaches;
# and in hardened processes.
$(foreach variant,$(VARIANTS),$(if $(filter $(variant),$(CHECKED)),$(eval LIST := TESTS),$(eval LIST := LONG_TESTS))\
    $(eval $(call UNIT_LOAD,$(LIST),fuzz,$(variant),-profile,CULET_PROFILE=4k,--uncounted 1 --rounds 6 --steps 1000 $(FUZZ_THREADS)))\
    $(foreach level,1 2 3,\
        $(eval $(call UNIT_LOAD,$(LIST),fuzz,$(variant),-hardened-$(level),CULET_HARDEN=$(level),--uncounted 1 --rounds 2 --steps 500))))
$(eval $(call UNIT_LOAD,TESTS,fuzz,$(CHECKED),-unsampled-profile,CULET_PROFILE=1000000g,--rounds 6 --steps 1000 $(FUZZ_THREADS) refusals_in_the_middle))
$(eval $(call UNIT_LOAD,TESTS,failure,$(CHECKED),-profile,CULET_PROFILE=4k FAILURE_STEP=3))
$(foreach variant,$(UNCHECKED),$(eval $(call UNIT_LOAD,LONG_TESTS,failure,$(variant),-profile,CULET_PROFILE=4k FAILURE_STEP=3)))

# Units on kernels with larger pages, as far as this one can be made to look like them (pagesize.c).
$(TEST_BUILD)/pages/%: $(TEST_BUILD)/$(CHECKED)/unit/%.o test/pagesize.c $(TEST_BUILD)/$(CHECKED)/libculet.a $(UNIT_HEADERS) test/unit.mk
	@mkdir -p $(@D)
	$(CC) $(UNIT_CFLAGS) $(VARIANT_$(CHECKED)) -Wl,--wrap=getauxval,--wrap=mmap $(LINK_$*) -o $@ $< test/pagesize.c $(TEST_BUILD)/$(CHECKED)/libculet.a -ldl

PAGE_ARGUMENTS_fuzz := --rounds 6 --steps 1000 $(FUZZ_THREADS) refusals_in_the_middle
# $(call PAGE_TEST,list,program,bytes)
define PAGE_TEST
$(1) += $(2)-page-$(3)
DEPS_$(2)-page-$(3) := $(TEST_BUILD)/pages/$(2)
RUN_$(2)-page-$(3) := env CHECK_PAGE=$(3) $(ENVIRONMENT_$(CHECKED)) $(TEST_BUILD)/pages/$(2) $(PAGE_ARGUMENTS_$(2))
endef
$(foreach unit,pages slab bin large trim stats fuzz,\
    $(eval $(call PAGE_TEST,TESTS,$(unit),65536)) $(eval $(call PAGE_TEST,LONG_TESTS,$(unit),16384)))

# Real limits, with the real library preloaded.
$(TEST_BUILD)/limits: test/limits.c $(CHECK_HEADER) test/unit.mk
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O1 -g -fno-builtin -pthread -Itest $(WARNINGS) -o $@ $< -ldl

TESTS += limits
DEPS_limits := $(TEST_BUILD)/limits $(BUILD)/libculet.so
RUN_limits := env LD_PRELOAD=$(abspath $(BUILD))/libculet.so $(TEST_BUILD)/limits

ifneq ($(shell command -v ruby),)
TESTS += limits-ruby
DEPS_limits-ruby := $(BUILD)/libculet.so test/no_memory.rb
RUN_limits-ruby := env -u RUBYOPT LD_PRELOAD=$(abspath $(BUILD))/libculet.so ruby test/no_memory.rb
endif
