/* SPDX-License-Identifier: Apache-2.0 */
/* The transformer block. */
#include "transformer_block.h"

#include <math.h>
#include <stdio.h>

/* Where a block is appended. */
typedef struct block_place {
    trama_program *program;
    trama_dtype dtype;
    const char *name;
} block_place;

static void add_parameter(transformer_block *b, const block_place *at, int which, const char *of, int64_t in,
                          int64_t out)
{
    char label[48];
    const bool norm = in == 0;
    const double bound = norm ? 1 : 1 / sqrt((double)in);
    const trama_init weight = {norm ? 1 : -bound, bound, 1, (uint64_t)which}, zero = {0, 0, 1, (uint64_t)which + 1};
    snprintf(label, sizeof label, "%s.%s.w", at->name, of);
    b->parameter[which] =
        trama_parameter(at->program, label, at->dtype, norm ? TRAMA_SHAPE(out) : TRAMA_SHAPE(in, out), &weight);
    snprintf(label, sizeof label, "%s.%s.b", at->name, of);
    b->parameter[which + 1] = trama_parameter(at->program, label, at->dtype, TRAMA_SHAPE(out), &zero);
}

static trama_value *norm(trama_value *x, trama_value *const *p)
{
    return trama_layer_norm(x, 1, p[0], p[1], 1e-5);
}

static trama_value *linear(trama_value *x, trama_value *const *p)
{
    return trama_add(trama_matmul(x, p[0]), p[1]);
}

/* [batch * length, heads, 3, d] to queries, keys or values [batch, heads, length, d]. */
static trama_value *attend(trama_value *qkv, const transformer_sizes *s)
{
    const int64_t d = s->features / s->heads;
    trama_value *in[3], *parts = trama_reshape(qkv, TRAMA_SHAPE(s->batch, s->length, s->heads, 3, d));
    parts = trama_transpose(parts, ((int[]){3, 0, 2, 1, 4}));
    for (int i = 0; i < 3; i++)
        in[i] = trama_squeeze(trama_slice(parts, 0, i, 1), 0);
    trama_value *out = trama_transpose(trama_attention_causal(in[0], in[1], in[2]), ((int[]){0, 2, 1, 3}));
    return trama_reshape(out, TRAMA_SHAPE(s->batch * s->length, s->features));
}

transformer_block transformer_block_new(trama_program *program, trama_value *x, const char *name, transformer_sizes s)
{
    transformer_block b = {0};
    const block_place at = {program, trama_value_dtype(x), name};
    add_parameter(&b, &at, BLOCK_NORM_1, "norm1", 0, s.features);
    add_parameter(&b, &at, BLOCK_QKV, "qkv", s.features, 3 * s.features);
    add_parameter(&b, &at, BLOCK_OUT, "out", s.features, s.features);
    add_parameter(&b, &at, BLOCK_NORM_2, "norm2", 0, s.features);
    add_parameter(&b, &at, BLOCK_UP, "up", s.features, s.hidden);
    add_parameter(&b, &at, BLOCK_DOWN, "down", s.hidden, s.features);
    trama_value *const *p = b.parameter;
    trama_value *first = norm(x, p + BLOCK_NORM_1), *attention = attend(linear(first, p + BLOCK_QKV), &s);
    trama_value *y = s.beside ? x : trama_add(x, linear(attention, p + BLOCK_OUT));
    trama_value *second = s.beside ? first : norm(y, p + BLOCK_NORM_2);
    trama_value *hidden = trama_gelu(linear(second, p + BLOCK_UP));
    trama_value *offset = s.beside ? trama_add(p[BLOCK_OUT + 1], p[BLOCK_DOWN + 1]) : p[BLOCK_DOWN + 1];
    trama_value *products = trama_matmul(hidden, p[BLOCK_DOWN]);
    if (s.beside)
        products = trama_add(trama_matmul(attention, p[BLOCK_OUT]), products);
    b.out = trama_add(y, trama_add(products, offset));
    return b;
}
