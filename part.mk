# Shared by the Makefiles of the parts in C: the folder of a build, the C library, and the warnings.
#
#   LIBC=musl              builds for musl, by Debian's musl-gcc; the default folder is build/musl then

ifeq ($(LIBC),musl)
CC := musl-gcc
BUILD ?= build/musl
else
BUILD ?= build
endif
# make ends a file name at a space, and the loader ends the name of a preloaded library at a space or a colon.
ifneq ($(words $(CURDIR) $(BUILD)),2)
$(error "$(CURDIR)" or "$(BUILD)" has a space in it, which make cannot handle: move the checkout, or the folder of gems, to a path without one)
endif
# Absolute, so that a file has one name wherever a rule mentions it.
override BUILD := $(abspath $(BUILD))
CFLAGS ?= -O2 -g

# musl-gcc knows musl's headers only. The kernel's are added by links, because glibc's are in the same folders.
# Its linker makes no table of frames unless asked to; the compilers of musl's distributions ask.
ifeq ($(LIBC),musl)
KERNEL_HEADERS := $(BUILD)/kernel-headers
$(shell mkdir -p $(KERNEL_HEADERS) && ln -sfn /usr/include/linux /usr/include/asm-generic $(KERNEL_HEADERS) && \
  ln -sfn $(firstword $(wildcard /usr/include/asm /usr/include/$(shell uname -m)-linux-gnu/asm)) $(KERNEL_HEADERS)/asm)
CC += -idirafter $(KERNEL_HEADERS) -Wl,--eh-frame-hdr
endif
WARNINGS = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla

.PHONY: clean
clean:
	rm -rf $(BUILD)
# The default is what a part names first.
.DEFAULT_GOAL :=
