# Shared by the Makefiles of allocator/, scope/, trace/ and syscall_counter/: the folder of a build, and the warnings.

BUILD ?= build
# make ends a file name at a space, and the loader ends the name of a preloaded library at a space or a colon.
ifneq ($(words $(CURDIR) $(BUILD)),2)
$(error "$(CURDIR)" or "$(BUILD)" has a space in it, which make cannot handle: move the checkout, or the folder of gems, to a path without one)
endif
# Absolute, so that a file has one name wherever a rule mentions it.
override BUILD := $(abspath $(BUILD))
CFLAGS ?= -O2 -g
WARNINGS = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
