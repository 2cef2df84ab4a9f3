/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizer steps in place against the formulas in double. */
#include "views.h"

START_TEST(assign_overwrites_state_and_broadcasts)
{
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype++)
        for (int how = 0; how < N_ORDERS; how++) {
            tensor w = tensor_random((trama_dtype)dtype, (order)how, TRAMA_SHAPE(20, 18), 1);
            tensor x = tensor_random((trama_dtype)dtype, TURNED, TRAMA_SHAPE(20, 18), 2);
            tensor row = tensor_random((trama_dtype)dtype, PACKED, TRAMA_SHAPE(1, 18), 3);
            run_binary("assign", NULL, &w, &w, &x);
            FOR_EACH(&w, i)
            ck_assert(at(&w, i) == at(&x, i));
            run_binary("assign", NULL, &w, &w, &row);
            FOR_EACH(&w, i)
            ck_assert(at(&w, i) == AT(&row, 0, i[1]));
            ck_assert(outside_untouched(&w));
            tensor_free(&w);
            tensor_free(&x);
            tensor_free(&row);
        }
}
END_TEST

START_TEST(increment_adds_1)
{
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype = next_number(dtype)) {
        tensor t = tensor_new((trama_dtype)dtype, PACKED, TRAMA_SCALAR);
        PUT(&t, 41, 0);
        run_unary("increment", NULL, &t, &t);
        ck_assert(AT(&t, 0) == 42);
        tensor_free(&t);
    }
}
END_TEST

START_TEST(sgd_moves_against_the_gradient)
{
    const trama_attributes attributes = {.real = {[UPDATE_LR] = 0.125}};
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype = next_number(dtype))
        for (int orders = 0; orders < N_ORDERS * N_ORDERS; orders++) {
            tensor w = tensor_random((trama_dtype)dtype, (order)(orders / N_ORDERS), TRAMA_SHAPE(7, 45), 1);
            tensor g = tensor_random((trama_dtype)dtype, (order)(orders % N_ORDERS), TRAMA_SHAPE(7, 45), 2);
            tensor want = tensor_new(TRAMA_F64, PACKED, TRAMA_SHAPE(7, 45));
            FOR_EACH(&w, i)
            {
                put(&want, i, element_held((trama_dtype)dtype, at(&w, i) - 0.125 * at(&g, i)));
            }
            run_binary("sgd", &attributes, &w, &w, &g);
            FOR_EACH(&w, i)
            ck_near((trama_dtype)dtype, at(&w, i), at(&want, i), 1);
            ck_assert(outside_untouched(&w));
            tensor_free(&w);
            tensor_free(&g);
            tensor_free(&want);
        }
}
END_TEST

/* ---- Updates with state, and a scalar that turns them off ---- */

/* One element: what is updated, or made (lamb's direction). */
typedef struct element_state {
    double w, first, second, direction;
} element_state;

typedef struct trial {
    const char *op;
    trama_attributes attributes;
    int n_state;
    const char *scalars; /* behind the tensors: l learning rate, t step, a apply */
    void (*step)(element_state *s, double g, double t);
} trial;

enum { MOST_STATE = 3 };
static const double lr = 0.01;

static void descend_step(element_state *s, double g, double t)
{
    (void)t;
    s->w -= lr * (g + 0.1 * s->w);
}

/* Sutskever et al. 2013 in the form of PyTorch's SGD */
static void momentum_step(element_state *s, double g, double t)
{
    (void)t;
    s->first = 0.9 * s->first + g + 0.1 * s->w;
    s->w -= lr * s->first;
}

static void nesterov_step(element_state *s, double g, double t)
{
    double decayed = g + 0.1 * s->w;
    (void)t;
    s->first = 0.9 * s->first + decayed;
    s->w -= lr * (decayed + 0.9 * s->first);
}

static double direction(element_state *s, double g, double t)
{
    s->first = 0.9 * s->first + (1 - 0.9) * g;
    s->second = 0.999 * s->second + (1 - 0.999) * g * g;
    return s->first / (1 - pow(0.9, t)) / (sqrt(s->second / (1 - pow(0.999, t))) + 1e-8);
}

/* Kingma & Ba 2015, algorithm 1 */
static void adam_step(element_state *s, double g, double t)
{
    s->w -= lr * direction(s, g + 0.1 * s->w, t);
}

/* Loshchilov & Hutter 2019, algorithm 2, with eta = lr and alpha = 1 */
static void adamw_step(element_state *s, double g, double t)
{
    double d = direction(s, g, t);
    s->w -= lr * (d + 0.1 * s->w);
}

/* You et al. 2020, algorithm 2, up to the norms */
static void lamb_step(element_state *s, double g, double t)
{
    s->direction = direction(s, g, t) + 0.1 * s->w;
}

static const trial trials[] = {
    {"descend", {.real = {0.1}}, 1, "la", descend_step},
    {"momentum", {.real = {0.1, 0.9}}, 2, "la", momentum_step},
    {"momentum", {.integer = {1}, .real = {0.1, 0.9}}, 2, "la", nesterov_step},
    {"adam", {.real = {0.1, 0.9, 0.999, 1e-8}}, 3, "lta", adam_step},
    {"adam", {.integer = {1}, .real = {0.1, 0.9, 0.999, 1e-8}}, 3, "lta", adamw_step},
    {"lamb", {.real = {0.1, 0.9, 0.999, 1e-8}}, 3, "ta", lamb_step},
};

/* An element's number in tensor `state` of the trial: w, first, second; of lamb first, second, direction. */
static double *part_of(const trial *tried, int state, element_state *s)
{
    bool is_lamb = !strcmp(tried->op, "lamb");
    double *parts[] = {&s->w, &s->first, &s->second}, *of_lamb[] = {&s->first, &s->second, &s->direction};
    return is_lamb ? of_lamb[state] : parts[state];
}

/* f32 rounds in a dozen operations a step; after the first, m over sqrt v is well conditioned for steady gradients.
 * Halves round each step's results once, and the next begins there. */
static void try_update(const trial *tried, trama_dtype dtype, order state_order, order g_order, double tolerance)
{
    const trama_shape shape = TRAMA_SHAPE(5, 37);
    const bool is_lamb = !strcmp(tried->op, "lamb");
    tensor state[MOST_STATE], w = tensor_random(dtype, state_order, shape, 1);
    tensor g = tensor_random(dtype, g_order, shape, 2), scalar[3], *arrays[12];
    element_state *want = calloc((size_t)count_of(&w), sizeof *want);
    int64_t n = 0;
    int used = 0;

    for (int i = 0; i < tried->n_state; i++) {
        state[i] = i || is_lamb ? tensor_new(dtype, state_order, shape) : w;
        arrays[used++] = &state[i];
        FOR_EACH(&w, at)
        if (i || is_lamb)
            put(&state[i], at, 0);
    }
    FOR_EACH(&w, i)
    want[n++].w = at(&w, i);
    for (int i = 0; i < tried->n_state - is_lamb; i++)
        arrays[used++] = &state[i];
    if (is_lamb)
        arrays[used++] = &w;
    arrays[used++] = &g;
    for (int i = 0; tried->scalars[i]; i++) {
        scalar[i] = tensor_new(tried->scalars[i] != 'l' ? TRAMA_I64
                               : is_half(dtype)         ? TRAMA_F64
                                                        : dtype,
                               PACKED, TRAMA_SCALAR);
        arrays[used++] = &scalar[i];
    }
    for (int step = 1; step <= 6; step++) {
        const bool applies = step != 3;
        for (int i = 0; tried->scalars[i]; i++)
            PUT(&scalar[i], tried->scalars[i] == 'l' ? lr : tried->scalars[i] == 't' ? step : applies, 0);
        run_op(tried->op, &tried->attributes, tried->n_state, used - tried->n_state, arrays);
        n = 0;
        FOR_EACH(&w, i)
        {
            element_state *s = &want[n++];
            if (applies)
                tried->step(s, at(&g, i), step);
            else
                s->direction = 0;
            for (int k = 0; k < tried->n_state; k++) {
                double *wanted = part_of(tried, k, s);
                if (is_half(dtype)) {
                    ck_near(dtype, at(&state[k], i), *wanted, tolerance * 0x1p24);
                    *wanted = at(&state[k], i);
                }
                ck_assert_double_eq_tol(at(&state[k], i), *wanted, tolerance * (1 + fabs(*wanted)));
            }
        }
    }
    for (int i = 0; i < tried->n_state; i++) {
        ck_assert(outside_untouched(&state[i]));
        tensor_free(&state[i]);
    }
    for (int i = 0; tried->scalars[i]; i++)
        tensor_free(&scalar[i]);
    if (is_lamb)
        tensor_free(&w);
    tensor_free(&g);
    free(want);
}

START_TEST(updates_follow_the_published_formulas_where_they_apply)
{
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++)
        for (int how = 0; how < N_ORDERS; how++)
            for (int g = 0; g < N_ORDERS; g++) {
                try_update(&trials[i], TRAMA_F64, (order)how, (order)g, 1e-14);
                try_update(&trials[i], TRAMA_F32, (order)how, (order)g, 1e-6);
                try_update(&trials[i], TRAMA_BF16, (order)how, (order)g, 1e-6);
                try_update(&trials[i], TRAMA_F16, (order)how, (order)g, 1e-6);
            }
}
END_TEST

/* Moments that decay without a gradient would be subnormal for good, and x86 computes with those 20 to 100 times as
 * slowly. Those of f16 are normal in f32, in which they are computed. */
START_TEST(moments_are_never_subnormal)
{
    static const struct {
        trama_dtype dtype;
        double moment;
        bool stays;
    } tried[] = {{TRAMA_F32, 1e-38, false},  {TRAMA_F32, 2e-38, true},   {TRAMA_F64, 1e-38, true},
                 {TRAMA_F64, 2e-308, false}, {TRAMA_BF16, 1e-38, false}, {TRAMA_F16, 0x1p-20, true}};
    const trama_attributes a = {.real = {[ADAM_BETA1] = 0.9, [ADAM_BETA2] = 0.9, [ADAM_EPS] = 1e-8}};
    volatile float tiny = 2e-38f;
    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
        tensor t[7], *arrays[10];
        for (int k = 0; k < 7; k++)
            t[k] = tensor_new(k < 4    ? tried[i].dtype
                              : k == 5 ? TRAMA_I64
                                       : TRAMA_F64,
                              PACKED, k < 4 ? TRAMA_SHAPE(33) : TRAMA_SCALAR);
        for (int k = 0; k < 4; k++)
            FOR_EACH(&t[k], place)
        put(&t[k], place, k == 1 || k == 2 ? tried[i].moment : 0);
        for (int k = 4; k < 7; k++)
            PUT(&t[k], k == 4 ? 0.5 : 1, 0);
        for (int k = 0; k < 10; k++)
            arrays[k] = &t[k < 3 ? k : k - 3];
        if (!is_half(tried[i].dtype)) {
            tensor_free(&t[4]);
            t[4] = tensor_new(tried[i].dtype, PACKED, TRAMA_SCALAR);
        }
        run_op("adam", &a, 3, 7, arrays);
#if defined __SSE2__ && !defined TESTS_ON_GPU
        for (int k = 1; k < 3; k++)
            FOR_EACH(&t[k], place)
        ck_assert_msg((at(&t[k], place) != 0) == tried[i].stays, "%s: %g", trama_dtype_name(tried[i].dtype),
                      at(&t[k], place));
#endif
        ck_assert(tiny / 4 > 0); /* others' arithmetic stays as it is */
        for (int k = 0; k < 7; k++)
            tensor_free(&t[k]);
    }
}
END_TEST

START_TEST(assign_if_overwrites_or_leaves)
{
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype++)
        for (int flag = 0; flag < 2; flag++) {
            tensor w = tensor_random((trama_dtype)dtype, BLOCK, TRAMA_SHAPE(20, 18), 1);
            tensor x = tensor_random((trama_dtype)dtype, TURNED, TRAMA_SHAPE(20, 18), 2);
            tensor before = tensor_random((trama_dtype)dtype, PACKED, TRAMA_SHAPE(20, 18), 1);
            tensor apply = tensor_new(TRAMA_U8, PACKED, TRAMA_SCALAR);
            PUT(&apply, flag, 0);
            run_op("assign_if", NULL, 1, 3, (tensor *[]){&w, &w, &x, &apply});
            FOR_EACH(&w, i)
            ck_assert(at(&w, i) == at(flag ? &x : &before, i));
            tensor_free(&w);
            tensor_free(&x);
            tensor_free(&before);
            tensor_free(&apply);
        }
}
END_TEST

RUN_TESTS("update", assign_overwrites_state_and_broadcasts, assign_if_overwrites_or_leaves, increment_adds_1,
          sgd_moves_against_the_gradient, moments_are_never_subnormal,
          updates_follow_the_published_formulas_where_they_apply)
