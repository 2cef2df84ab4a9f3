/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic element by element with broadcasting, and casts. */
#include "pointwise_ops.h"

#include "pointwise.def"

#define CAST_ROW(out_dtype, out_type, dtype, type)                                                                     \
    DENSE_ROW_1(FAST, cast_##dtype##_##out_dtype, out_type, type, CAST(out_dtype, dtype, a[i]))
#define CAST_ROWS(dtype, text, type) EACH_ELEMENT(CAST_ROW, dtype, type)
#define COMPLEX_CAST_ROWS(dtype, text, type) EACH_COMPLEX(CAST_ROW, dtype, type)
TRAMA_REAL_DTYPE_LIST(CAST_ROWS)
TRAMA_COMPLEX_DTYPE_LIST(COMPLEX_CAST_ROWS)

#define CAST_TO(out_dtype, out_type, dtype) [out_dtype] = cast_##dtype##_##out_dtype,
#define CAST_FROM(dtype, text, type) [dtype] = {EACH_ELEMENT(CAST_TO, dtype)},
#define CAST_FROM_COMPLEX(dtype, text, type) [dtype] = {EACH_COMPLEX(CAST_TO, dtype)},
static loop_row *const cast_rows[TRAMA_N_DTYPES][TRAMA_N_DTYPES] = {TRAMA_REAL_DTYPE_LIST(CAST_FROM)
                                                                        TRAMA_COMPLEX_DTYPE_LIST(CAST_FROM_COMPLEX)};

void cpu_cast(const trama_call *call)
{
    loop_call(call, cast_rows[call->in[0].dtype], STEPS_1, NULL);
}

void cpu_stop_gradient(const trama_call *call)
{
    kernel_copy(&call->out[0], &call->in[0]);
}
