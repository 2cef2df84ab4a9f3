/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses between two operands by a bool, element by element with broadcasting. Elements move as bytes. */
#include "kernel.h"
#include "loop.h"

#define SELECT_ROW(unit)                                                                                               \
    FAST ROW_SIGNATURE(select_##unit)                                                                                  \
    {                                                                                                                  \
        unit *out = data[0];                                                                                           \
        const bool *c = data[1];                                                                                       \
        const unit *x = data[2], *y = data[3];                                                                         \
        INDEPENDENT                                                                                                    \
        for (int64_t i = 0; i < n; i++)                                                                                \
            out[i] = c[i] ? x[i] : y[i];                                                                               \
    }
SELECT_ROW(uint8_t)
SELECT_ROW(uint16_t)
SELECT_ROW(uint32_t)
SELECT_ROW(uint64_t)
SELECT_ROW(trama_c128)

void cpu_select(const trama_call *call)
{
    static loop_row *const rows[] = {[1] = select_uint8_t,
                                     [2] = select_uint16_t,
                                     [4] = select_uint32_t,
                                     [8] = select_uint64_t,
                                     [16] = select_trama_c128};
    const trama_view *view[] = {&call->out[0], &call->in[0], &call->in[1], &call->in[2]};
    if (call->in[0].dtype != TRAMA_BOOL)
        kernel_impossible(call, "the condition is bool");
    loop_dense(1, 4, view, rows[trama_dtype_size(call->out[0].dtype)], STEPS_1, NULL);
}
