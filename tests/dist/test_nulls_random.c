/* SPDX-License-Identifier: Apache-2.0 */
/* NULL for every pointer of every function of trama_random.h. */
#include "null_program.h"
#include "trama_random.h"

#define W TRAMA_HERE

START_TEST(distributions)
{
    SAYS(NULL, trama_normal_at(W, NULL, TRAMA_F32, shape, 0, 1, 1, 1));
    SAYS(NULL, trama_normal_fixed_at(W, NULL, TRAMA_F32, shape, 0, 1, 1, 1, 1));
    SAYS(NULL, trama_bernoulli_at(W, NULL, shape, 0.5, 1, 1));
    SAYS(NULL, trama_bernoulli_fixed_at(W, NULL, shape, 0.5, 1, 1, 1));
    SAYS(NULL, trama_random_integers_at(W, NULL, TRAMA_I32, shape, 0, 5, 1, 1));
    SAYS(NULL, trama_random_integers_fixed_at(W, NULL, TRAMA_I32, shape, 0, 5, 1, 1, 1));
    SAYS(NULL, trama_permutation_at(W, NULL, 5, 1, 1));
    SAYS(NULL, trama_permutation_fixed_at(W, NULL, 5, 1, 1, 1));
}
END_TEST

int main(void)
{
    const TTest *tests[] = {distributions};
    return suite_run("nulls_random", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
