/* SPDX-License-Identifier: Apache-2.0 */
/* Whole tensors. */
#include "dense.h"

#include <math.h>
#include <string.h>

#include "reference.h"

uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
}

int random_below(uint64_t *state, int n)
{
    return (int)(random_next(state) % (uint64_t)n);
}

dense dense_new(trama_shape shape)
{
    int64_t n = trama_shape_count(shape);
    dense d = {shape, trama_alloc((size_t)n * sizeof *d.at)};
    for (int64_t i = 0; i < n; i++)
        d.at[i] = NAN;
    return d;
}

dense dense_copy(const dense *d)
{
    dense c = dense_new(d->shape);
    memcpy(c.at, d->at, (size_t)trama_shape_count(d->shape) * sizeof *d->at);
    return c;
}

void dense_free(dense *d)
{
    free(d->at);
    d->at = NULL;
}

dense dense_random(trama_shape shape, uint64_t seed, double low, double high, bool whole)
{
    dense d = dense_new(shape);
    for (int64_t i = 0, n = trama_shape_count(shape); i < n; i++) {
        double u = (double)(random_next(&seed) >> 11) / 9007199254740992.0;
        d.at[i] = whole ? floor(low + (high - low + 1) * u) : low + (high - low) * u;
    }
    return d;
}

dense dense_initial(const trama_value *v)
{
    dense d = dense_new(v->shape);
    for (int64_t i = 0, n = trama_shape_count(v->shape); i < n; i++)
        d.at[i] = v->kind == VALUE_CONSTANT
                      ? element_of(v->dtype, v->data, i)
                      : v->state->init.low +
                            (v->state->init.high - v->state->init.low) *
                                reference_uniform(v->state->init.seed, (uint32_t)v->state->init.stream, 0, (uint64_t)i);
    return d;
}

trama_view dense_view(const dense *d, trama_dtype dtype)
{
    trama_view v = {.data = d->at, .dtype = dtype, .ndim = d->shape.ndim};
    int64_t stride = 1;
    for (int i = v.ndim - 1; i >= 0; i--) {
        v.extent[i] = v.global[i] = d->shape.dim[i];
        v.stride[i] = stride;
        stride *= v.extent[i];
    }
    return v;
}

double dense_difference(const dense *a, const dense *b)
{
    double most = 0;
    if (!trama_shape_equal(a->shape, b->shape))
        return INFINITY;
    for (int64_t i = 0, n = trama_shape_count(a->shape); i < n; i++) {
        double x = a->at[i], y = b->at[i];
        if (x == y || (isnan(x) && isnan(y)))
            continue;
        double d = fabs(x - y) / fmax(1, fabs(y));
        most = isnan(d) ? INFINITY : fmax(most, d);
    }
    return most;
}
