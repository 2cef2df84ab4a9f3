/* SPDX-License-Identifier: Apache-2.0 */
/* How many tiles the result of an op is cut into, and on which workers these are computed. */
#include "one_place.h"
#include "suite.h"
#include "trama_array.h"

static double flops(const plan *plan_)
{
    double all = 0;
    for (int i = 0; i < plan_->steps.n; i++)
        all += plan_->steps.at[i].flops;
    return all;
}

/* Fine grain: as many tiles as workers, rows of the result, each on a worker of its own. */
START_TEST(a_product_is_cut_into_as_many_tiles_as_a_place_has_workers)
{
    const plan *got = PLAN(3, &fine, trama_matmul(x, w));
    ck_assert_int_eq(computes(got), 3);
    ck_assert_int_eq(lanes_used(got), 7);
    ck_assert_double_eq(flops(got), 2.0 * 12 * 8 * 8);
}
END_TEST

START_TEST(ways_fix_the_number_of_tiles_and_coarse_grain_leaves_one)
{
    plan_options two = fine;
    two.max_tiles = 2;
    trama_value *y = trama_matmul(x, w);
    ck_assert_int_eq(computes(PLAN(3, &two, y)), 2);
    ck_assert_int_eq(computes(PLAN(3, &fine, y)), 3);
    ck_assert_int_eq(computes(PLAN(3, &coarse, y)), 1);
}
END_TEST

/* The tiles of a reduced dim would each hold a part of the sum: a contraction is never cut. */
START_TEST(a_sum_of_everything_is_one_step)
{
    const plan *got = PLAN(4, &fine, trama_sum(x));
    ck_assert_int_eq(computes(got), 1);
}
END_TEST

START_TEST(unequal_boxes_on_one_place_share_its_workers)
{
    trama_shard(x, mesh, "S(0)");
    const plan *got = PLAN(4, &fine, trama_neg(x));
    ck_assert_int_eq(computes(got), 4); /* two of each process */
    ck_assert_int_eq(lanes_used(got), 15);
}
END_TEST

/* 6,144 bytes are read, and 256 are written, which are four cache lines. */
START_TEST(workers_share_a_sum_of_rows_that_reads_16_grains)
{
    static const double terms[24 * 32] = {1, 2, 3};
    static const struct {
        int64_t grain;
        int tiles;
    } cases[] = {{6144, 1}, {385, 1}, {384, 4}, {32, 8}};
    trama_value *y = trama_sum_over(trama_constant(p, TRAMA_F64, TRAMA_SHAPE(24, 32), terms), TRAMA_DIMS(0), false);
    for (int i = 0; i < 4; i++) {
        const plan_options options = {.grain_flops = 1 << 30, .grain_bytes = cases[i].grain};
        ck_assert_msg(computes(PLAN(8, &options, y)) == cases[i].tiles, "grain of %d bytes", (int)cases[i].grain);
    }
}
END_TEST

/* 128 bytes of the 512 of w are read, and written: grains of 32 bytes are four, w is 16. */
START_TEST(rows_that_an_index_does_not_take_are_worth_no_tile)
{
    static const int64_t rows[] = {5, 2};
    const plan_options options = {.grain_flops = 1 << 30, .grain_bytes = 32};
    trama_value *taken = trama_gather(w, trama_constant(p, TRAMA_I64, TRAMA_SHAPE(2), rows), 0);
    ck_assert_int_eq(computes(PLAN(8, &options, taken)), 4);
}
END_TEST

/* Its gradient also makes the other lines, of zeros. */
START_TEST(an_index_works_on_the_lines_that_it_takes)
{
    static const int64_t rows[] = {5, 2};
    trama_value *taken = trama_gather(w, trama_constant(p, TRAMA_I64, TRAMA_SHAPE(2), rows), 0);
    trama_value *gradient = trama_gradient(trama_sum_square(taken), w);
    ck_assert_double_eq(flops(PLAN(1, &coarse, taken)), 2 * 8);
    const plan *got = PLAN(1, &coarse, gradient);
    ck_assert_double_eq(got->steps.at[got->steps.n - 1].flops, (8 + 2) * 8);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        a_product_is_cut_into_as_many_tiles_as_a_place_has_workers,
        ways_fix_the_number_of_tiles_and_coarse_grain_leaves_one,
        a_sum_of_everything_is_one_step,
        unequal_boxes_on_one_place_share_its_workers,
        workers_share_a_sum_of_rows_that_reads_16_grains,
        rows_that_an_index_does_not_take_are_worth_no_tile,
        an_index_works_on_the_lines_that_it_takes,
    };
    return suite_run("tiles", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
