/* SPDX-License-Identifier: Apache-2.0 */
/* NULL for every pointer of every function of trama_network.h. */
#include "null_program.h"
#include "trama_network.h"

#define W TRAMA_HERE

START_TEST(losses)
{
    trama_value *y = trama_arange(p, TRAMA_I64, 4, 0, 1);
    PASSES(trama_cross_entropy_at(W, NULL, x));
    PASSES(trama_cross_entropy_at(W, x, NULL));
    PASSES(trama_cross_entropy_with_at(W, NULL, y, 1, NULL, -1, 0, TRAMA_LOSS_MEAN));
    PASSES(trama_cross_entropy_with_at(W, x, NULL, 1, NULL, -1, 0, TRAMA_LOSS_MEAN));
    ck_assert(trama_cross_entropy_with_at(W, x, y, 1, NULL, -1, 0, TRAMA_LOSS_MEAN));
    PASSES(trama_nll_loss_at(W, NULL, y, 1, NULL, -1, TRAMA_LOSS_MEAN));
    PASSES(trama_nll_loss_at(W, x, NULL, 1, NULL, -1, TRAMA_LOSS_MEAN));
    ck_assert(trama_nll_loss_at(W, x, y, 1, NULL, -1, TRAMA_LOSS_MEAN));
    PASSES(trama_binary_cross_entropy_at(W, NULL, x, 1, TRAMA_LOSS_MEAN));
    PASSES(trama_binary_cross_entropy_at(W, x, NULL, 1, TRAMA_LOSS_MEAN));
    PASSES(trama_square_loss_at(W, NULL, x, TRAMA_LOSS_MEAN));
    PASSES(trama_square_loss_at(W, x, NULL, TRAMA_LOSS_MEAN));
    PASSES(trama_absolute_loss_at(W, NULL, x, TRAMA_LOSS_MEAN));
    PASSES(trama_absolute_loss_at(W, x, NULL, TRAMA_LOSS_MEAN));
    PASSES(trama_huber_loss_at(W, NULL, x, 1, TRAMA_LOSS_MEAN));
    PASSES(trama_huber_loss_at(W, x, NULL, 1, TRAMA_LOSS_MEAN));
}
END_TEST

START_TEST(layers)
{
    PASSES(trama_layer_norm_at(W, NULL, 1, x, x, 1e-5));
    ck_assert(trama_layer_norm_at(W, x, 1, NULL, x, 1e-5) && trama_layer_norm_at(W, x, 1, x, NULL, 1e-5));
    PASSES(trama_rms_norm_at(W, NULL, 1, x, 1e-5));
    ck_assert(trama_rms_norm_at(W, x, 1, NULL, 1e-5));
    PASSES(trama_group_norm_at(W, NULL, 1, x, x, 1e-5));
    ck_assert(trama_group_norm_at(W, x, 3, NULL, NULL, 1e-5));
    trama_value *vector = trama_mean_at(W, x, 1, (int[]){0}, false);
    PASSES(trama_batch_norm_at(W, NULL, vector, vector, 1e-5, NULL, NULL));
    ck_assert(trama_batch_norm_at(W, x, NULL, vector, 1e-5, NULL, NULL) &&
              trama_batch_norm_at(W, x, vector, NULL, 1e-5, NULL, NULL));
    PASSES(trama_batch_norm_with_at(W, NULL, vector, vector, vector, vector, 1e-5));
    PASSES(trama_batch_norm_with_at(W, x, NULL, vector, vector, vector, 1e-5));
    PASSES(trama_batch_norm_with_at(W, x, vector, NULL, vector, vector, 1e-5));
    ck_assert(trama_batch_norm_with_at(W, x, vector, vector, NULL, vector, 1e-5) &&
              trama_batch_norm_with_at(W, x, vector, vector, vector, NULL, 1e-5));
    PASSES(trama_running_at(W, NULL, vector, 0.1));
    PASSES(trama_running_at(W, vector, NULL, 0.1));
    PASSES(trama_dropout_at(W, NULL, 0.5, 1, 2));
    PASSES(trama_glu_at(W, NULL, 0));
    PASSES(trama_swiglu_at(W, NULL, 0));
    PASSES(trama_geglu_at(W, NULL, 0));
    PASSES(trama_rotary_at(W, NULL, 1e4, 0, false));
}
END_TEST

int main(void)
{
    const TTest *tests[] = {losses, layers};
    return suite_run("nulls_network", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
