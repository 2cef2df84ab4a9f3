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
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype++) {
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
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype++)
        for (int orders = 0; orders < N_ORDERS * N_ORDERS; orders++) {
            tensor w = tensor_random((trama_dtype)dtype, (order)(orders / N_ORDERS), TRAMA_SHAPE(7, 45), 1);
            tensor g = tensor_random((trama_dtype)dtype, (order)(orders % N_ORDERS), TRAMA_SHAPE(7, 45), 2);
            tensor want = tensor_new(TRAMA_F64, PACKED, TRAMA_SHAPE(7, 45));
            FOR_EACH(&w, i)
            {
                const double moved = at(&w, i) - 0.125 * at(&g, i);
                put(&want, i,
                    trama_dtype_is_float((trama_dtype)dtype) ? moved
                    : dtype == TRAMA_U8                      ? fmax(0, trunc(moved))
                                                             : trunc(moved));
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

typedef struct state {
    double w, m, v;
} state;

/* Loshchilov & Hutter 2019, algorithm 2, with eta = lr and alpha = 1 */
static void adamw_step(state *s, double g, double t)
{
    s->m = 0.9 * s->m + (1 - 0.9) * g;
    s->v = 0.999 * s->v + (1 - 0.999) * g * g;
    s->w -= 0.01 * (s->m / (1 - pow(0.9, t)) / (sqrt(s->v / (1 - pow(0.999, t))) + 1e-8) + 0.1 * s->w);
}

/* f32 rounds in a dozen operations a step; after the first, m over sqrt v is well conditioned for steady gradients */
static void check_adamw(trama_dtype dtype, order state_order, order g_order, double tolerance)
{
    const trama_attributes attributes = {.real = {0.01, 0.9, 0.999, 1e-8, 0.1}};
    const trama_shape shape = TRAMA_SHAPE(5, 37);
    tensor w = tensor_random(dtype, state_order, shape, 1), g = tensor_random(dtype, g_order, shape, 2);
    tensor m = tensor_new(dtype, state_order, shape), v = tensor_new(dtype, state_order, shape);
    tensor t = tensor_new(TRAMA_I64, PACKED, TRAMA_SCALAR);
    state *want = calloc((size_t)count_of(&w), sizeof *want);
    int64_t n = 0;

    FOR_EACH(&w, i)
    {
        want[n++].w = at(&w, i);
        put(&m, i, 0);
        put(&v, i, 0);
    }
    for (int step = 1; step <= 5; step++) {
        PUT(&t, step, 0);
        run_op("adamw", &attributes, 3, 5, (tensor *[]){&w, &m, &v, &w, &m, &v, &g, &t});
        n = 0;
        FOR_EACH(&w, i)
        {
            state *s = &want[n++];
            adamw_step(s, at(&g, i), step);
            ck_assert_double_eq_tol(at(&w, i), s->w, tolerance * (1 + fabs(s->w)));
            ck_assert_double_eq_tol(at(&m, i), s->m, tolerance * (1 + fabs(s->m)));
            ck_assert_double_eq_tol(at(&v, i), s->v, tolerance * (1 + fabs(s->v)));
        }
    }
    ck_assert(outside_untouched(&w) && outside_untouched(&m) && outside_untouched(&v));
    tensor_free(&w);
    tensor_free(&m);
    tensor_free(&v);
    tensor_free(&g);
    tensor_free(&t);
    free(want);
}

START_TEST(adamw_follows_the_published_algorithm)
{
    for (int how = 0; how < N_ORDERS; how++)
        for (int g = 0; g < N_ORDERS; g++) {
            check_adamw(TRAMA_F64, (order)how, (order)g, 1e-14);
            check_adamw(TRAMA_F32, (order)how, (order)g, 1e-6);
        }
}
END_TEST

RUN_TESTS("update", assign_overwrites_state_and_broadcasts, increment_adds_1, sgd_moves_against_the_gradient,
          adamw_follows_the_published_algorithm)
