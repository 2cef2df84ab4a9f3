/* SPDX-License-Identifier: Apache-2.0 */
/* Attention on a GPU, tile by tile: two products, and softmax between them. */
#include "attention_gpu.cuh"

enum { OUT, LSE, Q, K, V, MASK, N_FORWARD };

template <typename T, int E, bool HELD>
static void launch_soften(score_tile t, const matrices &scores, const matrices &p, const matrices &lse, double *factor,
                          const gpu *g)
{
    typedef typename of<T>::number number;
    t.team = team_size(t.columns, E, MOST_THREADS);
    const int threads = t.team > FEW_THREADS ? t.team : FEW_THREADS;
    const int64_t lines = t.heads * t.rows.by, teams = threads / t.team;
    GPU_LAUNCH((soften_tile<T, E, HELD>), (unsigned)((lines + teams - 1) / teams), threads, g, t,
               (const number *)scores.data, (T *)p.data, numbers_of(lse), factor);
}

static void soften(const score_tile &t, const matrices &scores, const matrices &p, const matrices &lse, double *factor,
                   const gpu *g)
{
    with_float(p.dtype, [&](auto zero) {
        typedef decltype(zero) T;
        constexpr int held = held_of<T>(WHOLE);
        if (t.columns <= MOST_THREADS * held)
            launch_soften<T, held, true>(t, scores, p, lse, factor, g);
        else
            launch_soften<T, held, false>(t, scores, p, lse, factor, g);
    });
}

/* Some heads and queries over all keys that they see. `ma` are the matrices of the first of these heads. */
static void attend(const product_worker *w, const attention *a, const tiling &most_of, int64_t n_heads, int64_t i,
                   int64_t rows, const matrices (&ma)[N_FORWARD])
{
    const trama_dtype dtype = ma[Q].dtype, number = number_type(dtype);
    const int64_t visible = attention_visible(a, i + rows);
    const matrices q = from_row(ma[Q], i), out = from_row(ma[OUT], i), lse = from_row(ma[LSE], i);
    if (a->goes_on && visible == 0)
        return;
    for (int64_t j = 0; j == 0 || j < visible; j += most_of.keys) {
        const int64_t columns = least(visible - j, most_of.keys), ld = rounded_up(most(columns, 1), 8);
        const bool goes_on = a->goes_on || j > 0;
        char *room = w->room;
        double *factor = (double *)room;
        room += rounded_up(n_heads * rows * (int64_t)sizeof *factor, 256);
        const matrices scores = take_scores(&room, number, n_heads, rows, ld);
        const matrices p = dtype == number ? scores : take_scores(&room, dtype, n_heads, rows, ld);
        multiply(w, n_heads, rows, columns, a->d, a->scale, q, turned(from_row(ma[K], j)), 0, scores);
        soften(tile_of(a, scores, n_heads, rows, columns, i, j, ma[MASK]), scores, p, lse, goes_on ? factor : NULL,
               &w->g);
        if (goes_on)
            put(out, NULL, n_heads, rows, a->e, factor, &w->g);
        multiply(w, n_heads, rows, a->e, columns, probability_factor(dtype), p, from_row(ma[V], j), goes_on, out);
    }
}

static void forward(const trama_call *call, bool is_masked, const gpu *g)
{
    const attention a = attention_of(call, is_masked);
    const product_worker w = product_worker_of(call, g);
    const trama_dtype dtype = call->in[0].dtype, number = number_type(dtype);
    const int64_t score = (int64_t)(trama_dtype_size(number) + (dtype == number ? 0 : trama_dtype_size(dtype)));
    call_walk<N_FORWARD> walk;
    if (a.n == 0 || !call_walk_of(&walk, &a,
                                  {&call->out[0], &call->out[1], &call->in[0], &call->in[1], &call->in[2],
                                   is_masked ? &call->in[3] : NULL},
                                  1u << LSE))
        return;
    const tiling t = tiling_of(&w, &a, walk.side.n, score, 0);
    for (int64_t c = 0; c < walk.count; c++)
        for (int64_t h = 0; h < walk.side.n; h += t.heads) {
            matrices some[N_FORWARD];
            walk.matrices_at(c, h, some);
            for (int64_t i = 0; i < a.n; i += t.rows)
                attend(&w, &a, t, least(walk.side.n - h, t.heads), i, least(a.n - i, t.rows), some);
        }
}

extern "C" void cuda_attention(const trama_call *call, const gpu *g)
{
    forward(call, false, g);
}

extern "C" void cuda_attention_masked(const trama_call *call, const gpu *g)
{
    forward(call, true, g);
}
