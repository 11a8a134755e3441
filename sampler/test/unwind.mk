# Libraries for the tests of the unwinder, and its tests in further builds: with the list of modules that glibc before
# 2.35 needs, and for aarch64, run by qemu-user.
#
#   make test-aarch64      the tests of the unwinder on aarch64; part of `make test-all`

UNWIND_TESTS := $(filter unwind%,$(TESTS))
# Alike but for the frames of their functions, so that they are loaded at the same address one after the other.
UNWIND_LIBRARIES := small large pointer
UNWIND_small := -DFRAME=512 -fomit-frame-pointer
UNWIND_large := -DFRAME=1024 -fomit-frame-pointer
UNWIND_pointer := -DFRAME=64 -fno-omit-frame-pointer

# $(call UNWIND_BUILD,folder)
define UNWIND_BUILD
$(BUILD)/$(1)/unwind-%.so: test/unwind/library.c Makefile test/unwind.mk
	@mkdir -p $$(@D)
	$(CC) -std=gnu11 -O2 -g -fPIC -shared -Wl,--build-id $(WARNINGS) $$(UNWIND_$$*) -o $$@ $$<

$(UNWIND_TESTS:%=$(BUILD)/$(1)/%): $(UNWIND_LIBRARIES:%=$(BUILD)/$(1)/unwind-%.so)
endef
$(foreach variant,$(VARIANTS),$(eval $(call UNWIND_BUILD,$(variant))))

VARIANT_list := -O2 -DCULET_MODULES_BY_LIST
$(eval $(call VARIANT,list))
$(eval $(call UNWIND_BUILD,list))
PROGRAMS += $(UNWIND_TESTS:%=$(BUILD)/list/%)

ARM_CC ?= aarch64-linux-gnu-gcc
ARM_BUILD := $(BUILD)/aarch64
ARM_PROGRAMS := $(foreach variant,release list,$(UNWIND_TESTS:%=$(ARM_BUILD)/$(variant)/%))
# The emulator maps no library where another one was unmapped; the others are tests of x86-64's code.
ARM_WITHOUT := a_library_in_the_place_of_another_one signals_at_every_instruction generated_code \
	signal_handlers_of_programs_that_return_by_themselves
.PHONY: test-aarch64
ifneq ($(shell $(CC) -dumpmachine 2>/dev/null | cut -d- -f1),aarch64)
test-all: test-aarch64
test-aarch64:
	@command -v $(ARM_CC) >/dev/null || { echo "culet test: $(ARM_CC) is not installed, which builds the aarch64 tests; run \`bin/setup all\`, or \`apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user\`." >&2; exit 1; }
	@$(MAKE) --no-print-directory CC=$(ARM_CC) BUILD=$(ARM_BUILD) $(ARM_PROGRAMS)
	@failed=; for program in $(ARM_PROGRAMS); do echo "# $${program#$(BUILD)/}"; \
	  sh $(CHECK)/aarch64.sh $$program $$(sed -n 's/^TEST(\(.*\))$$/\1/p' test/$${program##*/}.c | \
	    grep -v -x $(ARM_WITHOUT:%=-e %)) || failed=1; \
	  done; test -z "$$failed"
endif
