# Parts of the reader by themselves: all but main.c in a library, under the sanitizers.

UNIT_CFLAGS := -std=gnu11 -pthread -Isrc -I$(CHECK) $(WARNINGS) -O1 -g -fno-omit-frame-pointer \
               -fsanitize=address,undefined -fno-sanitize-recover=all
UNIT_OBJECTS := $(patsubst src/%.c,$(TEST_BUILD)/unit/src/%.o,$(filter-out src/main.c,$(wildcard src/*.c)))

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
