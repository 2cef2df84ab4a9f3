/* SPDX-License-Identifier: Apache-2.0 */
/* NULL for every pointer of every function of trama_convolution.h. */
#include "null_program.h"
#include "trama_convolution.h"

#define W TRAMA_HERE

START_TEST(convolutions_and_pools)
{
    const trama_windows windows = {.kernel = {2}};
    trama_value *line = trama_input(p, "line", TRAMA_F64, TRAMA_SHAPE(2, 6, 5));
    trama_value *kernel = trama_input(p, "kernel", TRAMA_F64, TRAMA_SHAPE(6, 6, 3));
    trama_value *bias = trama_input(p, "bias", TRAMA_F64, TRAMA_SHAPE(6));
    PASSES(trama_conv_at(W, NULL, kernel, bias, NULL));
    PASSES(trama_conv_at(W, line, NULL, bias, NULL));
    ck_assert(trama_conv_at(W, line, kernel, NULL, NULL));
    PASSES(trama_conv_transposed_at(W, NULL, kernel, bias, NULL));
    PASSES(trama_conv_transposed_at(W, line, NULL, bias, NULL));
    ck_assert(trama_conv_transposed_at(W, line, kernel, NULL, NULL));
    PASSES(trama_max_pool_at(W, NULL, &windows));
    SAYS(p, trama_max_pool_at(W, line, NULL)); /* a pool needs a kernel */
    PASSES(trama_mean_pool_at(W, NULL, &windows));
    SAYS(p, trama_mean_pool_at(W, line, NULL));
    PASSES(trama_sum_pool_at(W, NULL, &windows));
    SAYS(p, trama_sum_pool_at(W, line, NULL));
}
END_TEST

int main(void)
{
    const TTest *tests[] = {convolutions_and_pools};
    return suite_run("nulls_convolution", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
