/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of complex numbers against their references, in c64 and c128 and every memory order. */
#include <complex.h>
#include <float.h>

#include "cases.h"
#include "ops.h"
#include "program.h"
#include "reference.h"
#include "views.h"

/* c64 in the place of c128, and f32 in that of f64 beside it. */
static trama_dtype type_of(const trama_value *v, bool narrow)
{
    return narrow && v->dtype == TRAMA_C128 ? TRAMA_C64 : narrow && v->dtype == TRAMA_F64 ? TRAMA_F32 : v->dtype;
}

static int parts(trama_dtype dtype)
{
    return dtype == TRAMA_C64 || dtype == TRAMA_C128 ? 2 : 1;
}

static trama_dtype part_type(trama_dtype dtype)
{
    return dtype == TRAMA_C64 ? TRAMA_F32 : dtype == TRAMA_C128 ? TRAMA_F64 : dtype;
}

static void *part_at(const tensor *t, const int64_t *index, int part)
{
    return (char *)element(&t->view, index) + (size_t)part * trama_dtype_size(part_type(t->view.dtype));
}

typedef struct array {
    tensor t;
    double *at; /* the same, as the reference has it */
    int64_t n;  /* doubles */
    trama_view view;
} array;

static array array_new(const trama_value *v, bool narrow, order how)
{
    const trama_dtype dtype = type_of(v, narrow);
    array a = {.t = tensor_new(dtype, how, v->shape), .n = trama_shape_count(v->shape) * parts(dtype)};
    a.at = calloc((size_t)a.n + 1, sizeof *a.at);
    dense d = {v->shape, a.at};
    a.view = dense_view(&d, dtype);
    return a;
}

/* Elements of the case's domain, rounded to the type. */
static void fill(array *a, const op_case *c, const trama_node *node, int operand)
{
    dense d = dense_of_domain(TRAMA_SHAPE(a->n), c->domains[operand], case_classes(node), (uint64_t)operand + 3);
    const trama_dtype type = part_type(a->t.view.dtype);
    int64_t next = 0;
    FOR_EACH(&a->t, index)
    for (int part = 0; part < parts(a->t.view.dtype); part++) {
        void *to = part_at(&a->t, index, part);
        write_as(type, to, d.at[next]);
        a->at[next++] = read_as(type, to);
    }
    dense_free(&d);
}

static void compare(const op_case *c, const array *a)
{
    const trama_dtype dtype = a->t.view.dtype, type = part_type(dtype);
    int64_t next = 0;
    FOR_EACH(&a->t, index)
    for (int part = 0; part < parts(dtype); part++) {
        const double got = read_as(type, part_at(&a->t, index, part)), want = a->at[next++];
        ck_assert_msg(near(type, got, want, 256), "%s, %s: part %lld is %.17g, not %.17g", c->name,
                      trama_dtype_name(dtype), (long long)next - 1, got, want);
    }
    ck_assert_msg(outside_untouched(&a->t), "%s writes beside its result", c->name);
}

static void try_order(const op_case *c, const trama_node *node, bool narrow, order how)
{
    const int n_in = node->op->n_in;
    array arrays[TRAMA_MAX_OPERANDS + 1] = {0};
    trama_view kernels[TRAMA_MAX_OPERANDS + 1], references[TRAMA_MAX_OPERANDS + 1];
    for (int i = 0; i <= n_in; i++) {
        const trama_value *v = i ? node->in[i - 1] : node->out[0];
        const bool is_total = i == 0 && node->op == &trama_op_sum_square; /* f64 always */
        arrays[i] = array_new(v, narrow && !is_total, (order)((how + i) % N_ORDERS));
        if (i)
            fill(&arrays[i], c, node, i - 1);
        kernels[i] = arrays[i].t.view;
        references[i] = arrays[i].view;
    }
    trama_call call = {node->op, node->attributes, n_in, 1, references + 1, references, false};
    reference_call(&call);
    call.in = kernels + 1;
    call.out = kernels;
    run_call(&call);
    compare(c, &arrays[0]);
    for (int i = 0; i <= n_in; i++) {
        tensor_free(&arrays[i].t);
        free(arrays[i].at);
    }
}

static bool has_complex(const trama_node *node)
{
    bool has = parts(node->out[0]->dtype) > 1;
    for (int i = 0; i < node->op->n_in; i++)
        has |= parts(node->in[i]->dtype) > 1;
    return has;
}

START_TEST(every_kernel_of_complex_numbers_gives_what_its_reference_gives)
{
    int n = 0;
    for (int i = 0; i < n_op_cases; i++)
        for (int variant = 0; variant < N_VARIANTS; variant++) {
            trama_program *p = trama_program_create();
            const trama_value *y = op_cases[i].build(p, &op_cases[i], variant);
            ck_assert_msg(y != NULL, "%s: %s", op_cases[i].name, trama_program_error(p));
            const bool casts = !strcmp(op_cases[i].op, "cast"); /* the attribute names a type */
            const bool empty = !strcmp(op_cases[i].op, "mean") && !trama_shape_count(y->node->in[0]->shape);
            for (int how = 0; how < 2 * N_ORDERS && has_complex(y->node); how++) {
                if (empty || (casts && how >= N_ORDERS)) /* the mean of nothing is NaN */
                    continue;
                try_order(&op_cases[i], y->node, how >= N_ORDERS, (order)(how % N_ORDERS));
                n++;
            }
            trama_program_destroy(&p);
        }
    ck_assert_int_gt(n, 1000);
}
END_TEST

START_TEST(every_real_type_becomes_complex)
{
    for (int from = 0; from < N_REAL_DTYPES; from++)
        for (int to = TRAMA_C64; to <= TRAMA_C128; to++) {
            tensor x = tensor_random((trama_dtype)from, TURNED, TRAMA_SHAPE(5, 9), 5);
            tensor z = tensor_new((trama_dtype)to, BLOCK, TRAMA_SHAPE(5, 9));
            run_unary("cast", NULL, &z, &x);
            FOR_EACH(&z, index)
            {
                const trama_dtype type = part_type((trama_dtype)to);
                ck_assert(read_as(type, part_at(&z, index, 0)) == at(&x, index));
                ck_assert(read_as(type, part_at(&z, index, 1)) == 0);
            }
            ck_assert(outside_untouched(&z));
            tensor_free(&x);
            tensor_free(&z);
        }
}
END_TEST

/* z of large and small numbers, whose squares are beyond the type. */
START_TEST(quotients_and_magnitudes_neither_overflow_nor_vanish)
{
    static const double scales[] = {0x1p100, 0x1p-100};
    for (int s = 0; s < 2; s++) {
        tensor x = tensor_new(TRAMA_C64, PACKED, TRAMA_SHAPE(1)), y = tensor_new(TRAMA_C64, PACKED, TRAMA_SHAPE(1)),
               q = tensor_new(TRAMA_C64, PACKED, TRAMA_SHAPE(1)), size = tensor_new(TRAMA_F32, PACKED, TRAMA_SHAPE(1));
        const float unit = (float)scales[s];
        *(trama_c64 *)x.view.data = CMPLXF(10 * unit, 5 * unit);
        *(trama_c64 *)y.view.data = CMPLXF(3 * unit, 4 * unit);
        run_binary("div", NULL, &q, &x, &y);
        const trama_c64 quotient = *(trama_c64 *)q.view.data;
        ck_near(TRAMA_F32, crealf(quotient), 2, 4);
        ck_near(TRAMA_F32, cimagf(quotient), -1, 4);
        run_unary("magnitude", NULL, &size, &y);
        ck_near(TRAMA_F32, *(float *)size.view.data / unit, 5, 4);
        tensor_free(&x);
        tensor_free(&y);
        tensor_free(&q);
        tensor_free(&size);
    }
}
END_TEST

/* Where the sigmoid rounds to nearly 1, z times what is missing to 1 still counts. */
START_TEST(slopes_of_silu_far_out_have_all_digits)
{
    tensor x = tensor_new(TRAMA_C64, PACKED, TRAMA_SHAPE(1)), g = tensor_new(TRAMA_C64, PACKED, TRAMA_SHAPE(1));
    for (int i = -2000; i <= 2000; i++) {
        const trama_c64 z = *(trama_c64 *)x.view.data = CMPLXF(0.01f * (float)i, 0.5f);
        *(trama_c64 *)g.view.data = 1;
        run_binary("silu_grad", NULL, &g, &g, &x);
        const trama_c128 slope = 1 / (1 + cexp(-z)) * (1 + z / (1 + cexp(z)));
        const trama_c64 got = *(trama_c64 *)g.view.data;
        ck_assert_msg(cabs(got - slope) <= 6 * FLT_EPSILON * cabs(slope), "at %g + %g i: %.9g + %.9g i", crealf(z),
                      cimagf(z), crealf(got), cimagf(got));
    }
    tensor_free(&x);
    tensor_free(&g);
}
END_TEST

RUN_TESTS("complex_kernels", every_kernel_of_complex_numbers_gives_what_its_reference_gives,
          every_real_type_becomes_complex, quotients_and_magnitudes_neither_overflow_nor_vanish,
          slopes_of_silu_far_out_have_all_digits)
