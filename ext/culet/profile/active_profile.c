#include "profile/active_profile.h"

#include <dlfcn.h>

#include "sampler/core/samples.h"

const struct culet_profile_api *culet_active_profile;

void culet_active_profile_find(void)
{
    const struct culet_profile_api *exported = dlsym(RTLD_DEFAULT, "culet_profile_api");

    culet_active_profile =
        exported != NULL && exported->version == CULET_PROFILE_VERSION ? exported : &culet_profile_api;
}
