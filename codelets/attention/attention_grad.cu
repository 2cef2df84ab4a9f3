/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of attention on a GPU, by the formulas of attention_grad.c. Gradients of keys and values are sums over
 * tiles; those of halves are summed in f32. */
#include "attention_gpu.cuh"

enum { DK, DV, DQ, Q, K, V, LSE, DELTA, G, MASK, N_ARRAYS };

/* The gradients of keys j to j + columns and of their values, as sums. */
struct key_sums {
    matrices dk, dv;
};

/* A call, with the begin of the scratch memory for tiles. */
struct backward {
    product_worker w;
    attention a;
    tiling t;
    bool of_group; /* heads side by side have the same keys */
    char *room;
};

static void derive(const score_tile &t, const matrices &scores, const matrices &slopes, const matrices &p,
                   const matrices &ds, const matrices &lse, const matrices &delta, const gpu *g)
{
    with_float(p.dtype, [&](auto zero) {
        typedef decltype(zero) T;
        typedef typename of<T>::number number;
        GPU_LAUNCH(derive_tile<T>, gpu_blocks(t.heads * t.rows.by * t.columns, TILE_THREADS, g), TILE_THREADS, g, t,
                   divisor_of(t.columns), (const number *)scores.data, (const number *)slopes.data, (T *)p.data,
                   (T *)ds.data, numbers_of(lse), numbers_of(delta));
    });
}

/* Adds factor x' y of each head to the sums; heads of a group one after the other. */
static void add_to_keys(const backward *b, int64_t n_heads, int64_t columns, int64_t rows, int64_t features,
                        double factor, const matrices &x, const matrices &y, const matrices &sums)
{
    for (int64_t h = 0; h < (b->of_group ? n_heads : 1); h++)
        multiply(&b->w, b->of_group ? 1 : n_heads, columns, features, rows, factor, turned(from_matrix(x, h)),
                 from_matrix(y, h), 1, sums);
}

/* Some heads and queries, and keys from j on. `ma` are the matrices of the first of these heads. */
static void derive_rows(const backward *b, int64_t n_heads, int64_t i, int64_t rows, int64_t j,
                        const matrices (&ma)[N_ARRAYS], const key_sums &sums)
{
    const attention *a = &b->a;
    const trama_dtype dtype = ma[Q].dtype, number = number_type(dtype);
    const int64_t columns = most(0, least(attention_visible(a, i + rows) - j, b->t.keys));
    const int64_t ld = rounded_up(most(columns, 1), 8);
    const bool goes_on = a->goes_on || j > 0;
    const matrices q = from_row(ma[Q], i), g = from_row(ma[G], i), k = from_row(ma[K], j);
    char *room = b->room;
    if (columns == 0 && goes_on)
        return;
    const matrices scores = take_scores(&room, number, n_heads, rows, ld);
    const matrices slopes = take_scores(&room, number, n_heads, rows, ld);
    const matrices p = dtype == number ? scores : take_scores(&room, dtype, n_heads, rows, ld);
    const matrices ds = dtype == number ? slopes : take_scores(&room, dtype, n_heads, rows, ld);
    if (columns) {
        multiply(&b->w, n_heads, rows, columns, a->d, a->scale, q, turned(k), 0, scores);
        multiply(&b->w, n_heads, rows, columns, a->e, 1, g, turned(from_row(ma[V], j)), 0, slopes);
        derive(tile_of(a, scores, n_heads, rows, columns, i, j, ma[MASK]), scores, slopes, p, ds, from_row(ma[LSE], i),
               from_row(ma[DELTA], i), &b->w.g);
        add_to_keys(b, n_heads, columns, rows, a->e, probability_factor(dtype), p, g, sums.dv);
        add_to_keys(b, n_heads, columns, rows, a->d, a->scale, ds, q, sums.dk);
    }
    multiply(&b->w, n_heads, rows, a->d, columns, a->scale, ds, k, goes_on, from_row(ma[DQ], i));
}

/* Keys from j on, for n_sums groups; `ma` are their matrices, of n_heads heads side by side. */
static void derive_keys(const backward *b, int64_t n_sums, int64_t n_heads, int64_t j, const matrices (&ma)[N_ARRAYS])
{
    const attention *a = &b->a;
    const int64_t columns = least(a->m - j, b->t.keys);
    const matrices dk = from_row(ma[DK], j), dv = from_row(ma[DV], j);
    const bool halves = number_type(dk.dtype) != dk.dtype;
    key_sums sums = {dk, dv};
    if (halves) {
        char *room = b->w.room;
        sums.dk = take_scores(&room, TRAMA_F32, n_sums, columns, a->d);
        sums.dv = take_scores(&room, TRAMA_F32, n_sums, columns, a->e);
    }
    fill(sums.dk, n_sums, columns, a->d, &b->w.g);
    fill(sums.dv, n_sums, columns, a->e, &b->w.g);
    for (int64_t h = 0; h < n_heads; h += b->t.heads) {
        matrices some[N_ARRAYS];
        for (int m = 0; m < N_ARRAYS; m++)
            some[m] = from_matrix(ma[m], h);
        for (int64_t i = 0; i < a->n; i += b->t.rows)
            derive_rows(b, least(n_heads - h, b->t.heads), i, least(a->n - i, b->t.rows), j, some, sums);
    }
    if (halves) {
        put(dk, &sums.dk, n_sums, columns, a->d, NULL, &b->w.g);
        put(dv, &sums.dv, n_sums, columns, a->e, NULL, &b->w.g);
    }
}

static void run(const trama_call *call, bool is_masked, const gpu *g)
{
    const int last = call->n_in - 1;
    const trama_dtype dtype = call->in[0].dtype, number = number_type(dtype);
    const int64_t element = (int64_t)trama_dtype_size(dtype), size = (int64_t)trama_dtype_size(number);
    const bool halves = dtype != number;
    backward b = {product_worker_of(call, g), attention_of(call, is_masked)};
    const attention *a = &b.a;
    call_walk<N_ARRAYS> walk;
    if (!call_walk_of(&walk, a,
                      {&call->out[1], &call->out[2], &call->out[0], &call->in[0], &call->in[1], &call->in[2],
                       &call->in[last - 2], &call->in[last - 1], &call->in[last], is_masked ? &call->in[3] : NULL},
                      1u << LSE | 1u << DELTA)) {
        gpu_fill(&call->out[1], 0, g); /* there may be keys without queries */
        gpu_fill(&call->out[2], 0, g);
        return;
    }
    const int64_t key = halves ? size * (a->d + a->e) : 0;
    b.of_group = walk.side.of_group;
    b.t = tiling_of(&b.w, a, walk.side.n, 2 * size + (halves ? 2 * element : 0), key);
    b.room = b.w.room + rounded_up((b.of_group ? 1 : b.t.heads) * b.t.keys * key, 256);
    for (int64_t c = 0; c < walk.count; c++) {
        const int64_t step = b.of_group ? walk.side.n : b.t.heads;
        for (int64_t h = 0; h < walk.side.n; h += step) {
            const int64_t n = least(walk.side.n - h, step);
            matrices all[N_ARRAYS];
            walk.matrices_at(c, h, all);
            for (int64_t j = 0; j == 0 || j < a->m; j += b.t.keys)
                derive_keys(&b, b.of_group ? 1 : n, n, j, all);
        }
    }
}

extern "C" void cuda_attention_grad(const trama_call *call, const gpu *g)
{
    run(call, false, g);
}

extern "C" void cuda_attention_masked_grad(const trama_call *call, const gpu *g)
{
    run(call, true, g);
}
