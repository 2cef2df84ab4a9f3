/* SPDX-License-Identifier: Apache-2.0 */
/* Attention and its gradient: several blocks against the reference, values of PyTorch, rows without a key, memory. */
#include "dense.h"
#include "reference.h"
#include "refusal.h"
#include "views.h"

/* Shapes [heads, n, d], [groups, m, d], [groups, m, e], and a mask [n, m] if masked. */
typedef struct sizes {
    int64_t heads, groups, n, m, d, e;
    bool causal;
    int mask; /* its dtype, or NO_MASK */
} sizes;

enum { NO_MASK = -1, MOST = 12 };

/* Results, then operands. */
typedef struct call_arrays {
    int n_out, n_in;
    tensor at[MOST];
    trama_attributes attributes;
} call_arrays;

static trama_shape shape_of_3(int64_t a, int64_t b, int64_t c)
{
    return TRAMA_SHAPE(a, b, c);
}

static call_arrays arrays_of(const sizes *s, trama_dtype dtype, order how, bool gradient)
{
    const trama_dtype sums = dtype == TRAMA_F64 ? TRAMA_F64 : TRAMA_F32;
    const trama_shape q = shape_of_3(s->heads, s->n, s->d), k = shape_of_3(s->groups, s->m, s->d),
                      v = shape_of_3(s->groups, s->m, s->e), out = shape_of_3(s->heads, s->n, s->e),
                      rows = TRAMA_SHAPE(s->heads, s->n);
    const bool masked = s->mask != NO_MASK;
    call_arrays a = {.n_out = gradient ? 3 : 2, .attributes = {.integer = {s->causal}}};
    tensor *in = a.at + a.n_out;
    a.at[0] = tensor_new(dtype, how, gradient ? q : out);
    a.at[1] = tensor_new(gradient ? dtype : sums, how, gradient ? k : rows);
    if (gradient)
        a.at[2] = tensor_new(dtype, how, v);
    in[a.n_in++] = tensor_random(dtype, how, q, 1);
    in[a.n_in++] = tensor_random(dtype, how, k, 2);
    in[a.n_in++] = tensor_random(dtype, how, v, 3);
    if (masked)
        in[a.n_in++] = tensor_random((trama_dtype)s->mask, how, TRAMA_SHAPE(s->n, s->m), 4);
    if (gradient) {
        in[a.n_in++] = tensor_random(sums, how, rows, 5);
        in[a.n_in++] = tensor_random(sums, how, rows, 6);
        in[a.n_in++] = tensor_random(dtype, how, out, 7);
    }
    return a;
}

static void arrays_free(call_arrays *a)
{
    for (int i = 0; i < a->n_out + a->n_in; i++)
        tensor_free(&a->at[i]);
}

static const trama_op *op_of(const sizes *s, bool gradient)
{
    const bool masked = s->mask != NO_MASK;
    return gradient ? (masked ? &trama_op_attention_masked_grad : &trama_op_attention_grad)
                    : (masked ? &trama_op_attention_masked : &trama_op_attention);
}

static void run(call_arrays *a, const trama_op *op, trama_view *views, bool goes_on, void (*with)(const trama_call *))
{
    const trama_call call = {op, &a->attributes, a->n_in, a->n_out, views + a->n_out, views, goes_on};
    with(&call);
}

/* The same in doubles; the caller frees the dense. */
static void run_reference(call_arrays *a, const trama_op *op, dense *d)
{
    trama_view views[MOST];
    for (int i = 0; i < a->n_out + a->n_in; i++) {
        const trama_view *v = &a->at[i].view;
        int64_t next = 0;
        d[i] = dense_new(trama_shape_of(v->ndim, v->extent));
        FOR_EACH(&a->at[i], index)
        d[i].at[next++] = i < a->n_out ? 0 : at(&a->at[i], index);
        views[i] = dense_view(&d[i], v->dtype);
    }
    run(a, op, views, false, reference_call);
}

static void run_kernel(call_arrays *a, const trama_op *op)
{
    trama_view views[MOST];
    for (int i = 0; i < a->n_out + a->n_in; i++)
        views[i] = a->at[i].view;
    run(a, op, views, false, run_call);
}

/* The sizes of a gradient's terms: lse is that of the scores, so that the probabilities add up to 1. */
static void set_lse(const sizes *s, trama_dtype dtype, order how, call_arrays *gradient)
{
    call_arrays forward = arrays_of(s, dtype, how, false);
    tensor *lse = &gradient->at[gradient->n_out + gradient->n_in - 3];
    run_kernel(&forward, op_of(s, false));
    FOR_EACH(lse, index)
    put(lse, index, at(&forward.at[1], index));
    arrays_free(&forward);
}

/* Sums of up to 600 products, in f32, of probabilities and slopes that were rounded; where these are halves, by as much
 * as the largest sum takes. */
static double units_of(const trama_op *op, trama_dtype dtype, const dense *want)
{
    double largest = 1;
    for (int64_t i = 0; i < trama_shape_count(want->shape); i++)
        largest = fmax(largest, isfinite(want->at[i]) ? fabs(want->at[i]) : 0);
    return rounds_probabilities(op, dtype) ? half_units(dtype) * largest : 8192;
}

static void compare(const sizes *s, trama_dtype dtype, order how, bool gradient)
{
    dense d[MOST];
    call_arrays a = arrays_of(s, dtype, how, gradient);
    const trama_op *op = op_of(s, gradient);
    if (gradient)
        set_lse(s, dtype, how, &a);
    run_kernel(&a, op);
    run_reference(&a, op, d);
    for (int o = 0; o < a.n_out; o++) {
        const double units = units_of(op, dtype, &d[o]);
        int64_t next = 0;
        FOR_EACH(&a.at[o], index)
        {
            const double got = at(&a.at[o], index), want = d[o].at[next++];
            ck_assert_msg(near(a.at[o].view.dtype, got, want, units), "%s, %s, order %d, result %d: %.9g, not %.9g",
                          op->name, trama_dtype_name(dtype), how, o, got, want);
        }
        ck_assert(outside_untouched(&a.at[o]));
    }
    for (int i = 0; i < a.n_out + a.n_in; i++)
        dense_free(&d[i]);
    arrays_free(&a);
}

static const sizes several_blocks[] = {
    {2, 2, 131, 517, 5, 3, false, NO_MASK},   {2, 1, 67, 300, 3, 4, true, NO_MASK},
    {4, 2, 300, 67, 2, 1, true, NO_MASK},     {2, 2, 65, 257, 7, 2, false, TRAMA_BOOL},
    {2, 1, 129, 513, 2, 5, true, TRAMA_BOOL}, {1, 1, 64, 256, 16, 16, true, TRAMA_F32},
};

START_TEST(several_blocks_give_what_the_reference_gives)
{
    for (size_t i = 0; i < sizeof several_blocks / sizeof *several_blocks; i++)
        for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype = next_float(dtype)) {
            sizes s = several_blocks[i];
            s.mask = s.mask == TRAMA_F32 ? dtype : s.mask;
            compare(&s, (trama_dtype)dtype, (order)((int)i % N_ORDERS), false);
            compare(&s, (trama_dtype)dtype, (order)((int)(i + 1) % N_ORDERS), true);
        }
}
END_TEST

/* ---- Keys in turn ---- */

/* Cuts a dim of the view, counted from its last, to [from, from + n). */
static void cut(trama_view *v, int last, int64_t from, int64_t n)
{
    const int d = v->ndim - 1 - last;
    v->data = (char *)v->data + from * v->stride[d] * (int64_t)trama_dtype_size(v->dtype);
    v->offset[d] = from;
    v->extent[d] = n;
}

/* The kernel on four parts of the keys, the last part first, each going on from the one before. */
static void run_in_turn(call_arrays *a, const sizes *s, const trama_op *op, bool gradient)
{
    const int64_t bound[] = {0, s->m / 3, s->m / 3, s->m / 2, s->m}; /* one part is empty */
    for (int k = 3; k >= 0; k--) {
        trama_view views[MOST];
        for (int i = 0; i < a->n_out + a->n_in; i++) {
            const bool keys = i == a->n_out + 1 || i == a->n_out + 2 || (gradient && (i == 1 || i == 2));
            views[i] = a->at[i].view;
            if (keys || (s->mask != NO_MASK && i == a->n_out + 3))
                cut(&views[i], keys, bound[k], bound[k + 1] - bound[k]);
        }
        run(a, op, views, k < 3, run_call);
    }
}

/* Halves go through all keys at once: each turn would round their results. */
START_TEST(keys_in_turn_give_what_all_keys_give)
{
    for (size_t i = 0; i < sizeof several_blocks / sizeof *several_blocks; i++)
        for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype = next_float(dtype))
            for (int gradient = 0; gradient < 2; gradient++) {
                sizes s = several_blocks[i];
                if (is_half((trama_dtype)dtype))
                    continue;
                s.mask = s.mask == TRAMA_F32 ? dtype : s.mask;
                const order how = (order)((int)i % N_ORDERS);
                call_arrays whole = arrays_of(&s, (trama_dtype)dtype, how, gradient);
                call_arrays parts = arrays_of(&s, (trama_dtype)dtype, how, gradient);
                if (gradient) {
                    set_lse(&s, (trama_dtype)dtype, how, &whole);
                    set_lse(&s, (trama_dtype)dtype, how, &parts);
                }
                run_kernel(&whole, op_of(&s, gradient));
                run_in_turn(&parts, &s, op_of(&s, gradient), gradient);
                for (int o = 0; o < whole.n_out; o++) {
                    FOR_EACH(&whole.at[o], index)
                    {
                        const double got = at(&parts.at[o], index), want = at(&whole.at[o], index);
                        ck_assert_msg(near(whole.at[o].view.dtype, got, want, 8192),
                                      "%s, %s, result %d: %.9g, not %.9g", op_of(&s, gradient)->name,
                                      trama_dtype_name((trama_dtype)dtype), o, got, want);
                    }
                    ck_assert(outside_untouched(&parts.at[o]));
                }
                arrays_free(&whole);
                arrays_free(&parts);
            }
}
END_TEST

/* ---- PyTorch ---- */

/* Operand number k of `seed` is ((7 k + 5 seed) mod 11 - 5) / 4. */
static void fill(tensor *t, int64_t seed)
{
    int64_t k = 0;
    FOR_EACH(t, index)
    put(t, index, (double)((7 * k++ + 5 * seed) % 11 - 5) / 4);
}

/* Results of torch.nn.functional.scaled_dot_product_attention of PyTorch 2.15.0 in float64, and the gradients of the
 * sum of these times operand 4. */
typedef struct published {
    sizes s;
    double out[18], dq[16], dk[16], dv[24];
} published;

static const published values[] = {
    {{2, 2, 3, 4, 2, 3, true, NO_MASK},
     {-0.25, -1.25, 0.5, -0.308169871, -0.668301289, 0.441830129, -0.522228575, 0.967770352, 0.227771425, -1.25, 0.5,
      -0.5, -0.164763868, 0.391476387, -0.608523613, 0.673371202, 0.165517415, -0.834482585},
     {0, 0, 0.126246662, -0.0473424983, 0.171615893, 0.0281115155, 0, 0, 0.00814243818, 0.00814243818, -0.0101822589,
      -0.0528806321},
     {-0.0851358369, 0.0372105013, 0.017886764, -0.0103108721, 0.0672490729, -0.0268996292, 0, 0, 0.0263888803,
      0.00814243818, -0.0419155615, -0.00814243818, 0.0155266812, 0, 0, 0},
     {1.62276331,
      -0.239103051,
      -1.84096834,
      0.535506618,
      -0.419166876,
      0.611643157,
      0.0917300728,
      -0.0917300728,
      0.229325182,
      0,
      0,
      0,
      0.205259435,
      -1.53960837,
      1.51391029,
      -0.0760362855,
      -0.81427588,
      0.477643411,
      -0.12922315,
      -0.646115749,
      0.258446299,
      0,
      0,
      0}},
    {{2, 2, 3, 4, 2, 3, false, TRAMA_BOOL}, /* of 1011, 0000, 1101 */
     {-0.720281096, 0.462053099, 0.0297189037, 0, 0, 0, -0.54042449, 0.932918047, 0.20957551, -0.563948806, 0.287849028,
      -0.712150972, 0, 0, 0, 0.598812013, -0.0397311429, -1.03973114},
     {0, 0, 0, 0, 0.12844109, -0.0027196182, 0.104720876, -0.0504125895, 0, 0, 0.078051526, -0.0723789244},
     {-0.142247213, 0.0568988853, 0.0596185035, -0.0238474014, 0, 0, 0.0826287098, -0.0330514839, 0.0335413473,
      -0.0705152116, -0.0600372446, 0, -0.0148043366, 0.0370108415, 0.0413002339, 0.0335043701},
     {0.256725286, -0.0503013569, -0.0806705368, 0.384123475,   -0.384123475, 0.960308686,   0.499603827,
      0,           -0.499603827,  0.359547412,   -0.0655751686, -0.130034322, 0.135485544,   -0.669334338,
      0.739100457, -0.0558448588, -0.279224294,  0.111689718,   0.0328132548, -0.0984397644, 0.131253019,
      -0.11245394, -0.953001603,  0.517956807}},
    {{4, 2, 2, 3, 2, 1, false, NO_MASK},
     {0.0560349713, -0.158092604, -0.834398901, -0.901084626, 0.098252651, -0.0560349713, 0.68032331, 0.242212329},
     {0.0341885753, -0.338589584, 0, 0, -0.207968404, 0.375514288, 0.17938214, -0.188012367, 0.111382567, -0.0472279796,
      0.42323698, -0.228300756, -0.115860547, -0.0239401746, 0.253798834, -0.0956300091},
     {0.0171633056, 0.11363149, -0.198420404, 0.074645953, 0.181257099, -0.188277443, 0.253001285, -0.227157906,
      -0.249655805, 0.271644659, -0.00334548058, -0.0444867529},
     {0.292507236, -0.0337147597, 0.491207523, -1.09310084, -0.180289587, -0.226609574}},
    {{2, 2, 4, 3, 2, 1, true, NO_MASK}, /* more queries than keys */
     {-0.25, -0.482679484, -0.834398901, -0.901084626, -0.5, -0.157751944, 0.68032331, 0.242212329},
     {0, 0, 0, 0, -0.207968404, 0.375514288, 0.17938214, -0.188012367, 0, 0, 0.486691865, -0.18250945, -0.115860547,
      -0.0239401746, 0.253798834, -0.0956300091},
     {0.0171633056, 0.059648934, -0.198420404, -0.0609097412, 0.181257099, 0.0012608072, 0.245005264, -0.183900485,
      -0.310461498, 0.232357796, 0.0654562341, -0.0484573109},
     {1.04304926, -0.180498502, -0.112550762, -1.45759806, -0.176953126, 0.134551189}},
};

static void fill_operands(const sizes *s, call_arrays *a)
{
    static const bool mask[] = {1, 0, 1, 1, 0, 0, 0, 0, 1, 1, 0, 1};
    for (int i = 0; i < 3; i++)
        fill(&a->at[a->n_out + i], i + 1);
    if (s->mask != NO_MASK)
        for (int i = 0; i < 12; i++)
            PUT(&a->at[a->n_out + 3], mask[i], i / 4, i % 4);
}

static void expect(const tensor *t, const double *wanted)
{
    int64_t next = 0;
    FOR_EACH(t, index)
    ck_assert_double_eq_tol(at(t, index), wanted[next++], 1e-8); /* nine digits are printed */
}

START_TEST(values_and_gradients_are_those_of_pytorch)
{
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        const published *v = &values[i];
        call_arrays f = arrays_of(&v->s, TRAMA_F64, PACKED, false), b = arrays_of(&v->s, TRAMA_F64, PACKED, true);
        tensor *lse = &b.at[3 + b.n_in - 3], *delta = lse + 1, *g = lse + 2;
        fill_operands(&v->s, &f);
        fill_operands(&v->s, &b);
        run_kernel(&f, op_of(&v->s, false));
        expect(&f.at[0], v->out);
        fill(g, 4);
        FOR_EACH(lse, index)
        {
            double sum = 0;
            put(lse, index, at(&f.at[1], index));
            for (int64_t l = 0; l < v->s.e; l++)
                sum += AT(g, index[0], index[1], l) * AT(&f.at[0], index[0], index[1], l);
            put(delta, index, sum);
        }
        run_kernel(&b, op_of(&v->s, true));
        expect(&b.at[0], v->dq);
        expect(&b.at[1], v->dk);
        expect(&b.at[2], v->dv);
        arrays_free(&f);
        arrays_free(&b);
    }
}
END_TEST

/* ---- Edges ---- */

START_TEST(a_query_without_a_key_gives_zeros_and_takes_no_gradient)
{
    const sizes s = {1, 1, 3, 2, 2, 2, false, TRAMA_F32};
    call_arrays f = arrays_of(&s, TRAMA_F32, PACKED, false), b = arrays_of(&s, TRAMA_F32, PACKED, true);
    for (int i = 0; i < 2; i++) {
        PUT(&f.at[5], -INFINITY, 1, i);
        PUT(&b.at[6], -INFINITY, 1, i);
    }
    run_kernel(&f, op_of(&s, false));
    ck_assert(AT(&f.at[0], 0, 1, 0) == 0 && AT(&f.at[0], 0, 1, 1) == 0);
    ck_assert(AT(&f.at[1], 0, 1) == -INFINITY && isfinite(AT(&f.at[1], 0, 0)));
    PUT(&b.at[7], -INFINITY, 0, 1);
    run_kernel(&b, op_of(&s, true));
    ck_assert(AT(&b.at[0], 0, 1, 0) == 0 && AT(&b.at[0], 0, 1, 1) == 0);
    for (int o = 0; o < 3; o++)
        FOR_EACH(&b.at[o], index)
    ck_assert(isfinite(at(&b.at[o], index)));
    arrays_free(&f);
    arrays_free(&b);
}
END_TEST

START_TEST(not_a_number_stays_one)
{
    const sizes s = {1, 1, 2, 300, 2, 2, false, NO_MASK};
    call_arrays f = arrays_of(&s, TRAMA_F32, PACKED, false);
    PUT(&f.at[2], NAN, 0, 1, 0);
    run_kernel(&f, op_of(&s, false));
    ck_assert(isnan(AT(&f.at[0], 0, 1, 0)) && isfinite(AT(&f.at[0], 0, 0, 0)));
    arrays_free(&f);
}
END_TEST

/* As on GPUs, which divide queries, and many keys, where all scores do not fit in their scratch memory. */
START_TEST(many_scores_give_what_the_reference_gives)
{
    static const sizes many[] = {
        {1, 1, 1100, 1100, 2, 1, false, NO_MASK}, {2, 2, 900, 900, 1, 2, true, TRAMA_BOOL},
        {2, 1, 20, 60001, 1, 2, false, NO_MASK},  {2, 1, 700, 900, 1, 1, true, NO_MASK},
        {6, 3, 300, 500, 1, 1, false, NO_MASK},   {1, 1, 18, 50003, 1, 1, true, TRAMA_F32},
    };
    for (size_t i = 0; i < sizeof many / sizeof *many; i++)
        for (int gradient = 0; gradient < 2; gradient++)
            for (int d = 0; d < 2; d++) {
                const trama_dtype dtype = d ? TRAMA_BF16 : TRAMA_F32;
                sizes s = many[i];
                s.mask = s.mask == TRAMA_F32 ? (int)dtype : s.mask;
                compare(&s, dtype, PACKED, gradient);
            }
}
END_TEST

#ifndef TESTS_ON_GPU
/* All scores of 16,384 queries and keys take 1 GiB. */
START_TEST(memory_does_not_grow_with_the_number_of_scores)
{
    const sizes s = {1, 1, 16384, 16384, 1, 1, true, NO_MASK};
    for (int gradient = 0; gradient < 2; gradient++) {
        call_arrays a = arrays_of(&s, TRAMA_F32, PACKED, gradient);
        if (gradient)
            set_lse(&s, TRAMA_F32, PACKED, &a);
        refuse(-1, 0);
        run_kernel(&a, op_of(&s, gradient));
        ck_assert_int_gt(refusal_asked(), 0);
        ck_assert_uint_le(refusal_bytes(), 1 << 20);
        arrays_free(&a);
    }
}
END_TEST
#define OF_CPUS , memory_does_not_grow_with_the_number_of_scores
#else
#define OF_CPUS
#endif

RUN_TESTS("attention", several_blocks_give_what_the_reference_gives, keys_in_turn_give_what_all_keys_give,
          values_and_gradients_are_those_of_pytorch, a_query_without_a_key_gives_zeros_and_takes_no_gradient,
          not_a_number_stays_one, many_scores_give_what_the_reference_gives OF_CPUS)
