# The golden files: what must not change by accident. `make golden` accepts what is.

GOLDEN := test/golden
COMPILER := $(shell $(CC) --version 2>/dev/null | sed -n '1s/^[^ ]* //p')
GOLDEN_PROGRAM := $(abspath $(TEST_BUILD))/golden/instructions

$(GOLDEN_PROGRAM): $(GOLDEN)/instructions.c test/golden.mk
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O1 -g -fno-builtin -pthread $(WARNINGS) -o $@ $< -ldl

# The counts depend on the processor's instruction set.
ifeq ($(shell $(CC) -dumpmachine 2>/dev/null | cut -d- -f1),x86_64)
COUNT_INSTRUCTIONS = sh $(GOLDEN)/instructions.sh $(1) $(GOLDEN)/instructions.txt $(GOLDEN_PROGRAM) \
	$(abspath $(BUILD))/libculet.so "$(COMPILER)" "$(CFLAGS)"

TESTS += instructions
DEPS_instructions := $(GOLDEN_PROGRAM) $(BUILD)/libculet.so $(GOLDEN)/instructions.sh
RUN_instructions = $(call COUNT_INSTRUCTIONS,check)
endif

# ---- what the library exports ----

TESTS += exports
DEPS_exports := $(BUILD)/libculet.so $(GOLDEN)/exports.sh
RUN_exports := sh $(GOLDEN)/exports.sh check $(GOLDEN)/exports.txt $(BUILD)/libculet.so

.PHONY: golden
golden: $(DEPS_instructions) $(DEPS_exports)
	$(if $(COUNT_INSTRUCTIONS),$(call COUNT_INSTRUCTIONS,accept))
	sh $(GOLDEN)/exports.sh accept $(GOLDEN)/exports.txt $(BUILD)/libculet.so
