/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic element by element with broadcasting. */
#include "pointwise.h"
#include "kernel.h"
#include "loop.h"

POINTWISE_OPS(POINTWISE)

/* ---- Two element types ----------------------------------------------------------------------- */

#define EQUAL_ROW(dtype, type, unused)                                                                                 \
    ROW_SIGNATURE(equal_##dtype)                                                                                       \
    {                                                                                                                  \
        uint8_t *out = data[0];                                                                                        \
        const type *a = data[1], *b = data[2];                                                                         \
        (void)with;                                                                                                    \
        for (int64_t i = 0; i < n; i++)                                                                                \
            out[i * step[0]] = EQUAL(dtype, a[i * step[1]], b[i * step[2]]);                                           \
    }
EACH_DTYPE(EQUAL_ROW, )
static loop_row *const equal_rows[TRAMA_N_DTYPES] = {EACH_DTYPE(ROW_ENTRY, equal)};

void cpu_equal(const trama_call *call)
{
    const trama_view *a = &call->in[0], *b = &call->in[1];

    if (a->dtype != b->dtype || call->out[0].dtype != TRAMA_U8)
        kernel_impossible(call, "the result is u8, the operands are of one element type");
    loop_run(3, (const trama_view *[]){&call->out[0], a, b}, equal_rows[a->dtype], NULL);
}

#define CAST_ROW(out_dtype, out_type, dtype, type)                                                                     \
    FAST ROW_SIGNATURE(cast_##dtype##_##out_dtype)                                                                     \
    {                                                                                                                  \
        out_type *out = data[0];                                                                                       \
        const type *a = data[1];                                                                                       \
        (void)with;                                                                                                    \
        if (step[0] == 1 && step[1] == 1)                                                                              \
            INDEPENDENT                                                                                                \
        for (int64_t i = 0; i < n; i++)                                                                                \
            out[i] = CAST(out_dtype, out_type, dtype, a[i]);                                                           \
        else for (int64_t i = 0; i < n; i++) out[i * step[0]] = CAST(out_dtype, out_type, dtype, a[i * step[1]]);      \
    }
#define CAST_ROWS(dtype, text, type) EACH_DTYPE(CAST_ROW, dtype, type)
TRAMA_DTYPE_LIST(CAST_ROWS)

#define CAST_TO(out_dtype, out_type, dtype) [out_dtype] = cast_##dtype##_##out_dtype,
#define CAST_FROM(dtype, text, type) [dtype] = {EACH_DTYPE(CAST_TO, dtype)},
static loop_row *const cast_rows[TRAMA_N_DTYPES][TRAMA_N_DTYPES] = {TRAMA_DTYPE_LIST(CAST_FROM)};

void cpu_cast(const trama_call *call)
{
    loop_call(call, cast_rows[call->in[0].dtype], NULL);
}

void cpu_stop_gradient(const trama_call *call)
{
    kernel_copy(&call->out[0], &call->in[0]);
}
