#include "trim/policy.h"

#include <sys/param.h>

void culet_trim_policy_record(struct culet_trim_policy *policy, double ended, double seconds, uint64_t before,
                              uint64_t after)
{
    if (culet_trim_policy_is_ineffective(policy, before))
        policy->ineffective += policy->ineffective < CULET_TRIM_MAX_DOUBLINGS;
    else if (policy->returned_bytes >= policy->settings.minimum_bytes)
        policy->ineffective = 0;
    policy->ended = ended;
    policy->seconds = seconds;
    policy->returned_bytes = before > after ? before - after : 0;
    policy->resident_bytes = after;
    if (policy->returned_bytes >= policy->settings.minimum_bytes)
        policy->unproductive = 0;
    else if (policy->unproductive < CULET_TRIM_MAX_DOUBLINGS)
        policy->unproductive++;
}

uint64_t culet_trim_policy_refaulted(const struct culet_trim_policy *policy, uint64_t resident)
{
    uint64_t grown = resident > policy->resident_bytes ? resident - policy->resident_bytes : 0;

    return MIN(grown, policy->returned_bytes);
}

/* Whether the resident memory has grown so much since the last trim that its result no longer counts. */
static int has_grown(const struct culet_trim_policy *policy, uint64_t resident, uint64_t since)
{
    return resident > since + since / 8 + policy->settings.minimum_bytes;
}

/* Counts refaulted memory at each call, so the interval grows while memory becomes resident again. */
static double cost(const struct culet_trim_policy *policy, uint64_t resident)
{
    return policy->seconds + (double)culet_trim_policy_refaulted(policy, resident) * policy->refault_seconds_per_byte;
}

double culet_trim_policy_interval(const struct culet_trim_policy *policy, uint64_t resident)
{
    double seconds = policy->settings.interval_seconds;

    if (policy->ended == 0)
        return seconds;
    if (policy->unproductive > 1 && !has_grown(policy, resident, policy->resident_bytes))
        seconds *= (double)(1U << (policy->unproductive - 1));
    seconds *= (double)(1U << policy->ineffective);
    seconds = MAX(seconds, CULET_TRIM_COST_SHARE * cost(policy, resident));
    return MAX(policy->settings.interval_seconds, MIN(CULET_TRIM_MAX_INTERVAL_SECONDS, seconds));
}

int culet_trim_policy_is_idle(double idle_since, double time)
{
    return time >= idle_since + CULET_TRIM_IDLE_SECONDS;
}

double culet_trim_policy_due(const struct culet_trim_policy *policy, uint64_t resident, int swept, double idle_since)
{
    double due = idle_since + CULET_TRIM_IDLE_SECONDS;

    if (policy->ended == 0)
        return swept ? idle_since : due;
    due = MAX(due, policy->ended +
                       MIN(CULET_TRIM_IDLE_MAX_INTERVAL_SECONDS, CULET_TRIM_IDLE_COST_SHARE * cost(policy, resident)));
    if (swept)
        due = MIN(due, policy->ended + culet_trim_policy_interval(policy, resident));
    return MAX(due, policy->ended + policy->settings.interval_seconds);
}

int culet_trim_policy_is_ineffective(const struct culet_trim_policy *policy, uint64_t resident)
{
    return policy->returned_bytes >= policy->settings.minimum_bytes &&
           culet_trim_policy_refaulted(policy, resident) > policy->returned_bytes / 2 &&
           !has_grown(policy, resident, policy->resident_bytes + policy->returned_bytes);
}
