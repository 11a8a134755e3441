#include "common/imemo.h"

#include <ruby/version.h>
#include <string.h>

#include "common/active_malloc.h"

typedef const char *name_function(int kind);

/* Up to "iseq" the kinds have these numbers in all versions, the others up to Ruby 3.3. */
static const char *known_name(unsigned kind)
{
    static const char *const names[] = {"env",       "cref",      "svar",   "throw_data", "ifunc",          "memo",
                                        "ment",      "iseq",      "tmpbuf", "ast",        "parser_strterm", "callinfo",
                                        "callcache", "constcache"};
    const unsigned known = RUBY_API_VERSION_MAJOR == 3 && RUBY_API_VERSION_MINOR < 4 ? 14 : 8;

    return kind < known ? names[kind] : NULL;
}

/* rb_imemo_name ends the process on numbers that no kind has. */
static const char *find_name(unsigned kind)
{
    CULET_OF_ANY(name_function, function, "rb_imemo_name");

    if (function == NULL)
        return known_name(kind);
    const char *name = function((int)kind);
    return strncmp(name, "imemo_", strlen("imemo_")) == 0 ? name + strlen("imemo_") : name;
}

const char *culet_imemo_name(unsigned kind)
{
    static const char *names[CULET_IMEMO_KINDS];

    if (names[kind] == NULL)
        names[kind] = find_name(kind);
    return names[kind];
}
