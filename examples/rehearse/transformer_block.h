/* SPDX-License-Identifier: Apache-2.0 */
/* A transformer block (Vaswani et al. 2017) with norms before its halves, attention and a perceptron with gelu:
 *   y = x + attention(norm(x)) wo + bo,  z = y + gelu(norm(y) w1 + b1) w2 + b2
 * or, beside each other (Wang and Komatsuzaki 2021), which sums what both give before their offsets,
 *   z = x + attention(norm(x)) wo + gelu(norm(x) w1 + b1) w2 + bo + b2
 * for x [batch * length, features]. wqkv [features, 3 features] has the columns of a head's queries, keys and values
 * beside each other, so that a split by columns is one by heads. */
#ifndef TRANSFORMER_BLOCK_H
#define TRANSFORMER_BLOCK_H

#include "trama.h"

typedef struct transformer_sizes {
    int64_t batch, length, features, heads, hidden; /* hidden: of the perceptron */
    bool beside;
} transformer_sizes;

/* In the order of the formulas; the norms' weights and offsets are first and last. */
enum {
    BLOCK_NORM_1,
    BLOCK_QKV = 2,
    BLOCK_OUT = 4,
    BLOCK_NORM_2 = 6,
    BLOCK_UP = 8,
    BLOCK_DOWN = 10,
    BLOCK_PARAMETERS = 12
};

typedef struct transformer_block {
    trama_value *parameter[BLOCK_PARAMETERS]; /* weight and offset of each */
    trama_value *out;
} transformer_block;

/* Appends the block on x, a value of the program; its parameters have names that begin with `name`. */
transformer_block transformer_block_new(trama_program *program, trama_value *x, const char *name,
                                        transformer_sizes sizes);

#endif
