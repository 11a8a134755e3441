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
TESTS += api-glibc cxx-glibc
DEPS_api-glibc := $(TEST_BUILD)/programs/api
RUN_api-glibc := $(TEST_BUILD)/programs/api
DEPS_cxx-glibc := $(TEST_BUILD)/programs/cxx
RUN_cxx-glibc := $(TEST_BUILD)/programs/cxx
