/* SPDX-License-Identifier: Apache-2.0 */
/* One unit is one op on f32 data that lie in memory, or an op and its gradients, beside the same in torch_ops.py.
 * Usage: ops NAME [--plan summary|steps]; the names are those of the table below. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { ROWS = 8192, COLUMNS = 1024, TABLE = 32768, TOKENS = 8192, WIDTH = 512, MOST_OUT = 4 };

typedef struct record {
    trama_program *p;
    trama_value *out[MOST_OUT]; /* the values that the unit computes */
} record;

static trama_value *data(record *r, const char *name, trama_shape shape)
{
    return trama_state(r->p, name, TRAMA_F32, shape, &(trama_init){-1, 1, 1, (uint32_t)strlen(name)});
}

static trama_value *matrix(record *r)
{
    return data(r, "x", TRAMA_SHAPE(ROWS, COLUMNS));
}

/* i64 numbers from 0 to n - 1, in no order. */
static trama_value *indices(record *r, trama_shape shape, int64_t n)
{
    trama_value *index = trama_state(r->p, "index", TRAMA_I64, shape, NULL);
    const int64_t count = trama_shape_count(shape);
    int64_t *numbers = malloc((size_t)count * sizeof *numbers);
    for (int64_t i = 0, x = 1; numbers && i < count; i++, x = x * 48271 % 2147483647) /* Park and Miller 1988 */
        numbers[i] = x % n;
    if (!numbers || !trama_initial(index, numbers))
        bench_fail("no indices");
    free(numbers);
    return index;
}

/* The gradients of the sum of y with respect to x and, unless it is NULL, w. */
static void gradients(record *r, trama_value *y, trama_value *x, trama_value *w)
{
    trama_value *loss = trama_sum(y);
    r->out[0] = trama_gradient(loss, x);
    if (w)
        r->out[1] = trama_gradient(loss, w);
}

#define CASE(name, ...)                                                                                                \
    static void name(record *r)                                                                                        \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }
#define ONE(name, expression) CASE(name, trama_value *x = matrix(r); r->out[0] = expression;)

ONE(softmax, trama_softmax(x, 1))
ONE(log_softmax, trama_log_softmax(x, 1))
ONE(softmax_columns, trama_softmax(x, 0))
ONE(gelu, trama_gelu(x))
ONE(tanh_, trama_tanh(x))
ONE(sin_, trama_sin(x))
ONE(where, trama_select(trama_greater(x, trama_scalar(r->p, TRAMA_F32, 0)), x, trama_scalar(r->p, TRAMA_F32, -1)))
ONE(sum_rows, trama_sum_over(x, TRAMA_DIMS(1), false))
ONE(sum_columns, trama_sum_over(x, TRAMA_DIMS(0), false))
ONE(max_rows, trama_max_over(x, TRAMA_DIMS(1), false))
ONE(max_columns, trama_max_over(x, TRAMA_DIMS(0), false))
ONE(concat, trama_concat(1, 2, ((trama_value *[]){x, data(r, "xy", trama_value_shape(x))})))
CASE(gather, trama_value *x = matrix(r); r->out[0] = trama_gather(x, indices(r, TRAMA_SHAPE(COLUMNS), COLUMNS), 1);)
CASE(gather_along, trama_value *x = matrix(r);
     r->out[0] = trama_gather_along(x, indices(r, trama_value_shape(x), COLUMNS), 1);)
CASE(embedding, trama_value *w = data(r, "w", TRAMA_SHAPE(TABLE, WIDTH));
     r->out[0] = trama_embedding(w, indices(r, TRAMA_SHAPE(TOKENS), TABLE));)
CASE(embedding_gradient, trama_value *w = data(r, "w", TRAMA_SHAPE(TABLE, WIDTH));
     gradients(r, trama_embedding(w, indices(r, TRAMA_SHAPE(TOKENS), TABLE)), w, NULL);)

/* Causal attention of 1,024 queries and keys of 64 features, 8 heads, batch 4. */
static trama_value *attend(record *r, trama_value **in)
{
    const char *const names[] = {"q", "kk", "vvv"}; /* of different lengths, which choose the numbers */
    for (int i = 0; i < 3; i++)
        in[i] = data(r, names[i], TRAMA_SHAPE(4, 8, 1024, 64));
    return trama_attention_causal(in[0], in[1], in[2]);
}
CASE(attention, trama_value *in[3]; r->out[0] = attend(r, in);)
CASE(attention_gradient, trama_value *in[3]; trama_value *loss = trama_sum(attend(r, in));
     for (int i = 0; i < 3; i++) r->out[i] = trama_gradient(loss, in[i]);)

CASE(layer_norm, trama_value *x = matrix(r), *w = data(r, "w", TRAMA_SHAPE(COLUMNS)),
     *b = data(r, "bb", TRAMA_SHAPE(COLUMNS));
     r->out[0] = trama_layer_norm(x, 1, w, b, 1e-5);)
CASE(layer_norm_gradient, trama_value *x = matrix(r), *w = data(r, "w", TRAMA_SHAPE(COLUMNS)),
     *b = data(r, "bb", TRAMA_SHAPE(COLUMNS));
     gradients(r, trama_layer_norm(x, 1, w, b, 1e-5), x, w);)

/* A convolution of 16 images of 28 x 28, from 64 to 128 channels, and pools of 16 of 112 x 112 with 64. */
static trama_value *convolve(record *r, trama_value **in)
{
    in[0] = data(r, "x", TRAMA_SHAPE(16, 64, 28, 28));
    in[1] = data(r, "ww", TRAMA_SHAPE(128, 64, 3, 3));
    return trama_conv(in[0], in[1], NULL, (&(trama_windows){.before = {1, 1}, .after = {1, 1}}));
}
CASE(conv, trama_value *in[2]; r->out[0] = convolve(r, in);)
CASE(conv_gradient, trama_value *in[2]; trama_value *y = convolve(r, in); gradients(r, y, in[0], in[1]);)
static const trama_windows pools = {.kernel = {3, 3}, .stride = {2, 2}, .before = {1, 1}, .after = {1, 1}};
CASE(max_pool, r->out[0] = trama_max_pool(data(r, "x", TRAMA_SHAPE(16, 64, 112, 112)), &pools);)
CASE(mean_pool, r->out[0] = trama_mean_pool(data(r, "x", TRAMA_SHAPE(16, 64, 112, 112)), &pools);)
ONE(rms_norm, trama_rms_norm(x, 1, NULL, 1e-5))
ONE(cumsum, trama_cumsum(x, 1))
ONE(cumsum_columns, trama_cumsum(x, 0))
ONE(top_k, trama_top_k(x, 64, 1, true))
ONE(sort, trama_sort(x, 1, false))

/* Numbers of both signs in both parts. */
static trama_value *complex_data(record *r, trama_shape shape)
{
    trama_value *z = trama_state(r->p, "z", TRAMA_C64, shape, NULL);
    const int64_t count = trama_shape_count(shape);
    float(*parts)[2] = malloc((size_t)count * sizeof *parts);
    for (int64_t i = 0, x = 1; parts && i < 2 * count; i++, x = x * 48271 % 2147483647)
        parts[i / 2][i % 2] = (float)x / 1073741824.0F - 1;
    if (!parts || !trama_initial(z, parts))
        bench_fail("no complex numbers");
    free(parts);
    return z;
}
CASE(complex_mul, trama_value *z = complex_data(r, TRAMA_SHAPE(ROWS, COLUMNS / 2)); r->out[0] = trama_mul(z, z);)
CASE(complex_matmul, trama_value *z = complex_data(r, TRAMA_SHAPE(COLUMNS, COLUMNS));
     r->out[0] = trama_matmul_op(z, z, TRAMA_CONJ_TRANS, TRAMA_NO_TRANS);)
CASE(fft, trama_value *z = complex_data(r, TRAMA_SHAPE(ROWS, COLUMNS / 2));
     r->out[0] = trama_fft(z, TRAMA_DIMS(1), TRAMA_FOURIER_BACKWARD);)
CASE(fft_cube, trama_value *z = complex_data(r, TRAMA_SHAPE(128, 128, 128));
     r->out[0] = trama_fft(z, 0, NULL, TRAMA_FOURIER_BACKWARD);)
CASE(fft_line, trama_value *z = complex_data(r, TRAMA_SHAPE(1 << 20));
     r->out[0] = trama_fft(z, 0, NULL, TRAMA_FOURIER_BACKWARD);)
ONE(rfft, trama_rfft(x, TRAMA_DIMS(1), TRAMA_FOURIER_BACKWARD))

static const struct subject {
    const char *name;
    void (*record)(record *r);
} subjects[] = {
    {"softmax", softmax},
    {"log_softmax", log_softmax},
    {"softmax_columns", softmax_columns},
    {"gelu", gelu},
    {"tanh", tanh_},
    {"sin", sin_},
    {"where", where},
    {"sum_rows", sum_rows},
    {"sum_columns", sum_columns},
    {"max_rows", max_rows},
    {"max_columns", max_columns},
    {"concat", concat},
    {"gather", gather},
    {"gather_along", gather_along},
    {"layer_norm", layer_norm},
    {"layer_norm_gradient", layer_norm_gradient},
    {"rms_norm", rms_norm},
    {"conv", conv},
    {"conv_gradient", conv_gradient},
    {"max_pool", max_pool},
    {"mean_pool", mean_pool},
    {"cumsum", cumsum},
    {"cumsum_columns", cumsum_columns},
    {"top_k", top_k},
    {"sort", sort},
    {"embedding", embedding},
    {"embedding_gradient", embedding_gradient},
    {"attention", attention},
    {"attention_gradient", attention_gradient},
    {"complex_mul", complex_mul},
    {"complex_matmul", complex_matmul},
    {"fft", fft},
    {"fft_cube", fft_cube},
    {"fft_line", fft_line},
    {"rfft", rfft},
};
enum { N_SUBJECTS = sizeof subjects / sizeof *subjects };

int main(int argc, char **argv)
{
    record r = {.p = trama_program_create()};
    int i = 0;
    while (i < N_SUBJECTS && (argc < 2 || strcmp(argv[1], subjects[i].name)))
        i++;
    if (i == N_SUBJECTS)
        bench_fail("usage: ops NAME [--plan summary|steps]; the names are in tests/bench/ops.c");
    subjects[i].record(&r);
    int n = 0;
    while (n < MOST_OUT && r.out[n])
        n++;
    trama_target *target = trama_target_at(TRAMA_HERE, r.p, subjects[i].name, n, r.out);
    if (trama_program_status(r.p))
        bench_fail("%s", trama_program_error(r.p));
    bench_serve_program(r.p, target, bench_option(argc, argv, "plan", NULL));
    trama_program_destroy(&r.p);
    return 0;
}
