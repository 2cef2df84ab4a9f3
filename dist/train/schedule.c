/* SPDX-License-Identifier: Apache-2.0 */
/* Built-in schedules: functions of a step and the numbers of trama_schedule. */
#include <math.h>

#include "trama_optimizer.h"

static const double pi = 3.14159265358979323846;

/* Goes along a cosine from one value to another as share goes from 0 to 1. */
static double anneal(double from, double to, double share)
{
    return to + (from - to) / 2 * (1 + cos(pi * share));
}

trama_schedule trama_schedule_constant(int64_t warmup)
{
    return (trama_schedule){.warmup = warmup};
}

static double cosine(int64_t n, const double *numbers)
{
    const double steps = numbers[0], floor = numbers[1];
    return anneal(1, floor, fmin((double)n / steps, 1));
}

trama_schedule trama_schedule_cosine(int64_t steps, double floor)
{
    return (trama_schedule){.factor = cosine,
                            .numbers = {(double)steps, floor},
                            .wrong = steps < 1                     ? "cosine takes at least 1 step"
                                     : !(floor >= 0 && floor <= 1) ? "the floor of cosine must be in [0, 1]"
                                                                   : NULL};
}

static double staircase(int64_t n, const double *numbers)
{
    const double every = numbers[0], factor = numbers[1];
    return pow(factor, floor((double)n / every));
}

trama_schedule trama_schedule_step(int64_t every, double factor)
{
    return (trama_schedule){.factor = staircase,
                            .numbers = {(double)every, factor},
                            .wrong = every < 1                           ? "a stair takes at least 1 step"
                                     : !(factor > 0 && isfinite(factor)) ? "the factor of a stair must be above 0"
                                                                         : NULL};
}

static double one_cycle(int64_t n, const double *numbers)
{
    const double last = numbers[0] - 1, top = 0.3 * numbers[0] - 1, at = fmin((double)n, last);
    return at <= top ? anneal(1.0 / 25, 1, at / top) : anneal(1, 1.0 / 25e4, (at - top) / (last - top));
}

trama_schedule trama_schedule_one_cycle(int64_t steps)
{
    return (trama_schedule){.factor = one_cycle,
                            .numbers = {(double)steps},
                            .wrong = steps < 2 ? "one cycle takes at least 2 steps" : NULL};
}
