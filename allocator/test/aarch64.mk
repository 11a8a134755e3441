# The sources built for aarch64 and run by qemu-user: `make test-aarch64`, and part of `make test-all`.
#
# What the emulator cannot show: it runs aarch64's loads and stores as x86-64's, in the order of the program, so that
# a barrier that is missing is not noticed. Where aarch64 itself is the machine, `make test` is the test.
#
# What is left out, by name, is what the emulator itself does not do:
#   - it takes memory for its translations, which the program's address space and resident pages then show;
#   - in a child forked beside other threads it fails its own assertions ("cpu == current_cpu") when that child starts a
#     thread or forks again: with glibc's malloc in forty of forty children, and on culet the child of a large heap starts
#     the scavenger's;
#   - programs that a program starts run outside of it;
#   - threads that only spin slow a thousand forks down beyond any patience;
#   - it has no seccomp filters;
#   - two threads may not be seen in their arenas within a minute beside other load, which misuses by two threads wait for;
#   - with pages larger than the machine's it does not protect the page of a descriptor, and does not tell which pages are
#     resident;
#   - it answers that it has followed advice on memory (madvise) that it does not follow: to wipe pages in a child, by which a
#     child of a signal handler is known, and to return locked ones.

ARM_CC ?= aarch64-linux-gnu-gcc
ARM_AR ?= aarch64-linux-gnu-ar
ARM_BUILD := $(abspath $(TEST_BUILD))/aarch64
ARM_TESTS :=
ARM_PROGRAMS :=

# In the build for aarch64 this fragment has nothing to add.
ifneq ($(shell $(CC) -dumpmachine 2>/dev/null | cut -d- -f1),aarch64)

# $(call ARM_TEST,name,program[,tests left out,settings,source])
# The names of a program's tests are in its source; where none is left out it runs all by itself.
define ARM_TEST
ARM_TESTS += aarch64-$(1)
ARM_PROGRAMS += $(ARM_BUILD)/test/$(2)
DEPS_aarch64-$(1) := $(ARM_BUILD)/built test/aarch64.sh
RUN_aarch64-$(1) = env $(4) sh test/aarch64.sh $(ARM_BUILD)/test/$(2) \
	$$(if $(3),$$(filter-out $(3),$$(shell sed -n 's/^TEST(\(.*\))$$$$/\1/p' $(5))))
endef
ARM_UNIT = $(eval $(call ARM_TEST,$(1)-$(2)$(5),$(2)/$(1),$(3),$(4),test/unit/$(1).c))
ARM_PROGRAM = $(eval $(call ARM_TEST,$(1),programs/$(1),$(2),EXPECT_CULET=1 "ARM_PRELOAD=$(or $(4),$(ARM_BUILD)/libculet.so)" $(3),test/programs/programs.h test/programs/$(1).c))

ARM_UNITS := $(filter-out arena barrier rings scavenger huge_cache large os signals failure fuzz weak,$(patsubst test/unit/%.c,%,$(wildcard test/unit/*.c)))
$(foreach unit,$(ARM_UNITS),$(call ARM_UNIT,$(unit),debug))
$(call ARM_UNIT,arena,debug,without_membarrier_nobody_keeps_an_arena membarrier_may_be_forbidden_later forks_let_threads_leave_without_membarrier forks_beside_parallel_threads a_child_goes_on_with_the_threads_arena parallel_threads_move_apart)
$(call ARM_UNIT,scavenger,debug,a_forked_child_gets_a_scavenger_of_its_own)
$(call ARM_UNIT,huge_cache,debug,a_forked_child_and_its_parent_each_keep_the_cache)
$(call ARM_UNIT,large,debug,aligned_huge_blocks_leave_no_address_space_behind a_huge_block_without_a_pagemap_entry_is_unmapped)
$(call ARM_UNIT,os,debug,locked_ranges_keep_no_other)
$(call ARM_UNIT,signals,debug,forks_in_handlers_beside_the_scavenger a_child_that_goes_on_is_not_abandoned_by_the_mark_of_its_parent)
$(call ARM_UNIT,failure,release)
ARM_NO_FUZZ := forks_in_the_middle forks_by_a_thread_that_only_forks refusals_and_forks_in_the_middle
$(call ARM_UNIT,fuzz,release,$(ARM_NO_FUZZ))

# The emulator tells programs of any page size, and maps memory at multiples of it.
$(foreach page,16384 65536,\
    $(foreach unit,pages slab trim,$(call ARM_UNIT,$(unit),debug,,ARM_PAGE=$(page),-page-$(page)))\
    $(call ARM_UNIT,bin,debug,a_remote_free_sees_the_holders the_holders_free_sees_a_remote_one the_holders_free_in_a_short_unit_sees_a_remote_one,ARM_PAGE=$(page),-page-$(page))\
    $(call ARM_UNIT,stats,debug,stats_tell_resident_from_untouched_memory,ARM_PAGE=$(page),-page-$(page))\
    $(call ARM_UNIT,large,debug,aligned_huge_blocks_leave_no_address_space_behind a_huge_block_without_a_pagemap_entry_is_unmapped,ARM_PAGE=$(page),-page-$(page))\
    $(call ARM_UNIT,fuzz,release,$(ARM_NO_FUZZ),ARM_PAGE=$(page),-page-$(page)))

# The library itself, preloaded. What programs.mk defines is known only when the tests are run, hence `=`.
ARM_TLS = $(patsubst $(abspath $(TEST_BUILD))/%,$(ARM_BUILD)/test/%,$(TLS_LIBRARIES))
ARM_EARLY = $(patsubst $(abspath $(TEST_BUILD))/%,$(ARM_BUILD)/test/%,$(EARLY))
$(call ARM_PROGRAM,api)
$(call ARM_PROGRAM,conditions,,TLS_LIBRARIES=$$(subst $$(space),:,$$(ARM_TLS)))
$(call ARM_PROGRAM,early,,EARLY_LIBRARIES=$$(subst $$(space),:,$$(ARM_EARLY)),$$(word 1,$$(ARM_EARLY)) $(ARM_BUILD)/libculet.so $$(word 2,$$(ARM_EARLY)))
ARM_NO_SHAPES := burst_of_48 burst_of_1000 burst_of_20000 burst_of_100000 burst_of_5000000 burst_of_an_ended_thread \
	frees_in_a_child_keep_pages_shared_64 frees_in_a_child_keep_pages_shared_256 frees_in_a_child_keep_pages_shared_1024 \
	a_fork_leaves_the_descriptors_shared trim_in_a_child_keeps_pages_shared locked_burst huge_block_that_shrinks
$(call ARM_PROGRAM,shape,$(ARM_NO_SHAPES))
$(call ARM_PROGRAM,fork,fork_with_live_threads threads_fork_at_the_same_time fork_while_threads_only_free fork_while_threads_come_and_go fork_in_many_generations spawn_with_live_threads,FORKS=50)

# Left out: the emulator's [heap] has no name, and three messages name the program's file, which is not the one that runs.
ARM_TESTS += aarch64-misuse
DEPS_aarch64-misuse := $(ARM_BUILD)/built test/aarch64.sh test/programs/misuse.sh
ARM_NO_MISUSES := free_brk free_file_mapping free_static realloc_foreign \
	double_free_remote_remote double_free_remote_local double_free_local_remote double_free_remote_collected \
	double_free_remote_collected_remote realloc_freed_remotely usable_size_freed_remotely
RUN_aarch64-misuse := env ARM_PRELOAD=$(ARM_BUILD)/libculet.so sh test/programs/misuse.sh "" "$(ARM_NO_MISUSES)" \
	$(ARM_BUILD)/test/programs/misuse sh test/aarch64.sh

LONG_TESTS += $(ARM_TESTS)

ARM_BUILT = $(sort $(ARM_PROGRAMS) $(ARM_BUILD)/test/programs/misuse $(ARM_TLS) $(ARM_EARLY))

.PHONY: arm-tools
arm-tools:
	@command -v $(ARM_CC) >/dev/null || { echo "culet test: $(ARM_CC) is not installed, which builds the aarch64 tests; run \`bin/setup all\`, or \`apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user\`." >&2; exit 1; }

$(ARM_BUILD)/built: arm-tools FORCE
	$(MAKE) CC=$(ARM_CC) AR=$(ARM_AR) BUILD=$(ARM_BUILD) libculet $(ARM_BUILT)
	@touch $@

endif

.PHONY: test-aarch64
test-aarch64: $(ARM_TESTS:%=$(TEST_BUILD)/log/%.log)
	@sh test/summary.sh $^
