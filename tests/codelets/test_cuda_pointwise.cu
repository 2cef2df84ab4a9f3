// SPDX-License-Identifier: Apache-2.0
// Kernels of GPUs for pointwise ops and updates against those of CPUs: the same bits, but for functions on a card that
// are libm's, or for which CUDA has its own or fused multiply-adds. Every op of the lists in every element type, with
// every way in which operands can lie and be repeated.
#include "arrays.hpp"
#include "on_gpu.h"
#include "suite.h"

#include "formula.h"
#include "update.h"
#include "walk.cuh"

/* Of what stands in for a card, where elementary functions are the host's. */
extern "C" void simt_order(unsigned order) __attribute__((weak));

/* ---- Ops of one element type ----------------------------------------------------------------- */

typedef void cuda_kernel(const trama_call *call, const gpu *g);
struct tried_op {
    const trama_op *op;
    cuda_kernel *cuda;
    int operands;
    unsigned dtypes; /* bits */
};
#define OP(name, ...) extern "C" cuda_kernel cuda_##name;
#include "ops.def"
#define BIT(dtype, type, unused) | 1u << dtype
#define ROW(operands, name, types) {&trama_op_##name, cuda_##name, operands, 0 EACH_##types(BIT, )},
#define OPERANDS_UNARY 1
#define OPERANDS_BINARY 2
static const tried_op ops[] = {
#define POINTWISE(form, name, types, ...) ROW(OPERANDS_##form, name, types)
#define UNARY_BITS(name, types, ...) ROW(1, name, types)
#define BINARY_BITS(name, types, ...) ROW(2, name, types)
#include "ops.def"
};
static const trama_op *const comparisons[] = {
#define COMPARISON(name, ...) &trama_op_##name,
#include "ops.def"
};
static const trama_op *const predicates[] = {
#define PREDICATE(name, ...) &trama_op_##name,
#include "ops.def"
};

/* Roundings by which a card may differ from the host. */
static double units_of(const trama_op *op, trama_dtype dtype)
{
    const bool is_gelu = op == &trama_op_gelu || op == &trama_op_gelu_grad;
    static const trama_op *const math[] = {
#define UNARY_MATH(name, ...) &trama_op_##name,
#define BINARY_MATH(name, ...) &trama_op_##name,
#define POINTWISE_MATH(form, name, ...) &trama_op_##name,
#include "ops.def"
        &trama_op_softplus};
    static const trama_op *const by_exp_of_f32[] = {&trama_op_exp,       &trama_op_tanh,      &trama_op_sigmoid,
                                                    &trama_op_silu,      &trama_op_silu_grad, &trama_op_gelu,
                                                    &trama_op_gelu_grad, &trama_op_gelu_tanh, &trama_op_gelu_tanh_grad,
                                                    &trama_op_selu_grad, &trama_op_elu_grad,  &trama_op_celu_grad};
    bool own = op == &trama_op_log || op == &trama_op_adam || op == &trama_op_lamb || (is_gelu && dtype == TRAMA_F64);
    for (const trama_op *one : math)
        own |= op == one;
    for (const trama_op *one : by_exp_of_f32)
        own |= op == one && dtype != TRAMA_F64;
    const bool half = dtype == TRAMA_BF16 || dtype == TRAMA_F16;
    if (half && (is_gelu || (own && !simt_order))) /* with the digits of a half, rounded once */
        return 2;
    return own && !simt_order ? 8 : 0;
}

/* A gradient is a slope times an operand of up to 9; slopes near 0 are sums of two larger terms. */
static double least_of(const trama_op *op)
{
    const size_t length = strlen(op->name);
    return length > 5 && !strcmp(op->name + length - 5, "_grad") ? 9 : 1;
}

static const trama_attributes &reals()
{
    static trama_attributes a = {};
    a.real[0] = -0.75; /* a factor, a rate, a lower limit */
    a.real[1] = 3.5;
    return a;
}

/* Runs both kernels on copies of the result, and compares all of its memory. */
static void compare(const trama_op *op, const trama_attributes &with, const array &result,
                    const std::vector<const array *> &operands, const char *what)
{
    array of_cpu(result), of_gpu(result);
    std::vector<trama_view> views = {of_cpu.view};
    for (const array *x : operands)
        views.push_back(x == &result ? of_cpu.view : x->view);
    const call_on cpu(op, with, 1, views);
    for (trama_view &v : views)
        if (v.data == of_cpu.view.data)
            v = of_gpu.view;
    const call_on gpu(op, with, 1, views);
    kernel_of(op)->cpu(&cpu.call);
    ck_assert(on_gpu_call(&gpu.call));
    ck_assert_msg(of_gpu.equals(of_cpu, units_of(op, result.view.dtype), least_of(op)), "%s of %s, %s", op->name,
                  trama_dtype_name(result.view.dtype), what);
}

/* Shapes and orders of a result and two operands. */
struct trial {
    std::vector<int64_t> shape[3];
    order how[3];
    const char *what;
};
static const trial trials[] = {
    {{{1}, {1}, {1}}, {PACKED, PACKED, PACKED}, "one element"},
    {{{}, {}, {}}, {PACKED, PACKED, PACKED}, "scalars"},
    {{{0}, {0}, {0}}, {PACKED, PACKED, PACKED}, "nothing"},
    {{{5, 0, 3}, {5, 0, 3}, {1}}, {PACKED, PACKED, PACKED}, "nothing in three dims"},
    {{{64}, {64}, {64}}, {PACKED, PACKED, PACKED}, "whole packs"},
    {{{5003}, {5003}, {5003}}, {PACKED, PACKED, PACKED}, "several blocks and a rest"},
    {{{1003}, {1003}, {1}}, {PACKED, PACKED, PACKED}, "the second repeated"},
    {{{1003}, {1}, {1003}}, {PACKED, PACKED, PACKED}, "the first repeated"},
    {{{517}, {517}, {517}}, {SHIFTED, SHIFTED, SHIFTED}, "all misaligned"},
    {{{517}, {517}, {517}}, {PACKED, SHIFTED, PACKED}, "one misaligned"},
    {{{517}, {517}, {517}}, {SPARSE, PACKED, SPARSE}, "gaps"},
    {{{517}, {517}, {517}}, {PACKED, PACKED, SPARSE}, "gaps in one"},
    {{{37, 48}, {37, 48}, {48}}, {PACKED, PACKED, PACKED}, "a row for all rows"},
    {{{37, 49}, {37, 49}, {49}}, {PACKED, PACKED, PACKED}, "a row for all odd rows"},
    {{{37, 48}, {37, 1}, {37, 48}}, {BLOCK, PACKED, BLOCK}, "a column for all columns"},
    {{{37, 48}, {37, 48}, {37, 48}}, {BLOCK, PACKED, BLOCK}, "blocks"},
    {{{13, 7}, {13, 7}, {13, 7}}, {BLOCK, BLOCK, PACKED}, "odd blocks"},
    {{{24, 17}, {24, 17}, {24, 17}}, {TURNED, TURNED, TURNED}, "all turned"},
    {{{24, 32}, {24, 32}, {24, 32}}, {TURNED, PACKED, BLOCK}, "the result turned"},
    {{{3, 1, 5, 16}, {3, 4, 5, 16}, {5, 16}}, {BLOCK, BLOCK, PACKED}, "four dims"},
};

template <typename F> static void each_trial(const F &f)
{
    for (trial t : trials) {
        if (t.shape[0].size() == 4)
            t.shape[0][1] = 4;
        f(t);
    }
}

START_TEST(the_table_has_every_kernel)
{
    for (const tried_op &tried : ops)
        ck_assert_msg(kernel_of(tried.op)->cuda == tried.cuda, "%s", tried.op->name);
}
END_TEST

START_TEST(every_op_gives_the_bits_of_the_cpu)
{
    for (const tried_op &tried : ops)
        for (int dtype = 0; dtype < TRAMA_C64; dtype++)
            if (tried.dtypes >> dtype & 1)
                each_trial([&](const trial &t) {
                    const trama_dtype d = (trama_dtype)dtype;
                    array out(d, t.shape[0], t.how[0], 1), x(d, t.shape[1], t.how[1], 2), y(d, t.shape[2], t.how[2], 3);
                    std::vector<const array *> operands = {&x, &y};
                    operands.resize((size_t)tried.operands);
                    compare(tried.op, reals(), out, operands, t.what);
                });
}
END_TEST

START_TEST(special_numbers_give_the_bits_of_the_cpu)
{
    const double numbers[] = {0,     -0.0,    1,    -1,    NAN,  INFINITY, -INFINITY,
                              1e-40, -1e-310, 3e38, 1e308, 88.8, -104,     0x1p-149};
    const int n = sizeof numbers / sizeof numbers[0];
    for (const tried_op &tried : ops)
        for (int dtype = 0; dtype < TRAMA_C64; dtype++) {
            if (!(tried.dtypes >> dtype & 1))
                continue;
            const trama_dtype d = (trama_dtype)dtype;
            array out(d, {n * n}, PACKED, 1), x(d, {n * n}, PACKED, 1), y(d, {n * n}, PACKED, 1);
            for (int i = 0; i < n * n; i++) {
                x.put(i, numbers[i / n]);
                y.put(i, numbers[i % n]);
            }
            std::vector<const array *> operands = {&x, &y};
            operands.resize((size_t)tried.operands);
            compare(tried.op, reals(), out, operands, "special numbers");
        }
}
END_TEST

START_TEST(comparisons_and_casts_know_all_element_types)
{
    for (int from = 0; from < TRAMA_C64; from++)
        each_trial([&](const trial &t) {
            const trama_dtype d = (trama_dtype)from;
            array x(d, t.shape[1], t.how[1], 4), y(d, t.shape[2], t.how[2], 4);
            for (int64_t i = 0; i < x.count(); i += 3)
                x.put(i, 2);
            for (int64_t i = 0; i < y.count(); i += 2)
                y.put(i, 2);
            for (const trama_op *op : comparisons)
                compare(op, reals(), array(TRAMA_BOOL, t.shape[0], t.how[0], 1), {&x, &y}, t.what);
            for (const trama_op *op : predicates)
                compare(op, reals(), array(TRAMA_BOOL, t.shape[0], t.how[0], 1), {&x}, t.what);
            array c(TRAMA_BOOL, t.shape[1], t.how[1], 5);
            compare(&trama_op_select, reals(), array(d, t.shape[0], t.how[0], 1), {&c, &x, &y}, t.what);
            for (int to = 0; to < TRAMA_C64; to++)
                compare(&trama_op_cast, reals(), array((trama_dtype)to, t.shape[0], t.how[0], 1), {&x}, t.what);
        });
}
END_TEST

START_TEST(copies_and_what_a_scalar_turns_off)
{
    for (int dtype = 0; dtype < TRAMA_C64; dtype++)
        each_trial([&](const trial &t) {
            const trama_dtype d = (trama_dtype)dtype;
            array s(d, t.shape[0], t.how[0], 1), x(d, t.shape[2], t.how[2], 2), same(d, t.shape[0], t.how[1], 3);
            compare(&trama_op_assign, reals(), s, {&s, &x}, t.what);
            for (int kind = 0; kind < TRAMA_C64; kind++)
                for (int apply = 0; apply < 2; apply++) {
                    array flag((trama_dtype)kind, {}, PACKED, 1);
                    flag.put(0, apply);
                    compare(&trama_op_assign_if, reals(), s, {&s, &same, &flag}, t.what);
                }
        });
}
END_TEST

/* ---- Updates with scalar operands -------------------------------------------------------------- */

struct tried_update {
    const trama_op *op;
    int results, tensors, scalars;
};
#define UPDATE_ROW(EACH, name, n_results, n_tensors, n_scalars, ELEMENT)                                               \
    {&trama_op_##name, n_results, n_tensors, n_scalars},
static const tried_update updates[] = {UPDATE_OPS(UPDATE_ROW){&trama_op_accumulate, 1, 2, 2}};

/* Updates state in place on both sides and compares it. shape of the gradient, which may be repeated. */
static void compare_update(const tried_update &tried, trama_dtype dtype, const trial &t,
                           const std::vector<double> &scalars, trama_dtype scalar_dtype, bool flag)
{
    const bool makes = tried.results == 3 && tried.op == &trama_op_lamb; /* a result that is no state */
    const int states = tried.results - makes;
    trama_attributes with = {};
    with.integer[0] = flag;
    with.real[0] = 0.1, with.real[1] = 0.9, with.real[2] = 0.999, with.real[3] = 1e-8;
    std::vector<array> side[2], rest;
    for (int a = 0; a < tried.results; a++)
        for (auto &s : side)
            s.emplace_back(dtype, t.shape[0], t.how[a % 3], 10 + a);
    for (auto &s : side) /* second moments are not negative */
        for (int64_t i = 0; tried.results == 3 && i < s[0].count(); i++)
            s[makes ? 1 : 2].put(i, (double)(i % 19) / 7);
    for (int a = states; a < tried.tensors; a++)
        rest.emplace_back(dtype, a == tried.tensors - 1 ? t.shape[2] : t.shape[0], t.how[2], 20 + a);
    for (double x : scalars) {
        rest.emplace_back(scalar_dtype, std::vector<int64_t>(), PACKED, 1);
        rest.back().put(0, x);
    }
    for (int other = 0; other < 2; other++) {
        std::vector<trama_view> views;
        for (const array &s : side[other])
            views.push_back(s.view);
        for (int a = 0; a < states; a++)
            views.push_back(side[other][(size_t)a].view);
        for (const array &a : rest)
            views.push_back(a.view);
        const call_on c(tried.op, with, tried.results, views);
        for (int step = 0; step < 2; step++)
            if (other)
                ck_assert(on_gpu_call(&c.call));
            else
                kernel_of(tried.op)->cpu(&c.call);
    }
    for (int a = 0; a < tried.results; a++)
        ck_assert_msg(side[1][(size_t)a].equals(side[0][(size_t)a], units_of(tried.op, dtype)),
                      "result %d of %s of %s, %s", a, tried.op->name, trama_dtype_name(dtype), t.what);
}

START_TEST(updates_give_the_bits_of_the_cpu)
{
    const trama_dtype floats[] = {TRAMA_F32, TRAMA_F64, TRAMA_BF16, TRAMA_F16};
    for (const tried_update &tried : updates)
        for (trama_dtype dtype : floats)
            each_trial([&](const trial &t) {
                std::vector<double> scalars = {0.01, 3, 1};
                scalars.erase(scalars.begin(), scalars.end() - tried.scalars);
                if (tried.scalars == 2)
                    scalars[0] = 0.0625;
                for (int flag = 0; flag < 2; flag++)
                    for (double apply : {1.0, 0.0}) {
                        scalars.back() = apply;
                        compare_update(tried, dtype, t, scalars, TRAMA_F64, flag);
                    }
            });
}
END_TEST

START_TEST(scalars_of_updates_have_any_element_type)
{
    for (const tried_update &tried : updates)
        for (int dtype = 0; dtype < TRAMA_C64; dtype++) {
            std::vector<double> scalars((size_t)tried.scalars, 2);
            compare_update(tried, TRAMA_F32, trials[5], scalars, (trama_dtype)dtype, false);
        }
}
END_TEST

START_TEST(accumulate_reads_the_state_only_where_it_is_kept)
{
    for (double keep : {0.0, 1.0})
        for (double weight : {0.0, 1.0, 2.5}) {
            array m(TRAMA_F32, {701}, PACKED, 1), d(TRAMA_F32, {701}, PACKED, 2), k(TRAMA_U8, {}, PACKED, 3),
                w(TRAMA_F32, {}, PACKED, 4);
            k.put(0, keep);
            w.put(0, weight);
            if (keep == 0)
                m.put(5, NAN);
            if (weight == 0)
                d.put(6, NAN);
            compare(&trama_op_accumulate, reals(), m, {&m, &d, &k, &w}, "weighted");
        }
}
END_TEST

/* ---- Walks --------------------------------------------------------------------------------------- */

START_TEST(a_walk_in_parts_is_the_walk)
{
    each_trial([&](const trial &t) {
        for (int64_t most : {1, 7, 64, 200, 1 << 20}) {
            array to(TRAMA_I32, t.shape[0], t.how[0], 1), from(TRAMA_I64, t.shape[1], t.how[1], 2), want(to);
            const trama_view *view[2] = {&to.view, &from.view};
            const size_t size[2] = {4, 8};
            grid_walk<2> w;
            if (!grid_walk_of(&w, view))
                return;
            grid_walk_parts(w, size, most, [&](const grid_walk<2> &part) {
                ck_assert(part.count <= most && part.count > 0);
                for (uint32_t i = 0; i < part.count; i++) {
                    int64_t at[2];
                    grid_walk_at32(part, i, at);
                    ((int32_t *)part.data[0])[at[0]] = (int32_t)((int64_t *)part.data[1])[at[1]];
                }
            });
            const call_on c(&trama_op_cast, reals(), 1, {want.view, from.view});
            kernel_of(&trama_op_cast)->cpu(&c.call);
            ck_assert_msg(to.equals(want), "%s in parts of %d", t.what, (int)most);
        }
    });
}
END_TEST

START_TEST(a_quotient_is_that_of_a_division)
{
    randoms random = {1};
    for (int i = 0; i < 200000; i++) {
        const uint32_t by = (uint32_t)(1 + (i < 1000 ? i : random.next() * 0x1p30));
        const uint32_t n = (uint32_t)(i % 3 ? random.next() * 0x1p31 : (double)by * random.below(0x7fffffff / (int)by));
        ck_assert_uint_eq(quotient32(divisor_of(by), n), n / by);
        ck_assert_uint_eq(quotient32(divisor_of(by), n ? n - 1 : 0), (n ? n - 1 : 0) / by);
    }
}
END_TEST

int main(void)
{
    on_gpu_or_skip();
    const TTest *const tests[] = {the_table_has_every_kernel,
                                  every_op_gives_the_bits_of_the_cpu,
                                  special_numbers_give_the_bits_of_the_cpu,
                                  comparisons_and_casts_know_all_element_types,
                                  copies_and_what_a_scalar_turns_off,
                                  updates_give_the_bits_of_the_cpu,
                                  scalars_of_updates_have_any_element_type,
                                  accumulate_reads_the_state_only_where_it_is_kept,
                                  a_walk_in_parts_is_the_walk,
                                  a_quotient_is_that_of_a_division};
    return suite_run("cuda_pointwise", NULL, NULL, tests, sizeof tests / sizeof tests[0]);
}
