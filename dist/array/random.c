/* SPDX-License-Identifier: Apache-2.0 */
/* Distributions, of uniform numbers. */
#include "families.h"
#include "trama_array.h"
#include "trama_complex.h"
#include "trama_random.h"

/* Where uniform numbers come from; fixed: those of the step in every run. */
typedef struct origin {
    trama_where where;
    trama_program *program;
    uint64_t seed;
    uint32_t stream;
    bool fixed;
    uint32_t step;
} origin;

/* The numbers of the stream, or, second, of the one 2^31 behind it, in f64. */
static trama_value *uniform(const origin *o, trama_shape shape, bool second)
{
    const uint32_t stream = o->stream + (second ? UINT32_C(1) << 31 : 0);
    return o->fixed ? trama_uniform_fixed_at(o->where, o->program, TRAMA_F64, shape, 0, 1, o->seed, stream, o->step)
                    : trama_uniform_at(o->where, o->program, TRAMA_F64, shape, 0, 1, o->seed, stream);
}

/* Numbers of 48 bits in 0 to 1. */
static trama_value *fine_uniform(const origin *o, trama_shape shape)
{
    trama_value *high = uniform(o, shape, false), *low = uniform(o, shape, true);
    return trama_add_at(o->where, high, trama_scale_at(o->where, low, 0x1p-24));
}

/* ---- Normal ---- */

static trama_value *normal(const origin *o, trama_dtype dtype, trama_shape shape, double mean, double deviation)
{
    const bool complex = trama_dtype_kind_of(dtype) == TRAMA_KIND_COMPLEX;
    if (o->program && !complex && !trama_dtype_is_float(dtype))
        return program_fail(o->program, o->where, TRAMA_E_DTYPE,
                            "normal: normal numbers are floats or complex numbers, not %s", trama_dtype_name(dtype));
    trama_value *u = uniform(o, shape, false), *v = uniform(o, shape, true);
    trama_value *rest = trama_log_at(o->where, trama_affine_at(o->where, u, -1, 1));
    trama_value *radius = trama_sqrt_at(o->where, trama_scale_at(o->where, rest, complex ? -1 : -2));
    trama_value *angle = trama_scale_at(o->where, v, 6.283185307179586);
    trama_value *z = trama_mul_at(o->where, radius, trama_cos_at(o->where, angle));
    if (complex)
        z = trama_complex_at(o->where, z, trama_mul_at(o->where, radius, trama_sin_at(o->where, angle)));
    return trama_cast_at(o->where, trama_affine_at(o->where, z, deviation, mean), dtype);
}

trama_value *trama_normal_at(trama_where where, trama_program *program, trama_dtype dtype, trama_shape shape,
                             double mean, double deviation, uint64_t seed, uint32_t stream)
{
    return normal(&(origin){where, program, seed, stream, false, 0}, dtype, shape, mean, deviation);
}

trama_value *trama_normal_fixed_at(trama_where where, trama_program *program, trama_dtype dtype, trama_shape shape,
                                   double mean, double deviation, uint64_t seed, uint32_t stream, uint32_t step)
{
    return normal(&(origin){where, program, seed, stream, true, step}, dtype, shape, mean, deviation);
}

/* ---- Bools ---- */

static trama_value *bernoulli(const origin *o, trama_shape shape, double probability)
{
    if (o->program && !(probability >= 0 && probability <= 1))
        return program_fail(o->program, o->where, TRAMA_E_ARGUMENT, "bernoulli: probability %g; it is 0 to 1",
                            probability);
    trama_value *u = uniform(o, shape, false);
    return trama_less_at(o->where, u, scalar_like(o->where, u, probability));
}

trama_value *trama_bernoulli_at(trama_where where, trama_program *program, trama_shape shape, double probability,
                                uint64_t seed, uint32_t stream)
{
    return bernoulli(&(origin){where, program, seed, stream, false, 0}, shape, probability);
}

trama_value *trama_bernoulli_fixed_at(trama_where where, trama_program *program, trama_shape shape, double probability,
                                      uint64_t seed, uint32_t stream, uint32_t step)
{
    return bernoulli(&(origin){where, program, seed, stream, true, step}, shape, probability);
}

/* ---- Integers ---- */

static trama_value *integers(const origin *o, trama_dtype dtype, trama_shape shape, int64_t low, int64_t high)
{
    const int64_t most = INT64_C(1) << 32, exact = INT64_C(1) << 53;
    if (o->program && !trama_dtype_is_integer(dtype))
        return program_fail(o->program, o->where, TRAMA_E_DTYPE, "random_integers: %s is no type of integers",
                            trama_dtype_name(dtype));
    if (o->program && (low >= high || low < -exact || high > exact || high - low > most))
        return program_fail(o->program, o->where, TRAMA_E_ARGUMENT,
                            "random_integers: %lld to %lld - 1; these are 1 to 2^32 numbers within 2^53 of 0",
                            (long long)low, (long long)high);
    trama_value *scaled = trama_scale_at(o->where, fine_uniform(o, shape), (double)(high - low));
    trama_value *from_0 = trama_cast_at(o->where, scaled, TRAMA_I64);
    return trama_cast_at(o->where, trama_affine_at(o->where, from_0, 1, (double)low), dtype);
}

trama_value *trama_random_integers_at(trama_where where, trama_program *program, trama_dtype dtype, trama_shape shape,
                                      int64_t low, int64_t high, uint64_t seed, uint32_t stream)
{
    return integers(&(origin){where, program, seed, stream, false, 0}, dtype, shape, low, high);
}

trama_value *trama_random_integers_fixed_at(trama_where where, trama_program *program, trama_dtype dtype,
                                            trama_shape shape, int64_t low, int64_t high, uint64_t seed,
                                            uint32_t stream, uint32_t step)
{
    return integers(&(origin){where, program, seed, stream, true, step}, dtype, shape, low, high);
}

trama_value *trama_permutation_at(trama_where where, trama_program *program, int64_t n, uint64_t seed, uint32_t stream)
{
    const origin o = {where, program, seed, stream, false, 0};
    return trama_argsort_at(where, fine_uniform(&o, TRAMA_SHAPE(n)), 0, false);
}

trama_value *trama_permutation_fixed_at(trama_where where, trama_program *program, int64_t n, uint64_t seed,
                                        uint32_t stream, uint32_t step)
{
    const origin o = {where, program, seed, stream, true, step};
    return trama_argsort_at(where, fine_uniform(&o, TRAMA_SHAPE(n)), 0, false);
}
