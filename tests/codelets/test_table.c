/* SPDX-License-Identifier: Apache-2.0 */
/* From ops to kernels. */
#include "views.h"

START_TEST(every_built_in_op_has_a_kernel_of_its_own)
{
    static const char *const names[] = {
#define OP(name, ...) #name,
#include "ops.def"
    };
    const int n = (int)(sizeof names / sizeof names[0]);
    for (int i = 0; i < n; i++) {
        const trama_op op = {.name = names[i]};
        ck_assert(kernel_of(&op) && kernel_of(&op)->cpu);
        for (int j = 0; j < i; j++)
            ck_assert(kernel_of(&(trama_op){.name = names[j]})->cpu != kernel_of(&op)->cpu);
    }
}
END_TEST

static trama_status nothing(const trama_call *call)
{
    (void)call;
    return TRAMA_OK;
}

START_TEST(an_op_of_ones_own_has_no_kernel_of_the_table_whatever_its_name)
{
    const trama_op op = {.name = "matmul", .own = nothing};
    ck_assert_ptr_null(kernel_of(&op));
}
END_TEST

START_TEST(an_unknown_op_has_no_kernel)
{
    ck_assert_ptr_null(kernel_of(&(trama_op){.name = "no_such_op"}));
}
END_TEST

RUN_TESTS("table", every_built_in_op_has_a_kernel_of_its_own, an_op_of_ones_own_has_no_kernel_of_the_table_whatever_its_name,
          an_unknown_op_has_no_kernel)
