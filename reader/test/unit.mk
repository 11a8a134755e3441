# Unit tests: everything but main.c in a library, under the sanitizers.

# gcc has no sanitizers for musl.
ifneq ($(LIBC),musl)
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all
endif
UNIT_CFLAGS := -std=gnu11 -pthread $(INCLUDES) -I$(CHECK) $(WARNINGS) -O1 -g1 -fno-omit-frame-pointer $(SANITIZE)
UNIT_OBJECTS := $(patsubst src/%.c,$(TEST_BUILD)/unit/src/%.o,$(filter-out src/main.c,$(SOURCES)))

$(TEST_BUILD)/unit/src/%.o: src/%.c $(HEADERS) test/unit.mk
	@mkdir -p $(@D)
	$(CC) $(UNIT_CFLAGS) -c -o $@ $<

$(TEST_BUILD)/unit/libscope.a: $(UNIT_OBJECTS)
	@rm -f $@
	$(AR) rcs $@ $^

$(TEST_BUILD)/unit/%: test/unit/%.c $(TEST_BUILD)/unit/libscope.a $(CHECK)/check.h
	@mkdir -p $(@D)
	$(CC) $(UNIT_CFLAGS) -o $@ $< $(TEST_BUILD)/unit/libscope.a

TESTS += $(patsubst test/unit/%.c,$(TEST_BUILD)/unit/%,$(wildcard test/unit/*.c))

# Hostile processes: the whole reader under the sanitizers, as a function of a program that reads many of them.
LIBCULET := $(abspath ../allocator)/build/libculet.so

$(LIBCULET):
	$(MAKE) --no-print-directory -C ../allocator

$(TEST_BUILD)/hostile/main.o: src/main.c $(HEADERS) test/unit.mk
	@mkdir -p $(@D)
	$(CC) $(UNIT_CFLAGS) -Wno-missing-prototypes -Dmain=culet_scope_main -c -o $@ $<

$(TEST_BUILD)/hostile/%: test/hostile/%.c $(wildcard test/hostile/*.h) test/reader.h $(TEST_BUILD)/hostile/main.o $(TEST_BUILD)/unit/libscope.a $(CHECK)/check.h $(LIBCULET) $(TARGETS)
	@mkdir -p $(@D)
	$(CC) $(UNIT_CFLAGS) -Itest -DSCOPE='"$(BUILD)/culet-scope"' -DTARGETS='"$(TEST_BUILD)/targets"' -DLIBCULET='"$(LIBCULET)"' \
	    -o $@ $< $(TEST_BUILD)/hostile/main.o $(TEST_BUILD)/unit/libscope.a

ifneq ($(LIBC),musl)
TESTS += $(patsubst test/hostile/%.c,$(TEST_BUILD)/hostile/%,$(wildcard test/hostile/*.c))
endif
