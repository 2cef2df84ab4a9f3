/* SPDX-License-Identifier: Apache-2.0 */
/* Updates of state in place. */
#include <string.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "base.h"
#include "kernel.h"
#include "loop.h"
#include "update.h"

void cpu_assign(const trama_call *call)
{
    kernel_copy(&call->out[0], &call->in[1]);
}

/* ---- Updates that a scalar operand can turn off -------------------------------------------------- */

static double real_of(const trama_view *view)
{
    return element_of(view->dtype, view->data, 0);
}

void cpu_assign_if(const trama_call *call)
{
    if (real_of(&call->in[2]))
        kernel_copy(&call->out[0], &call->in[1]);
}

/* The operand counts steps from 1, a schedule from 0. */
void cpu_schedule(const trama_call *call)
{
    const trama_attributes *a = call->attributes;
    const schedule_factor factor = (schedule_factor)(intptr_t)a->integer[SCHEDULE_FACTOR];
    const double step = fmax(real_of(&call->in[0]) - 1, 0), warmup = (double)a->integer[SCHEDULE_WARMUP];
    double lr = a->real[SCHEDULE_LR];

    if (step < warmup)
        lr *= (step + 1) / (warmup + 1);
    if (factor)
        lr *= factor((int64_t)fmax(step - warmup, 0), &a->real[SCHEDULE_NUMBERS]);
    *(double *)call->out[0].data = lr;
}

/* Rows of results and tensors; with: the constants. */
#define UPDATE_ROW(dtype, type, name, n_results, n_arrays, ELEMENT)                                                    \
    FAST ROW_SIGNATURE(name##_##dtype)                                                                                 \
    {                                                                                                                  \
        type *array[n_arrays];                                                                                         \
        NUMBER_##dtype c[N_CONSTANTS];                                                                                 \
        for (int a = 0; a < (n_arrays); a++)                                                                           \
            array[a] = data[a];                                                                                        \
        for (int k = 0; k < N_CONSTANTS; k++)                                                                          \
            c[k] = (NUMBER_##dtype)((const double *)with)[k];                                                          \
        INDEPENDENT                                                                                                    \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            NUMBER_##dtype element[n_arrays];                                                                          \
            for (int a = n_results; a < (n_arrays); a++)                                                               \
                element[a] = LOAD(dtype, array[a][i]);                                                                 \
            EXPANDED(ELEMENT, COMPUTE_##dtype, NUMBER_##dtype, UPDATE_AT)                                              \
            for (int a = 0; a < (n_results); a++)                                                                      \
                array[a][i] = STORE(dtype, element[a]);                                                                \
        }                                                                                                              \
    }
#define UPDATE_AT(a) element[a]
#define UPDATE_ROWS(EACH, name, n_results, n_tensors, ELEMENT)                                                         \
    EACH(UPDATE_ROW, name, n_results, (n_results) + (n_tensors), ELEMENT)                                              \
    static loop_row *const name##_rows[TRAMA_N_DTYPES] = {EACH(ROW_ENTRY, name)};

/* The views of complex numbers as views of reals, whose last dim has both parts of each. False where it cannot have
 * them: it has a stride or is repeated. */
static bool find_pairs(int n, const trama_view *view, trama_view *pairs)
{
    bool can = true;
    for (int i = 0; i < n && can; i++) {
        const int last = view[i].ndim - 1;
        can = last >= 0 && last == view[0].ndim - 1 && view[i].stride[last] == 1 &&
              view[i].extent[last] == view[0].extent[last];
        pairs[i] = view_part(&view[i], 0);
        if (can) {
            pairs[i].extent[last] *= 2;
            pairs[i].stride[last] = 1;
        }
    }
    return can;
}

/* Complex numbers are pairs of real ones, as PyTorch's optimizers have them. */
static void update_parts(const trama_call *call, loop_row *const rows[TRAMA_N_DTYPES], const double *constants)
{
    enum { ALL = 2 * TRAMA_MAX_OPERANDS };
    const int n = call->n_out + call->n_in;
    trama_view views[ALL], parts[ALL];
    trama_call real = *call;
    memcpy(views, call->out, (size_t)call->n_out * sizeof *views);
    memcpy(views + call->n_out, call->in, (size_t)call->n_in * sizeof *views);
    real.out = parts;
    real.in = parts + call->n_out;
    const bool pairs = find_pairs(n, views, parts);
    for (int part = 0; part < (pairs ? 1 : 2); part++) {
        for (int i = 0; i < n && !pairs; i++)
            parts[i] = view_part(&views[i], part);
        loop_call(&real, rows, STEPS_1, constants);
    }
}

/* Runs the rows on the tensors; the scalars behind them are in the constants. */
static void update(const trama_call *call, int n_tensors, loop_row *const rows[TRAMA_N_DTYPES], update_kind kind,
                   const double *constants)
{
    trama_call tensors = *call;
    tensors.n_in = n_tensors;
    if (kind == UPDATE_CLEARS)
        kernel_fill(&call->out[call->n_out - 1], 0);
    if (kind == UPDATE_COMPUTES && dtype_parts(call->out[0].dtype) > 1)
        update_parts(&tensors, rows, constants);
    else if (kind == UPDATE_COMPUTES)
        loop_call(&tensors, rows, STEPS_1, constants);
}

/* Averages of gradients that are 0 decay to subnormal numbers, those below the least normal one (1.2e-38 in f32), with
 * which x86 computes in microcode, 20 to 100 times as slowly. Updates take and give 0 for them. */
#if defined(__SSE2__)
enum { SUBNORMALS_ARE_ZERO = 0x8040 }; /* of results and of operands */

/* For the calling thread, until subnormals_restore gets the result. */
static unsigned subnormals_off(void)
{
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | SUBNORMALS_ARE_ZERO);
    return before;
}

static void subnormals_restore(unsigned before)
{
    _mm_setcsr((_mm_getcsr() & ~(unsigned)SUBNORMALS_ARE_ZERO) | (before & SUBNORMALS_ARE_ZERO));
}
#else
static unsigned subnormals_off(void)
{
    return 0;
}

static void subnormals_restore(unsigned before)
{
    (void)before;
}
#endif

#define UPDATE(EACH, name, n_results, n_tensors, n_scalars, ELEMENT)                                                   \
    UPDATE_ROWS(EACH, name, n_results, n_tensors, ELEMENT)                                                             \
    void cpu_##name(const trama_call *call)                                                                            \
    {                                                                                                                  \
        double scalar[n_scalars], c[N_CONSTANTS] = {0};                                                                \
        for (int i = 0; i < (n_scalars); i++)                                                                          \
            scalar[i] = real_of(&call->in[(n_tensors) + i]);                                                           \
        const update_kind kind = name##_constants(scalar, call->attributes, c);                                        \
        const unsigned before = subnormals_off();                                                                      \
        update(call, n_tensors, name##_rows, kind, c);                                                                 \
        subnormals_restore(before);                                                                                    \
    }
UPDATE_OPS(UPDATE)

UPDATE_ROWS(EACH_FLOAT, add_weighted, 1, 2, ADD_WEIGHTED)
UPDATE_ROWS(EACH_FLOAT, set_weighted, 1, 2, SET_WEIGHTED)

kernel_addition accumulate_how(const trama_call *call)
{
    return (kernel_addition){real_of(&call->in[2]) != 0, real_of(&call->in[3])};
}

void cpu_accumulate(const trama_call *call)
{
    const kernel_addition how = accumulate_how(call);
    double c[N_CONSTANTS] = {0};
    const update_kind kind = accumulate_constants((double[]){how.keep, how.factor}, call->attributes, c);
    update(call, 2, how.keep != 0 ? add_weighted_rows : set_weighted_rows, kind, c);
}
