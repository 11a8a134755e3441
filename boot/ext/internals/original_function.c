/* Ruby has no call for this, but the pointers exist: Method object -> method entry -> definition -> function. Their
 * offsets are found by searching two methods defined here for their known functions; two, to exclude coincidence.
 * Memory is read through the kernel, so that following a word that is no pointer is harmless. */
#include "internals/original_function.h"

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define WORDS 8

/* From Ruby 3.3 on the data may be embedded in the slot. */
#ifndef HAVE_RTYPEDDATA_GET_DATA
#define RTYPEDDATA_GET_DATA(object) RTYPEDDATA_DATA(object)
#endif

struct offsets {
    int entry, definition, function; /* in words */
};

static VALUE probe_first(VALUE self, VALUE argument)
{
    return argument;
}

static VALUE probe_second(VALUE self, VALUE argument)
{
    return self;
}

static int read_words(const void *from, uintptr_t *words)
{
    struct iovec ours = {words, WORDS * sizeof(*words)}, theirs = {(void *)(uintptr_t)from, WORDS * sizeof(*words)};

    if (from == NULL || (uintptr_t)from % sizeof(*words) != 0)
        return 0;
    return process_vm_readv(getpid(), &ours, 1, &theirs, 1, 0) == (ssize_t)ours.iov_len;
}

static const void *method_data(VALUE module, const char *name)
{
    return RTYPEDDATA_GET_DATA(rb_obj_method(module, ID2SYM(rb_intern(name))));
}

static void *follow(const void *data, const struct offsets *offsets)
{
    uintptr_t method[WORDS], entry[WORDS], definition[WORDS];

    if (!read_words(data, method) || !read_words((void *)method[offsets->entry], entry))
        return NULL;
    return read_words((void *)entry[offsets->definition], definition) ? (void *)definition[offsets->function] : NULL;
}

/* Tries all offsets. */
static int find_offsets(const void *first, void *first_function, const void *second, void *second_function,
                        struct offsets *offsets)
{
    for (offsets->entry = 0; offsets->entry < WORDS; offsets->entry++)
        for (offsets->definition = 0; offsets->definition < WORDS; offsets->definition++)
            for (offsets->function = 0; offsets->function < WORDS; offsets->function++)
                if (follow(first, offsets) == first_function && follow(second, offsets) == second_function)
                    return 1;
    return 0;
}

static int same_library(const void *first, const void *second)
{
    Dl_info first_info, second_info;

    return dladdr(first, &first_info) != 0 && dladdr(second, &second_info) != 0 &&
           first_info.dli_fbase == second_info.dli_fbase;
}

void *culet_original_function(VALUE module, const char *name)
{
    VALUE (*first)(VALUE, VALUE) = probe_first;
    VALUE (*second)(VALUE, VALUE) = probe_second;
    VALUE (*known)(VALUE, VALUE) = rb_f_require;
    void *first_function, *second_function, *known_function, *found;
    VALUE probe = rb_module_new();
    VALUE method = rb_obj_method(module, ID2SYM(rb_intern(name)));
    struct offsets offsets;

    memcpy(&first_function, &first, sizeof(first));
    memcpy(&second_function, &second, sizeof(second));
    memcpy(&known_function, &known, sizeof(known));
    if (!NIL_P(rb_funcall(method, rb_intern("source_location"), 0)))
        return NULL;
    rb_define_singleton_method(probe, "one", probe_first, 1);
    rb_define_singleton_method(probe, "other", probe_second, 1);
    if (!find_offsets(method_data(probe, "one"), first_function, method_data(probe, "other"), second_function,
                      &offsets))
        return NULL;
    found = follow(RTYPEDDATA_GET_DATA(method), &offsets);
    return found != NULL && same_library(found, known_function) ? found : NULL;
}
