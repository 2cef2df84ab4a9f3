/* SPDX-License-Identifier: Apache-2.0 */
/* For the kernel tests: tensors in every memory order, read and written as doubles by naive indexing. */
#ifndef TESTS_CODELETS_VIEWS_H
#define TESTS_CODELETS_VIEWS_H

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "elements.h"
#include "kernel.h"
#include "loop.h"
#include "ops.h"
#ifdef TESTS_ON_GPU
#include "on_gpu.h"
#endif

/* Row-major; column-major; a block of a larger row-major tensor; every second element of such a block. */
typedef enum { PACKED, TURNED, BLOCK, SPARSE, N_ORDERS } order;

typedef struct tensor {
    trama_view view;
    unsigned char *memory; /* everything but the box holds FILLER */
    size_t bytes;
} tensor;
enum { FILLER = 0xa5 };

static inline tensor tensor_new(trama_dtype dtype, order how, trama_shape shape)
{
    tensor t = {.view = {.dtype = dtype, .ndim = shape.ndim}};
    const size_t size = trama_dtype_size(dtype);
    int64_t step = how == SPARSE ? 2 : 1, start = 0;

    for (int i = 0; i < shape.ndim; i++) {
        const int d = how == TURNED ? i : shape.ndim - 1 - i;
        t.view.extent[d] = t.view.global[d] = shape.dim[d];
        t.view.stride[d] = step;
        start += how >= BLOCK ? step : 0;
        step *= shape.dim[d] + (how >= BLOCK ? 3 : 0);
    }
    t.bytes = (size_t)(step + start + 1) * size;
    t.memory = malloc(t.bytes);
    memset(t.memory, FILLER, t.bytes);
    t.view.data = t.memory + (size_t)start * size;
    return t;
}

static inline void tensor_free(tensor *t)
{
    free(t->memory);
    t->memory = NULL;
}

static inline void *element(const trama_view *v, const int64_t *index)
{
    int64_t at = 0;
    for (int d = 0; d < v->ndim; d++)
        at += index[d] * v->stride[d];
    return (char *)v->data + at * (int64_t)trama_dtype_size(v->dtype);
}

static inline double at(const tensor *t, const int64_t *index)
{
    return read_as(t->view.dtype, element(&t->view, index));
}

static inline void put(tensor *t, const int64_t *index, double x)
{
    write_as(t->view.dtype, element(&t->view, index), x);
}

#define AT(t, ...) at(t, (int64_t[]){__VA_ARGS__, 0})
#define PUT(t, x, ...) put(t, (int64_t[]){__VA_ARGS__, 0}, x)

/* The element that belongs to an index of space, right-aligned, extents of 1 repeated. */
static inline double at_broadcast(const tensor *t, const tensor *space, const int64_t *index)
{
    int64_t own[TRAMA_MAX_NDIM] = {0};
    for (int d = 0; d < t->view.ndim; d++)
        own[d] = t->view.extent[d] == 1 ? 0 : index[d + space->view.ndim - t->view.ndim];
    return at(t, own);
}

static inline int64_t count_of(const tensor *t)
{
    int64_t n = 1;
    for (int d = 0; d < t->view.ndim; d++)
        n *= t->view.extent[d];
    return n;
}

static inline bool next_index(const tensor *t, int64_t *index)
{
    for (int d = t->view.ndim - 1; d >= 0; d--) {
        if (++index[d] < t->view.extent[d])
            return true;
        index[d] = 0;
    }
    return false;
}

/* Every index of a tensor in row-major order. */
#define FOR_EACH(t, index)                                                                                             \
    for (int64_t index[TRAMA_MAX_NDIM] = {0}, more = count_of(t) > 0; more; more = next_index(t, index))

/* Small numbers, exact in every type, with signs where it has them. */
static inline void scramble(tensor *t, uint64_t seed)
{
    FOR_EACH(t, index)
    {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const double whole = (double)(seed >> 40) / (1 << 24) * 18 - (is_unsigned(t->view.dtype) ? 0 : 9);
        put(t, index,
            trama_dtype_is_float(t->view.dtype) ? rint(whole * 32) / 64
            : t->view.dtype == TRAMA_BOOL       ? fmod(trunc(whole), 2)
                                                : trunc(whole));
    }
}

static inline tensor tensor_random(trama_dtype dtype, order how, trama_shape shape, uint64_t seed)
{
    tensor t = tensor_new(dtype, how, shape);
    scramble(&t, seed);
    return t;
}

/* Whether memory that is not of the box still holds what tensor_new put there. */
static inline bool outside_untouched(const tensor *t)
{
    const size_t size = trama_dtype_size(t->view.dtype);
    unsigned char *inside = calloc(t->bytes + 1, 1);
    bool clean = true;

    FOR_EACH(t, index)
    memset(inside + ((unsigned char *)element(&t->view, index) - t->memory), 1, size);
    for (size_t i = 0; i < t->bytes; i++)
        clean &= inside[i] || t->memory[i] == FILLER;
    free(inside);
    return clean;
}

static inline bool is_half(trama_dtype dtype)
{
    return dtype == TRAMA_BF16 || dtype == TRAMA_F16;
}

/* The value of x that a type stores; f32 and f64 are compared with x as it is. */
static inline double stored(trama_dtype dtype, double x)
{
    return is_half(dtype) ? half_round(dtype, x) : x;
}

/* Equal up to `units` roundings of the type, relative to the larger of 1 and want; NaN equals NaN. Halves are what such
 * a number of f32 rounds to, once. */
static inline bool near(trama_dtype dtype, double got, double want, double units)
{
    const double slack = units * 0x1p-24 * fmax(1, fabs(want));
    const double unit = dtype == TRAMA_F32 ? 0x1p-24 : dtype == TRAMA_F64 ? 0x1p-53 : 0;
    if (isnan(want) || isinf(want))
        return isnan(want) ? isnan(got) : got == want;
    if (is_half(dtype))
        return got >= half_round(dtype, want - slack) && got <= half_round(dtype, want + slack);
    return fabs(got - want) <= units * unit * fmax(1, fabs(want));
}
/* Units for halves that are rounded on the way, up to 4 times, by half a unit of 8 or 11 bits. */
static inline double half_units(trama_dtype dtype)
{
    return 4 * (dtype == TRAMA_BF16 ? 0x1p16 : 0x1p13);
}
/* Whether the GPU's kernel of the op has probabilities of halves as halves, as operands of products. */
static inline bool halves_probabilities(const trama_op *op, trama_dtype dtype)
{
    return is_half(dtype) && !strncmp(op->name, "attention", 9);
}
/* The same of the kernel that run_call runs. */
static inline bool rounds_probabilities(const trama_op *op, trama_dtype dtype)
{
#ifdef TESTS_ON_GPU
    return halves_probabilities(op, dtype);
#else
    (void)op, (void)dtype;
    return false;
#endif
}
/* Without a word to Check where it holds: elements are many. */
#define ck_near(dtype, got, want, units)                                                                               \
    do {                                                                                                               \
        const double is = (got), due = (want);                                                                         \
        if (!near(dtype, is, due, units))                                                                              \
            ck_abort_msg("%s: got %.17g, not %.17g", trama_dtype_name(dtype), is, due);                                \
    } while (0)

/* Runs a kernel: that for CPUs, or in the tests' programs for GPUs, that for GPUs where there is one. */
static inline void run_call(const trama_call *call)
{
#ifdef TESTS_ON_GPU
    if (on_gpu_call(call))
        return;
#endif
    kernel_of(call->op)->cpu(call);
}

/* Runs a built-in op; arrays are the results, then the operands. */
static inline void run_op(const char *name, const trama_attributes *attributes, int n_out, int n_in,
                          tensor *const *arrays)
{
    static const trama_attributes none;
    const trama_op op = {.name = name};
    trama_view views[2 * TRAMA_MAX_OPERANDS];
    for (int i = 0; i < n_out + n_in; i++)
        views[i] = arrays[i]->view;
    const trama_call call = {.op = &op,
                             .attributes = attributes ? attributes : &none,
                             .n_in = n_in,
                             .n_out = n_out,
                             .in = views + n_out,
                             .out = views};
    run_call(&call);
}

static inline void run_unary(const char *name, const trama_attributes *attributes, tensor *out, tensor *x)
{
    run_op(name, attributes, 1, 1, (tensor *[]){out, x});
}

static inline void run_binary(const char *name, const trama_attributes *attributes, tensor *out, tensor *x, tensor *y)
{
    run_op(name, attributes, 1, 2, (tensor *[]){out, x, y});
}

/* The main of a test program with one suite of the listed tests. */
static inline int run_tests(const char *suite_name, int n, const TTest *const *tests)
{
#ifdef TESTS_ON_GPU
    on_gpu_or_skip();
#endif
    TCase *tcase = tcase_create(suite_name);
    Suite *suite = suite_create(suite_name);
    for (int i = 0; i < n; i++)
        tcase_add_test(tcase, tests[i]);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
#define RUN_TESTS(name, ...)                                                                                           \
    int main(void)                                                                                                     \
    {                                                                                                                  \
        const TTest *const tests[] = {__VA_ARGS__};                                                                    \
        return run_tests(name, (int)(sizeof tests / sizeof tests[0]), tests);                                          \
    }

#endif
