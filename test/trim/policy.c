/* Prints the policy's answers: policy INTERVAL MINIMUM, then any of
 *   record ENDED SECONDS BEFORE AFTER | interval RESIDENT | refaulted RESIDENT | ineffective RESIDENT |
 *   due RESIDENT SWEPT IDLE_SINCE | idle IDLE_SINCE TIME
 * with a line for each question. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trim/policy.h"

static int at, count;
static char **words;

static double number(void)
{
    if (at >= count)
        exit(2);
    return strtod(words[at++], NULL);
}

int main(int argc, char **argv)
{
    struct culet_trim_policy policy = {0};

    count = argc, words = argv, at = 1;
    policy.settings.interval_seconds = number();
    policy.settings.minimum_bytes = (uint64_t)number();
    policy.refault_seconds_per_byte = 1e-6 / 4096;
    while (at < count) {
        const char *word = words[at++];
        if (strcmp(word, "record") == 0) {
            double ended = number(), seconds = number(), before = number(), after = number();
            culet_trim_policy_record(&policy, ended, seconds, (uint64_t)before, (uint64_t)after);
        } else if (strcmp(word, "interval") == 0) {
            printf("%.6f\n", culet_trim_policy_interval(&policy, (uint64_t)number()));
        } else if (strcmp(word, "refaulted") == 0) {
            printf("%llu\n", (unsigned long long)culet_trim_policy_refaulted(&policy, (uint64_t)number()));
        } else if (strcmp(word, "ineffective") == 0) {
            printf("%d\n", culet_trim_policy_is_ineffective(&policy, (uint64_t)number()));
        } else if (strcmp(word, "due") == 0) {
            double resident = number(), swept = number(), idle_since = number();
            printf("%.6f\n", culet_trim_policy_due(&policy, (uint64_t)resident, (int)swept, idle_since));
        } else if (strcmp(word, "idle") == 0) {
            double idle_since = number(), time = number();
            printf("%d\n", culet_trim_policy_is_idle(idle_since, time));
        } else {
            return 2;
        }
    }
    return 0;
}
