#include "profile/internals.h"

#include <dlfcn.h>
#include <ruby/version.h>
#include <stdio.h>
#include <sys/mman.h>

#include "common/active_malloc.h"
#include "sampler/core/readable.h"

#define WORDS 3 /* flags, and what identifies the slot */
#define IMEMO_MASK 15

struct internal {
    VALUE slot, words[WORDS];
    uint32_t sample;
};

typedef const char *name_function(int kind);

static name_function *imemo_name; /* NULL: this Ruby does not tell */
static struct {
    struct internal *list;
    size_t count, capacity;
} internals;

/* Up to Ruby 3.3 they have these numbers. */
#if RUBY_API_VERSION_MAJOR == 3 && RUBY_API_VERSION_MINOR < 4
static const char *known_name(unsigned kind)
{
    static const char *const names[] = {"env",       "cref",      "svar",   "throw_data", "ifunc",          "memo",
                                        "ment",      "iseq",      "tmpbuf", "ast",        "parser_strterm", "callinfo",
                                        "callcache", "constcache"};

    return kind < sizeof(names) / sizeof(*names) ? names[kind] : NULL;
}
#else
static const char *known_name(unsigned kind)
{
    return NULL;
}
#endif

void culet_internals_prepare(void)
{
    void *pointer = dlsym(RTLD_DEFAULT, "rb_imemo_name");

    AS_FUNCTION(name_function, function, pointer);
    imemo_name = function;
}

bool culet_internals_has(VALUE slot)
{
    int type = RB_BUILTIN_TYPE(slot);

    return type == T_IMEMO || type == T_ICLASS;
}

static unsigned kind_of(VALUE flags)
{
    return (unsigned)(flags >> FL_USHIFT) & IMEMO_MASK;
}

bool culet_internals_same_kind(VALUE one, VALUE other)
{
    return kind_of(RBASIC(one)->flags) == kind_of(RBASIC(other)->flags);
}

size_t culet_internals_name(VALUE slot, char *name, size_t size)
{
    unsigned kind = kind_of(RBASIC(slot)->flags);
    const char *known = imemo_name != NULL ? imemo_name((int)kind) : known_name(kind);

    if (RB_BUILTIN_TYPE(slot) == T_ICLASS)
        return (size_t)snprintf(name, size, "T_ICLASS");
    if (known == NULL)
        return (size_t)snprintf(name, size, "T_IMEMO");
    return (size_t)snprintf(name, size, "T_IMEMO (%s)", strncmp(known, "imemo_", 6) == 0 ? known + 6 : known);
}

bool culet_internals_has_room(void)
{
    size_t capacity = internals.capacity == 0 ? 1024 : internals.capacity * 2,
           bytes = capacity * sizeof(*internals.list);
    void *list;

    if (internals.count < internals.capacity)
        return true;
    list = internals.list == NULL
               ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
               : mremap(internals.list, internals.capacity * sizeof(*internals.list), bytes, MREMAP_MAYMOVE);
    if (list == MAP_FAILED)
        return false;
    internals.list = list;
    internals.capacity = capacity;
    return true;
}

void culet_internals_add(VALUE slot, uint32_t sample)
{
    struct internal *internal = &internals.list[internals.count++];

    internal->slot = slot;
    internal->sample = sample;
    memcpy(internal->words, (const void *)slot, sizeof(internal->words));
}

void culet_internals_start(void)
{
    internals.count = 0;
}

static VALUE identity(VALUE flags)
{
    return (flags & RUBY_T_MASK) | (VALUE)kind_of(flags) << 8;
}

/* The page of the slot may have been unmapped. */
static bool is_there(const struct internal *internal)
{
    struct culet_readable readable = {{0}};
    VALUE words[WORDS];

    return culet_readable_copy(&readable, words, internal->slot, sizeof(words)) && words[1] == internal->words[1] &&
           words[2] == internal->words[2] &&
           ((internal->words[0] & RUBY_T_MASK) == T_ICLASS ? (words[0] & RUBY_T_MASK) == T_ICLASS
                                                           : identity(words[0]) == identity(internal->words[0]));
}

void culet_internals_check(const struct culet_profile_api *api)
{
    size_t kept = 0;

    for (size_t i = 0; i < internals.count; i++) {
        if (is_there(&internals.list[i]))
            internals.list[kept++] = internals.list[i];
        else
            api->remove(internals.list[i].sample);
    }
    internals.count = kept;
}
