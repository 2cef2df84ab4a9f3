/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers of runs, in one rank and over ranks: the same on each of them. */
#include "drawing.h"

static const char *const layouts_tried[][2] = {
    {"1", "R"}, {"dp=2", "S(0)"}, {"dp=3", "S(1)"}, {"dp=2,mp=2", "S(0),S(1)"}, {"dp=8", "S(0)"}};
enum { N_TRIED = sizeof layouts_tried / sizeof *layouts_tried };

START_TEST(every_run_draws_the_numbers_of_its_step)
{
    start();
    for (int i = 0; i < N_TRIED; i++)
        demand_runs(layouts_tried[i][0], layouts_tried[i][1]);
    stop();
}
END_TEST

START_TEST(a_restored_counter_continues_the_sequence)
{
    start();
    for (int i = 0; i < N_TRIED; i++)
        demand_restored(layouts_tried[i][0], layouts_tried[i][1]);
    stop();
}
END_TEST

START_TEST(two_meshes_share_the_counter)
{
    start();
    demand_meshes("a=2", "b=3");
    demand_meshes("a=3:2,0,1", "b=2");
    demand_meshes("a=2", "b=1:1");
    stop();
}
END_TEST

START_TEST(micro_steps_draw_other_numbers)
{
    start();
    for (int late = 0; late < 2; late++) {
        demand_micro_steps("1", late);
        demand_micro_steps("dp=2", late);
        demand_micro_steps("dp=3", late);
    }
    stop();
}
END_TEST

START_TEST(eager_programs_draw_at_each_call)
{
    start();
    demand_eager("1");
    demand_eager("dp=2");
    demand_eager("dp=3");
    stop();
}
END_TEST

TESTS(every_run_draws_the_numbers_of_its_step, a_restored_counter_continues_the_sequence, two_meshes_share_the_counter,
      micro_steps_draw_other_numbers, eager_programs_draw_at_each_call)
