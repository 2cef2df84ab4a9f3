/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that end on a value of the device, on several ranks. */
#include "watching.h"

START_TEST(it_starts)
{
    start();
}
END_TEST

START_TEST(each_call_hands_out_what_was_read_so_many_calls_ago)
{
    for (int lag = 0; lag <= 5; lag++) {
        values_come_late("2", "S(0)", lag);
        values_come_late("3", "R", lag);
    }
    values_come_late("2,2", "S(0),S(0)", 3);
    values_come_late("1:1", "R", 2);
}
END_TEST

START_TEST(all_ranks_leave_the_loop_at_one_step)
{
    for (int lag = 0; lag <= 4; lag++)
        loops_end_lag_steps_late("4", "S(0)", lag);
}
END_TEST

START_TEST(long_loops_do_not_grow)
{
    watching_does_not_grow("2", "S(0)", 2, SANITIZED ? 300 : 2000);
}
END_TEST

START_TEST(a_rank_may_want_nothing)
{
    ranks_may_decline();
}
END_TEST

START_TEST(eager_values_are_watched_too)
{
    for (int lag = 0; lag <= 3; lag++)
        eager_steps_are_watched("2", lag);
}
END_TEST

START_TEST(it_stops)
{
    stop();
}
END_TEST

TESTS(it_starts, each_call_hands_out_what_was_read_so_many_calls_ago, all_ranks_leave_the_loop_at_one_step,
      long_loops_do_not_grow, a_rank_may_want_nothing, eager_values_are_watched_too, it_stops)
