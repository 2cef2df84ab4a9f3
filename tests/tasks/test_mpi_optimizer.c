/* SPDX-License-Identifier: Apache-2.0 */
/* The same over ranks, each of which runs the plain loops for itself. */
#include "optimizing.h"

START_TEST(optimizers_over_ranks_follow_plain_loops)
{
    start();
    demand(n_ranks > 1, "it takes several ranks");
    optimize_everywhere(TRAMA_F64, SANITIZED ? 8 : 20, 1e-10);
    optimize_everywhere(TRAMA_F32, 8, 1e-5);
    stop();
}
END_TEST

START_TEST(merged_optimizers_over_ranks_follow_plain_loops)
{
    start();
    optimize_merged(TRAMA_F64, TRAMA_MERGE_AVG, SANITIZED ? 8 : 100, 1e-10);
    optimize_merged(TRAMA_F32, TRAMA_MERGE_SYNC_EACH, 8, 1e-5);
    stop();
}
END_TEST

TESTS(optimizers_over_ranks_follow_plain_loops, merged_optimizers_over_ranks_follow_plain_loops)
