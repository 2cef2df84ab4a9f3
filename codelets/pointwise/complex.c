/* SPDX-License-Identifier: Apache-2.0 */
/* Complex numbers: conjugates, their parts, magnitudes, and complex numbers of two parts. */
#include "kernel.h"
#include "loop.h"

/* A row of one or two operands, by the DENSE_ROW for their number, whose result may have another type. */
#define PART_ROW(dtype, type, name, DENSE_ROW, OUT, IN, FORMULA_)                                                      \
    DENSE_ROW(FAST, name##_##dtype, OUT(dtype), IN(dtype), FORMULA_(dtype, a[i], b[i]))
#define WHOLE(dtype) NUMBER_##dtype
#define PART(dtype) PART_##dtype
#define CONJ(dtype, x, y) MAKE_##dtype(REAL(dtype, x, y), -IMAG(dtype, x, y))
#define REAL(dtype, x, y) MATH_##dtype(real)(x)
#define IMAG(dtype, x, y) MATH_##dtype(imag)(x)
#define MAGNITUDE(dtype, x, y) MATH_##dtype(abs)(x)
#define COMPLEX_OF(dtype, x, y) MAKE_##dtype(x, y)
#define MAKE_TRAMA_C64(x, y) CMPLXF(x, y)
#define MAKE_TRAMA_C128(x, y) CMPLX(x, y)

static void run(const trama_call *call, trama_dtype dtype, loop_row *const rows[TRAMA_N_DTYPES])
{
    const trama_view *view[] = {&call->out[0], &call->in[0], call->n_in > 1 ? &call->in[1] : NULL};
    loop_dense(1, 1 + call->n_in, view, rows[dtype], STEPS_1, NULL);
}

#define KERNEL(name, DENSE_ROW, OUT, IN, FORMULA_, of)                                                                 \
    EACH_COMPLEX(PART_ROW, name, DENSE_ROW, OUT, IN, FORMULA_)                                                         \
    static loop_row *const name##_rows[TRAMA_N_DTYPES] = {EACH_COMPLEX(ROW_ENTRY, name)};                              \
    void cpu_##name(const trama_call *call)                                                                            \
    {                                                                                                                  \
        run(call, call->of[0].dtype, name##_rows);                                                                     \
    }
KERNEL(conj, DENSE_ROW_1, WHOLE, WHOLE, CONJ, in)
KERNEL(real, DENSE_ROW_1, PART, WHOLE, REAL, in)
KERNEL(imag, DENSE_ROW_1, PART, WHOLE, IMAG, in)
KERNEL(magnitude, DENSE_ROW_1, PART, WHOLE, MAGNITUDE, in)
KERNEL(complex_of, DENSE_ROW_2, WHOLE, PART, COMPLEX_OF, out)
