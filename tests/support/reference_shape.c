/* SPDX-License-Identifier: Apache-2.0 */
/* Reference ops that move elements or make them; random numbers from their published definition. */
#include "reference_inside.h"

/* ---- Shapes ---- */

void run_transpose(const trama_call *call)
{
    point i;
    for (int d = 0; d < call->out[0].ndim; d++)
        agree(call, &call->in[0], (int)integer(call, SHAPE_DIM + d), &call->out[0], d);
    FOR_EACH(&call->out[0], &i)
    {
        point from = {.ndim = i.ndim};
        for (int d = 0; d < i.ndim; d++)
            from.at[integer(call, SHAPE_DIM + d)] = i.at[d];
        put(call, 0, &i, get(call, 0, &from));
    }
}

static uint64_t linear(const trama_view *v, const point *i)
{
    uint64_t at = 0;
    for (int d = 0; d < v->ndim; d++)
        at = at * (uint64_t)v->global[d] + (uint64_t)i->at[d];
    return at;
}

void run_reshape(const trama_call *call)
{
    const trama_view *x = &call->in[0];
    point i;
    FOR_EACH(&call->out[0], &i)
    {
        uint64_t at = linear(&call->out[0], &i);
        point from = {.ndim = x->ndim};
        for (int d = x->ndim - 1; d >= 0; d--) {
            from.at[d] = (int64_t)(at % (uint64_t)x->global[d]);
            at /= (uint64_t)x->global[d];
        }
        put(call, 0, &i, get(call, 0, &from));
    }
}

void run_reshape_like(const trama_call *call)
{
    run_reshape(call);
}

void run_window(const trama_call *call)
{
    point i;
    FOR_EACH(&call->out[0], &i)
    {
        point from = i;
        bool outside = false;
        for (int d = 0; d < i.ndim; d++) {
            from.at[d] += integer(call, WINDOW_OFFSET + d);
            outside |= from.at[d] < 0 || from.at[d] >= call->in[0].global[d];
        }
        put(call, 0, &i, outside ? 0 : get(call, 0, &from));
    }
}

void reference_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t result[4])
{
    uint32_t x[4], k[2] = {key[0], key[1]};
    memcpy(x, counter, sizeof x);
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53 * x[0], b = (uint64_t)0xCD9E8D57 * x[2];
        uint32_t y[4] = {(uint32_t)(b >> 32) ^ x[1] ^ k[0], (uint32_t)b, (uint32_t)(a >> 32) ^ x[3] ^ k[1],
                         (uint32_t)a};
        memcpy(x, y, sizeof x);
        k[0] += 0x9E3779B9;
        k[1] += 0xBB67AE85;
    }
    memcpy(result, x, sizeof x);
}

double reference_uniform(uint64_t seed, uint32_t stream, uint32_t step, uint64_t i)
{
    uint32_t words[4], counter[] = {(uint32_t)(i / 4), (uint32_t)(i / 4 >> 32), stream, step};
    uint32_t key[] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    reference_philox(counter, key, words);
    return (double)(words[i % 4] >> 8) / 16777216;
}

/* ---- Sources ---- */

static void run_random(const trama_call *call, uint32_t step)
{
    double low = real(call, SOURCE_LOW), high = real(call, SOURCE_HIGH);
    point i;
    FOR_EACH(&call->out[0], &i)
    put(call, 0, &i,
        low + (high - low) * reference_uniform((uint64_t)integer(call, SOURCE_SEED),
                                               (uint32_t)integer(call, SOURCE_STREAM), step,
                                               linear(&call->out[0], &i)));
}

void run_arange(const trama_call *call)
{
    point i;
    FOR_EACH(&call->out[0], &i)
    put(call, 0, &i, real(call, ARANGE_START) + real(call, ARANGE_STEP) * (double)linear(&call->out[0], &i));
}

void run_uniform(const trama_call *call)
{
    run_random(call, (uint32_t)integer(call, SOURCE_STEP));
}

void run_draw(const trama_call *call)
{
    point none = {0};
    run_random(call, (uint32_t)get(call, 0, &none));
}

void run_fill(const trama_call *call)
{
    fill_result(call, real(call, SOURCE_VALUE));
}
