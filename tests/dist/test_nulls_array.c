/* SPDX-License-Identifier: Apache-2.0 */
/* NULL for every pointer of every function of trama_array.h. */
#include "null_program.h"
#include "trama_array.h"

#define W TRAMA_HERE

static trama_value *index_of_rows(void)
{
    return trama_cast(trama_arange(p, TRAMA_I64, 4, 0, 1), TRAMA_I32);
}

START_TEST(elements_by_index)
{
    trama_value *index = index_of_rows();
    PASSES(trama_gather_at(W, NULL, index, 0));
    PASSES(trama_gather_at(W, x, NULL, 0));
    PASSES(trama_embedding_at(W, NULL, index));
    PASSES(trama_embedding_at(W, x, NULL));
    PASSES(trama_gather_along_at(W, NULL, index, 0));
    PASSES(trama_gather_along_at(W, x, NULL, 0));
    PASSES(trama_gather_nd_at(W, NULL, index, 0));
    PASSES(trama_gather_nd_at(W, x, NULL, 0));
    PASSES(trama_scatter_at(W, NULL, index, x, 0, TRAMA_SCATTER_SET));
    PASSES(trama_scatter_at(W, x, NULL, x, 0, TRAMA_SCATTER_ADD));
    PASSES(trama_scatter_at(W, x, index, NULL, 0, TRAMA_SCATTER_SET));
    PASSES(trama_scatter_along_at(W, NULL, index, x, 0, TRAMA_SCATTER_SET));
    PASSES(trama_scatter_along_at(W, x, NULL, x, 0, TRAMA_SCATTER_ADD));
    PASSES(trama_scatter_along_at(W, x, index, NULL, 0, TRAMA_SCATTER_SET));
    PASSES(trama_scatter_nd_at(W, NULL, index, x, TRAMA_SCATTER_SET));
    PASSES(trama_scatter_nd_at(W, x, NULL, x, TRAMA_SCATTER_SET));
    PASSES(trama_scatter_nd_at(W, x, index, NULL, TRAMA_SCATTER_SET));
}
END_TEST

START_TEST(joins_and_parts)
{
    trama_value *two[] = {x, NULL};
    PASSES(trama_concat_at(W, 0, 2, two));
    SAYS(NULL, trama_concat_at(W, 0, 2, NULL));
    PASSES(trama_einsum_at(W, "ij,ij", 2, two));
    SAYS(NULL, trama_einsum_at(W, "ij", 1, NULL));
    SAYS(p, trama_einsum_at(W, NULL, 1, two));
    PASSES(trama_stack_at(W, 0, 2, two));
    SAYS(NULL, trama_stack_at(W, 0, 2, NULL));
    PASSES(trama_part_at(W, NULL, 0, 2, 0));
    PASSES(trama_slice_by_at(W, NULL, 0, 0, 1, 1));
    PASSES(trama_diagonal_at(W, NULL, 0));
}
END_TEST

START_TEST(arrangements)
{
    SAYS(p, trama_flip_at(W, x, 1, NULL));
    PASSES(trama_flip_at(W, NULL, 1, (int[]){0}));
    PASSES(trama_roll_at(W, NULL, 0, 1));
    PASSES(trama_broadcast_to_at(W, NULL, shape));
    PASSES(trama_repeat_at(W, NULL, 0, 2));
    PASSES(trama_repeat_each_at(W, NULL, 0, 2));
    PASSES(trama_pad_with_at(W, NULL, 0, 1, 1, TRAMA_PAD_EDGE, 0));
    PASSES(trama_space_to_depth_at(W, NULL, 2));
    PASSES(trama_depth_to_space_at(W, NULL, 2));
}
END_TEST

START_TEST(along_a_dim)
{
    PASSES(trama_cumsum_at(W, NULL, 0, false, false));
    PASSES(trama_cumprod_at(W, NULL, 0, false, false));
    PASSES(trama_recurrence_at(W, NULL, x, 0, false));
    PASSES(trama_recurrence_at(W, x, NULL, 0, false));
    PASSES(trama_cummax_at(W, NULL, 0, false, false));
    PASSES(trama_cummin_at(W, NULL, 0, false, false));
    PASSES(trama_sort_at(W, NULL, 0, false));
    PASSES(trama_argsort_at(W, NULL, 0, false));
    PASSES(trama_top_k_at(W, NULL, 1, 0, true));
}
END_TEST

int main(void)
{
    const TTest *tests[] = {elements_by_index, joins_and_parts, arrangements, along_a_dim};
    return suite_run("nulls_array", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
