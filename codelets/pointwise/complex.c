/* SPDX-License-Identifier: Apache-2.0 */
/* Complex numbers: conjugates, their parts, magnitudes, and complex numbers of two parts. */
#include "kernel.h"
#include "loop.h"

/* A row of one or two operands whose result has another type. PART: the type of a part. */
#define PART_ROW(dtype, type, name, OUT, IN, FORMULA_)                                                                 \
    FAST ROW_SIGNATURE(name##_##dtype)                                                                                 \
    {                                                                                                                  \
        OUT(dtype) *out = data[0];                                                                                     \
        const IN(dtype) *a = data[1], *b = data[2];                                                                    \
        (void)b;                                                                                                       \
        (void)with;                                                                                                    \
        if (step[0] == 1 && step[1] == 1 && step[2] == 1)                                                              \
            INDEPENDENT                                                                                                \
        for (int64_t i = 0; i < n; i++)                                                                                \
            out[i] = FORMULA_(dtype, a[i], b[i]);                                                                      \
        else for (int64_t i = 0; i < n; i++) out[i * step[0]] = FORMULA_(dtype, a[i * step[1]], b[i * step[2]]);       \
    }
#define WHOLE(dtype) NUMBER_##dtype
#define PART(dtype) PART_##dtype
#define CONJ(dtype, x, y) MAKE_##dtype(REAL(dtype, x, y), -IMAG(dtype, x, y))
#define REAL(dtype, x, y) MATH_##dtype(real)(x)
#define IMAG(dtype, x, y) MATH_##dtype(imag)(x)
#define MAGNITUDE(dtype, x, y) MATH_##dtype(abs)(x)
#define COMPLEX_OF(dtype, x, y) MAKE_##dtype(x, y)
#define MAKE_TRAMA_C64(x, y) CMPLXF(x, y)
#define MAKE_TRAMA_C128(x, y) CMPLX(x, y)

/* data[2] is read by complex_of alone: the others get their operand twice. */
static void run(const trama_call *call, trama_dtype dtype, loop_row *const rows[TRAMA_N_DTYPES])
{
    const trama_view *a = &call->in[0], *b = call->n_in > 1 ? &call->in[1] : a;
    loop_run(3, (const trama_view *[]){&call->out[0], a, b}, rows[dtype], NULL);
}

#define KERNEL(name, OUT, IN, FORMULA_, of)                                                                            \
    EACH_COMPLEX(PART_ROW, name, OUT, IN, FORMULA_)                                                                    \
    static loop_row *const name##_rows[TRAMA_N_DTYPES] = {EACH_COMPLEX(ROW_ENTRY, name)};                              \
    void cpu_##name(const trama_call *call)                                                                            \
    {                                                                                                                  \
        run(call, call->of[0].dtype, name##_rows);                                                                     \
    }
KERNEL(conj, WHOLE, WHOLE, CONJ, in)
KERNEL(real, PART, WHOLE, REAL, in)
KERNEL(imag, PART, WHOLE, IMAG, in)
KERNEL(magnitude, PART, WHOLE, MAGNITUDE, in)
KERNEL(complex_of, WHOLE, PART, COMPLEX_OF, out)
