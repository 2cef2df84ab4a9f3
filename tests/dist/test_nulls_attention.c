/* SPDX-License-Identifier: Apache-2.0 */
/* NULL for every pointer of attention. */
#include "null_program.h"
#include "trama_attention.h"

#define W TRAMA_HERE

START_TEST(attention)
{
    trama_value *q = trama_input_at(W, p, "q", TRAMA_F32, TRAMA_SHAPE(2, 3, 4));
    PASSES(trama_attention_at(W, NULL, q, q, NULL, false, 0));
    PASSES(trama_attention_at(W, q, NULL, q, NULL, false, 0));
    PASSES(trama_attention_at(W, q, q, NULL, NULL, false, 0));
    ck_assert_ptr_nonnull(trama_attention_at(W, q, q, q, NULL, false, 0));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {attention};
    return suite_run("nulls_attention", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
