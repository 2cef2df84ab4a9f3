// SPDX-License-Identifier: Apache-2.0
// Chains of pointwise calls in one kernel, on what stands in for a GPU, against the same calls one by one: the same
// bits in all that is written, and nothing else written.
#include "arrays.hpp"
#include "on_gpu.h"
#include "suite.h"

#include "formula.h"
#include "update.h"

#include <memory>
#include <string>

typedef void cuda_kernel(const trama_call *call, const gpu *g);
struct tried_op {
    const trama_op *op;
    cuda_kernel *cuda;
    int results, tensors, scalars;
};
#define POINTWISE(form, name, ...) extern "C" cuda_kernel cuda_##name;
#define WITHOUT_MATH
#include "ops.def"
#define DECLARE_UPDATE(EACH, name, n_results, n_tensors, n_scalars, ELEMENT) extern "C" cuda_kernel cuda_##name;
#define UPDATE_ROW(EACH, name, n_results, n_tensors, n_scalars, ELEMENT)                                               \
    {&trama_op_##name, cuda_##name, n_results, n_tensors, n_scalars},
UPDATE_OPS(DECLARE_UPDATE) extern "C" cuda_kernel cuda_assign, cuda_assign_if, cuda_accumulate, cuda_cast;
#define OPERANDS_UNARY 1
#define OPERANDS_BINARY 2
static const tried_op ops[] = {
#define POINTWISE(form, name, ...) {&trama_op_##name, cuda_##name, 1, OPERANDS_##form, 0},
#define WITHOUT_MATH
#include "ops.def"
    {&trama_op_assign, cuda_assign, 1, 2, 0}};
static const tried_op updates[] = {UPDATE_OPS(UPDATE_ROW){&trama_op_accumulate, cuda_accumulate, 1, 2, 2},
                                   {&trama_op_assign_if, cuda_assign_if, 1, 2, 1}};
static const tried_op cast = {&trama_op_cast, cuda_cast, 1, 1, 0};
enum { N_OPS = sizeof ops / sizeof ops[0], N_UPDATES = sizeof updates / sizeof updates[0] };

/* ---- Random chains ------------------------------------------------------------------------------ */

/* Numbers of arrays in place of views. */
struct planned_call {
    const tried_op *tried;
    std::vector<size_t> out, in;
    unsigned inner;
    trama_attributes with;
};

struct planned_chain {
    trama_dtype dtype;
    std::vector<int64_t> shape;
    std::vector<array> arrays;
    std::vector<planned_call> calls;
    std::vector<size_t> terms;
    size_t sum = 0;
    kernel_combine combine = COMBINE_SUM;
    double scale = 1;
    std::vector<bool> unwritten; /* of arrays: the sum, and inner results */

    size_t add(const std::vector<int64_t> &of, order how, uint64_t seed)
    {
        return add(of, how, seed, dtype);
    }
    size_t add(const std::vector<int64_t> &of, order how, uint64_t seed, trama_dtype type)
    {
        arrays.emplace_back(type, of, how, seed);
        unwritten.push_back(false);
        return arrays.size() - 1;
    }
};

static const order orders[] = {PACKED, PACKED, PACKED, BLOCK, SHIFTED, SPARSE};

static order any_order(randoms &r, bool alike)
{
    return alike ? PACKED : orders[r.below(6)];
}

/* A value that was made, or a new array, maybe one that is repeated. */
static size_t any_operand(planned_chain &c, randoms &r, const std::vector<size_t> &made, bool alike)
{
    if (!made.empty() && r.below(3))
        return r.below(2) ? made.back() : made[(size_t)r.below((int)made.size())];
    const int kind = r.below(6);
    std::vector<int64_t> shape = c.shape;
    if (kind == 0)
        shape = {};
    else if (kind == 1 && shape.size() == 2)
        shape = {shape[1]};
    else if (kind == 2 && shape.size() == 2)
        shape = {shape[0], 1};
    return c.add(shape, any_order(r, alike), (uint64_t)r.below(1 << 30));
}

static void add_update(planned_chain &c, randoms &r, const std::vector<size_t> &made)
{
    planned_call call = {&updates[r.below(N_UPDATES)], {}, {}, 0, {}};
    const int states = call.tried->op == &trama_op_lamb ? 2 : call.tried->results;
    call.with.integer[0] = r.below(2);
    call.with.real[0] = 0.1, call.with.real[1] = 0.9, call.with.real[2] = 0.999, call.with.real[3] = 1e-8;
    for (int a = 0; a < call.tried->results; a++)
        call.out.push_back(c.add(c.shape, PACKED, (uint64_t)r.below(1 << 30)));
    call.in.assign(call.out.begin(), call.out.begin() + states);
    for (int a = states; a < call.tried->tensors; a++)
        call.in.push_back(any_operand(c, r, made, true));
    for (int a = 0; a < call.tried->scalars; a++) {
        const size_t scalar = c.add({}, PACKED, 1);
        c.arrays[scalar].put(0, a == call.tried->scalars - 1 ? (r.below(3) > 0) : 2);
        call.in.push_back(scalar);
    }
    c.calls.push_back(call);
}

static void add_terms(planned_chain &c, randoms &r, std::vector<size_t> &made, bool alike)
{
    const kernel_combine kinds[] = {COMBINE_SUM, COMBINE_MAX, COMBINE_MIN};
    c.sum = c.add(c.shape, PACKED, 1);
    c.unwritten[c.sum] = true;
    c.combine = kinds[r.below(3)];
    c.scale = r.below(2) ? 1 : 0.3;
    for (int t = 1 + r.below(5); t > 0; t--)
        c.terms.push_back(c.add(c.shape, any_order(r, alike), (uint64_t)r.below(1 << 30)));
    made.push_back(c.sum);
}

static const trama_dtype floats[] = {TRAMA_F32, TRAMA_F64, TRAMA_BF16, TRAMA_F16};

/* A cast of a new array, or of a value to another type, which no call reads. */
static void add_cast(planned_chain &c, randoms &r, std::vector<size_t> &made, bool alike)
{
    trama_dtype other = floats[r.below(4)];
    planned_call call = {&cast, {}, {}, 0, {}};
    if (c.calls.empty() || r.below(2)) {
        const std::vector<int64_t> row = {c.shape.back()};
        call.in = {c.add(r.below(4) ? c.shape : row, any_order(r, alike), (uint64_t)r.below(1 << 30), other)};
        call.out = {c.add(c.shape, any_order(r, alike), 2)};
        call.inner = (unsigned)r.below(2);
        c.unwritten[call.out[0]] = call.inner;
        made.push_back(call.out[0]);
    } else {
        call.in = {any_operand(c, r, made, alike)};
        call.out = {c.add(c.shape, any_order(r, alike), 2, other)};
    }
    c.calls.push_back(call);
}

static planned_chain any_chain(trama_dtype dtype, uint64_t seed)
{
    randoms r = {seed};
    const std::vector<int64_t> shapes[] = {{1}, {5}, {64}, {1003}, {24, 32}, {17, 7}, {9, 40}, {0}, {3, 0}};
    planned_chain c = {};
    c.dtype = dtype;
    c.shape = shapes[r.below(9)];
    const bool alike = r.below(2);
    std::vector<size_t> made;
    if (!r.below(3))
        add_terms(c, r, made, alike);
    for (int n = 1 + r.below(6); n > 0; n--) {
        if (!r.below(4)) {
            add_cast(c, r, made, alike);
            continue;
        }
        planned_call call = {&ops[r.below(N_OPS)], {}, {}, 0, {}};
        call.with.real[0] = -0.75;
        call.with.real[1] = 3.5;
        for (int a = 0; a < call.tried->tensors; a++)
            call.in.push_back(any_operand(c, r, made, alike));
        bool whole = !r.below(4) && c.arrays[call.in[0]].view.ndim == (int)c.shape.size() && !c.unwritten[call.in[0]];
        for (int d = 0; whole && d < (int)c.shape.size(); d++)
            whole = c.arrays[call.in[0]].view.extent[d] == c.shape[(size_t)d];
        call.out = {whole ? call.in[0] : c.add(c.shape, any_order(r, alike), 2)};
        call.inner = !whole && r.below(2);
        c.unwritten[call.out[0]] = call.inner;
        made.push_back(call.out[0]);
        c.calls.push_back(call);
    }
    if (r.below(2))
        add_update(c, r, made);
    return c;
}

/* ---- Both ways ---------------------------------------------------------------------------------- */

struct run {
    const planned_chain *c;
    bool chained, done;
};

static void run_on_device(const trama_view *device, const gpu *g, void *with)
{
    struct run *r = (struct run *)with;
    std::vector<std::unique_ptr<call_on>> on;
    std::vector<trama_call> calls;
    std::vector<trama_view> terms;
    std::vector<unsigned> inner;
    for (const planned_call &p : r->c->calls) {
        std::vector<trama_view> views;
        for (size_t a : p.out)
            views.push_back(device[a]);
        for (size_t a : p.in)
            views.push_back(device[a]);
        on.emplace_back(new call_on(p.tried->op, p.with, (int)p.out.size(), views));
        calls.push_back(on.back()->call);
        inner.push_back(p.inner);
    }
    for (size_t t : r->c->terms)
        terms.push_back(device[t]);
    const kernel_chain chain = {(int)calls.size(),  calls.data(), inner.data(),  (int)terms.size(),
                                &device[r->c->sum], terms.data(), r->c->combine, r->c->scale};
    if (r->chained)
        r->done = gpu_chain(&chain, g);
    for (size_t i = 0; !r->chained && i < calls.size(); i++)
        r->c->calls[i].tried->cuda(&calls[i], g);
}

/* The sum is made by the host, which adds in the same order. */
static bool run_both(const planned_chain &one_by_one, const planned_chain &chained)
{
    const planned_chain *sides[] = {&one_by_one, &chained};
    bool done = false;
    std::vector<trama_view> terms;
    for (size_t t : one_by_one.terms)
        terms.push_back(one_by_one.arrays[t].view);
    if (!terms.empty())
        kernel_reduce(&one_by_one.arrays[one_by_one.sum].view, (int)terms.size(), terms.data(), one_by_one.combine,
                      one_by_one.scale);
    for (int side = 0; side < 2; side++) {
        std::vector<trama_view> views;
        for (const array &a : sides[side]->arrays)
            views.push_back(a.view);
        struct run r = {sides[side], side == 1, false};
        on_gpu_run((int)views.size(), (int)views.size(), views.data(), run_on_device, &r);
        done = r.done;
    }
    return done;
}

static std::string text_of(const planned_chain &c)
{
    std::string text = trama_dtype_name(c.dtype);
    for (int64_t extent : c.shape)
        text += " " + std::to_string(extent);
    if (!c.terms.empty())
        text += ": sum of " + std::to_string(c.terms.size());
    for (const planned_call &call : c.calls) {
        text += std::string(", ") + call.tried->op->name + "(";
        for (size_t a : call.in)
            text += " " + std::to_string(a);
        text += ") = " + std::to_string(call.out[0]) + (call.inner ? " inner" : "");
    }
    return text;
}

START_TEST(a_chain_gives_the_bits_of_its_calls)
{
    int taken = 0, tried = 0;
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        const planned_chain before = any_chain(floats[seed % 4], seed), one_by_one(before), chained(before);
        const bool done = run_both(one_by_one, chained);
        for (size_t a = 0; a < before.arrays.size(); a++) {
            const planned_chain &want = done && !before.unwritten[a] ? one_by_one : before;
            ck_assert_msg(chained.arrays[a].equals(want.arrays[a]), "array %d of chain %d: %s", (int)a, (int)seed,
                          text_of(before).c_str());
        }
        taken += done;
        tried++;
    }
    ck_assert_msg(taken > tried / 2, "%d of %d chains were taken", taken, tried);
}
END_TEST

/* ---- Refused chains ----------------------------------------------------------------------------- */

/* relu of a, and op of that. */
static bool is_taken(const trama_op *op, const std::vector<int64_t> &shape, trama_dtype dtype, trama_dtype last,
                     order how)
{
    const array a(dtype, shape, how, 1), b(dtype, shape, PACKED, 2), c(last, shape, PACKED, 3);
    const tried_op first = {&trama_op_relu, cuda_relu, 1, 1, 0}, second = {op, nullptr, 1, 1, 0};
    planned_chain chain = {};
    for (const array *x : {&a, &b, &c})
        chain.arrays.push_back(*x);
    chain.calls = {{&first, {1}, {0}, 0, {}}, {&second, {2}, {1}, 0, {}}};
    const trama_view views[] = {a.view, b.view, c.view};
    struct run r = {&chain, true, false};
    on_gpu_run(3, 3, views, run_on_device, &r);
    return r.done;
}

START_TEST(what_is_not_for_one_kernel_is_refused)
{
    trama_op own = trama_op_relu;
    own.name = "mine";
    ck_assert(is_taken(&trama_op_tanh, {40}, TRAMA_F32, TRAMA_F32, PACKED));
    ck_assert(is_taken(&trama_op_tanh, {4, 10}, TRAMA_F32, TRAMA_F32, SPARSE));
    ck_assert(!is_taken(&own, {40}, TRAMA_F32, TRAMA_F32, PACKED));
    ck_assert(is_taken(&trama_op_cast, {40}, TRAMA_F32, TRAMA_F64, PACKED));
    ck_assert(is_taken(&trama_op_cast, {4, 10}, TRAMA_F32, TRAMA_BF16, SPARSE));
    ck_assert(!is_taken(&trama_op_cast, {40}, TRAMA_F32, TRAMA_I32, PACKED));
    ck_assert(!is_taken(&trama_op_tanh, {40}, TRAMA_F32, TRAMA_F64, PACKED));
    ck_assert(!is_taken(&trama_op_neg, {40}, TRAMA_I32, TRAMA_I32, PACKED));
    ck_assert(!is_taken(&trama_op_softmax, {40}, TRAMA_F32, TRAMA_F32, PACKED));
    ck_assert(!is_taken(&trama_op_tanh, {4, 5, 6}, TRAMA_F32, TRAMA_F32, TURNED));
}
END_TEST

START_TEST(long_chains_are_refused)
{
    for (size_t n : {16, 17}) {
        const tried_op relu = {&trama_op_relu, cuda_relu, 1, 1, 0};
        planned_chain chain = {};
        chain.arrays.emplace_back(TRAMA_F32, std::vector<int64_t>{40}, PACKED, 1);
        chain.calls.assign(n, {&relu, {0}, {0}, 0, {}});
        struct run r = {&chain, true, false};
        on_gpu_run(1, 1, &chain.arrays[0].view, run_on_device, &r);
        ck_assert_int_eq(r.done, n == 16);
    }
}
END_TEST

int main(void)
{
    on_gpu_or_skip();
    const TTest *const tests[] = {a_chain_gives_the_bits_of_its_calls, what_is_not_for_one_kernel_is_refused,
                                  long_chains_are_refused};
    return suite_run("cuda_chain", NULL, NULL, tests, sizeof tests / sizeof tests[0]);
}
