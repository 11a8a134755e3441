#include "trim/policy.h"

/*
 * A trim costs its own time, and a page fault for each page that comes back: then it has gained nothing. Both together
 * may take a hundredth of the time, so the next trim waits for a hundred times what the last one cost. As what comes back
 * is counted anew whenever it is asked, the wait grows while memory comes back.
 */
#define SHARE 100

/* The longest that it backs off. */
#define LONGEST_SECONDS 60.0

/*
 * Where no collection has begun for so long the program is at rest, and what it has freed is not wanted at once. A trim
 * is due then however far it has backed off, but for this: trims of a program that rests every now and then may take a
 * tenth of the time, and wait no longer than so many seconds for that: what is free goes back within a second of the
 * last collection. With 5 s instead of 0.5, `threads` ended its last second with what its last collection had freed.
 */
#define REST_SECONDS 0.3
#define REST_SHARE 10
#define REST_LONGEST_SECONDS 0.5

/* After how many fruitless trims the wait does not double any more; and how many times where what they give back comes
 * straight back: beyond the longest wait. */
#define MOST_DOUBLINGS 8

static double
least(double one, double other)
{
  return one < other ? one : other;
}

static double
most(double one, double other)
{
  return one > other ? one : other;
}

void
culet_trim_policy_record(struct culet_trim_policy *policy, double ended, double seconds, uint64_t before, uint64_t after)
{
  if (culet_trim_policy_is_ineffective(policy, before)) policy->ineffective += policy->ineffective < MOST_DOUBLINGS;
  else if (policy->returned_bytes >= policy->settings.minimum_bytes) policy->ineffective = 0;
  policy->ended = ended;
  policy->seconds = seconds;
  policy->returned_bytes = before > after ? before - after : 0;
  policy->resident_bytes = after;
  if (policy->returned_bytes >= policy->settings.minimum_bytes) policy->unproductive = 0;
  else if (policy->unproductive < MOST_DOUBLINGS) policy->unproductive++;
}

uint64_t
culet_trim_policy_refaulted(const struct culet_trim_policy *policy, uint64_t resident)
{
  uint64_t grown = resident > policy->resident_bytes ? resident - policy->resident_bytes : 0;

  return grown < policy->returned_bytes ? grown : policy->returned_bytes;
}

/*
 * Whether so much more is resident than was left after the last trim, or there was before it, that what that one found
 * does not count any more.
 */
static int
has_grown(const struct culet_trim_policy *policy, uint64_t resident, uint64_t since)
{
  return resident > since + since / 8 + policy->settings.minimum_bytes;
}

static double
cost(const struct culet_trim_policy *policy, uint64_t resident)
{
  return policy->seconds + (double)culet_trim_policy_refaulted(policy, resident) * policy->refault_seconds_per_byte;
}

double
culet_trim_policy_interval(const struct culet_trim_policy *policy, uint64_t resident)
{
  double seconds = policy->settings.interval_seconds;

  if (policy->ended == 0) return seconds;
  if (policy->unproductive > 1 && !has_grown(policy, resident, policy->resident_bytes)) seconds *= (double)(1U << (policy->unproductive - 1));
  seconds *= (double)(1U << policy->ineffective);
  return most(policy->settings.interval_seconds, least(LONGEST_SECONDS, most(seconds, SHARE * cost(policy, resident))));
}

int
culet_trim_policy_is_idle(double idle_since, double time)
{
  return time >= idle_since + REST_SECONDS;
}

double
culet_trim_policy_due(const struct culet_trim_policy *policy, uint64_t resident, int swept, double idle_since)
{
  double due = idle_since + REST_SECONDS;

  if (policy->ended == 0) return swept ? idle_since : due;
  due = most(due, policy->ended + least(REST_LONGEST_SECONDS, REST_SHARE * cost(policy, resident)));
  if (swept) due = least(due, policy->ended + culet_trim_policy_interval(policy, resident));
  return most(due, policy->ended + policy->settings.interval_seconds);
}

int
culet_trim_policy_is_ineffective(const struct culet_trim_policy *policy, uint64_t resident)
{
  return policy->returned_bytes >= policy->settings.minimum_bytes &&
         culet_trim_policy_refaulted(policy, resident) > policy->returned_bytes / 2 &&
         !has_grown(policy, resident, policy->resident_bytes + policy->returned_bytes);
}
