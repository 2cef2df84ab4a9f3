/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers of several distributions, made of trama_uniform (trama_ops.h): the same on every mesh, others in each
 * run; the forms _fixed give the numbers of one step in every run. Each call uses the numbers of `stream` and of
 * `stream` + 2^31 (modulo 2^32), so give calls different streams below 2^31. Dims must be known. trama_program.h tells
 * errors. */
#ifndef TRAMA_RANDOM_H
#define TRAMA_RANDOM_H

#include "trama_program.h"

TRAMA_API_BEGIN

/* Normal numbers, of floats: mean + deviation sqrt(-2 log(1 - u)) cos(2 pi v), u and v of the two streams (Box and
 * Muller 1958), computed in double. No number is further than 5.8 deviations from the mean, since u has 24 bits. Of
 * complex types: mean + deviation sqrt(-log(1 - u)) e^(2 pi i v), whose parts are independent, each with deviation /
 * sqrt(2), as PyTorch's. */
#define trama_normal(program, dtype, shape, mean, deviation, seed, stream)                                             \
    trama_normal_at(TRAMA_HERE, program, dtype, shape, mean, deviation, seed, stream)
trama_value *trama_normal_at(trama_where where, trama_program *program, trama_dtype dtype, trama_shape shape,
                             double mean, double deviation, uint64_t seed, uint32_t stream);
#define trama_normal_fixed(program, dtype, shape, mean, deviation, seed, stream, step)                                 \
    trama_normal_fixed_at(TRAMA_HERE, program, dtype, shape, mean, deviation, seed, stream, step)
trama_value *trama_normal_fixed_at(trama_where where, trama_program *program, trama_dtype dtype, trama_shape shape,
                                   double mean, double deviation, uint64_t seed, uint32_t stream, uint32_t step);

/* Bools that are true with the given probability, 0 to 1: u < probability. */
#define trama_bernoulli(program, shape, probability, seed, stream)                                                     \
    trama_bernoulli_at(TRAMA_HERE, program, shape, probability, seed, stream)
trama_value *trama_bernoulli_at(trama_where where, trama_program *program, trama_shape shape, double probability,
                                uint64_t seed, uint32_t stream);
#define trama_bernoulli_fixed(program, shape, probability, seed, stream, step)                                         \
    trama_bernoulli_fixed_at(TRAMA_HERE, program, shape, probability, seed, stream, step)
trama_value *trama_bernoulli_fixed_at(trama_where where, trama_program *program, trama_shape shape, double probability,
                                      uint64_t seed, uint32_t stream, uint32_t step);

/* Integers low to high - 1, high - low at most 2^32: low + floor((high - low) w), w = u + 2^-24 v of 48 bits, so that
 * no integer is more probable than another by more than a factor of 1 + 2^-16. */
#define trama_random_integers(program, dtype, shape, low, high, seed, stream)                                          \
    trama_random_integers_at(TRAMA_HERE, program, dtype, shape, low, high, seed, stream)
trama_value *trama_random_integers_at(trama_where where, trama_program *program, trama_dtype dtype, trama_shape shape,
                                      int64_t low, int64_t high, uint64_t seed, uint32_t stream);
#define trama_random_integers_fixed(program, dtype, shape, low, high, seed, stream, step)                              \
    trama_random_integers_fixed_at(TRAMA_HERE, program, dtype, shape, low, high, seed, stream, step)
trama_value *trama_random_integers_fixed_at(trama_where where, trama_program *program, trama_dtype dtype,
                                            trama_shape shape, int64_t low, int64_t high, uint64_t seed,
                                            uint32_t stream, uint32_t step);

/* The numbers 0 to n - 1 in random order, i64 [n]: the order of the keys w above, of equal ones that of their places.
 */
#define trama_permutation(program, n, seed, stream) trama_permutation_at(TRAMA_HERE, program, n, seed, stream)
trama_value *trama_permutation_at(trama_where where, trama_program *program, int64_t n, uint64_t seed, uint32_t stream);
#define trama_permutation_fixed(program, n, seed, stream, step)                                                        \
    trama_permutation_fixed_at(TRAMA_HERE, program, n, seed, stream, step)
trama_value *trama_permutation_fixed_at(trama_where where, trama_program *program, int64_t n, uint64_t seed,
                                        uint32_t stream, uint32_t step);

TRAMA_API_END
#endif
