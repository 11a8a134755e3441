/* Redirects the calls of realpath that this program makes, and those alone. */
#include "feature_index/plt_hook.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *replacement(const char *path, char *answer)
{
    (void)path;
    return strcpy(answer, "replaced");
}

static const char *resolve(const char *path)
{
    static char answer[PATH_MAX];

    return realpath(path, answer);
}

int main(void)
{
    printf("%s ", resolve("/"));
    printf("%d ",
           culet_plt_hook((const void *)main, "realpath", (culet_function *)realpath, (culet_function *)replacement));
    printf("%s ", resolve("/"));
    printf("%d\n",
           culet_plt_hook((const void *)main, "nothing", (culet_function *)realpath, (culet_function *)replacement));
    return 0;
}
