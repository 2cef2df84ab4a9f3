/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of fourier.c for numbers whose parts are of TYPE, which it includes once for each. */

/* Lines of a call side by side: element k of line l lies at k step + l across. */
typedef struct NAME(lines) {
    int64_t m; /* lines */
    TYPE *out; /* complex elements are two of these */
    const TYPE *x;
    int64_t out_step, x_step, out_across, x_across; /* in TYPE */
} NAME(lines);

typedef struct NAME(planes) {
    TYPE *re, *im;
} NAME(planes);

/* Planes to be filled. An inverse is the transform of numbers whose parts have changed places. */
static NAME(planes) NAME(planes_of)(const transform *t, int first)
{
    return (NAME(planes)){t->plane[first + (t->inverse ? 1 : 0)], t->plane[first + (t->inverse ? 0 : 1)]};
}

static NAME(planes) NAME(transformed)(const transform *t, int64_t m)
{
    const bool others = NAME(fourier_lines)(&t->f, m, t->plane[0], t->plane[1], t->plane[2], t->plane[3]);
    return NAME(planes_of)(t, others ? 2 : 0);
}

static void NAME(turns)(int64_t n, void *table)
{
    for (int64_t k = 0; k <= n / 2; k++) {
        double re, im;
        fourier_turn(k, n, &re, &im);
        ((TYPE *)table)[2 * k] = (TYPE)re;
        ((TYPE *)table)[2 * k + 1] = (TYPE)im;
    }
}

/* Numbers of lines to a plane and back, in the order in which they lie in memory: lines that lie a power of two apart
 * share the sets of a cache. */
#define EACH_NUMBER_OF_LINES(n, m, step, across, assignment)                                                           \
    if ((across) < (step))                                                                                             \
        for (int64_t k = 0; k < (n); k++)                                                                              \
            for (int64_t l = 0; l < (m); l++)                                                                          \
                assignment;                                                                                            \
    else                                                                                                               \
        for (int64_t l = 0; l < (m); l++)                                                                              \
            for (int64_t k = 0; k < (n); k++)                                                                          \
                assignment;
static void NAME(take)(int64_t n, int64_t m, TYPE *restrict plane, const TYPE *restrict x, int64_t step, int64_t across)
{
    EACH_NUMBER_OF_LINES(n, m, step, across, plane[k * m + l] = x[k * step + l * across])
}

static void NAME(give)(int64_t n, int64_t m, const TYPE *restrict plane, TYPE *restrict out, int64_t step,
                       int64_t across, TYPE factor)
{
    EACH_NUMBER_OF_LINES(n, m, step, across, out[k * step + l * across] = factor * plane[k * m + l])
}
#undef EACH_NUMBER_OF_LINES

static void NAME(fft_lines)(const transform *t, const NAME(lines) * b)
{
    const TYPE factor = (TYPE)t->factor;
    NAME(planes) z = NAME(planes_of)(t, 0);
    NAME(take)(t->n, b->m, z.re, b->x, b->x_step, b->x_across);
    NAME(take)(t->n, b->m, z.im, b->x + 1, b->x_step, b->x_across);
    z = NAME(transformed)(t, b->m);
    NAME(give)(t->n, b->m, z.re, b->out, b->out_step, b->out_across, factor);
    NAME(give)(t->n, b->m, z.im, b->out + 1, b->out_step, b->out_across, factor);
}

/* The spectrum X of an even number n = 2 h of real x_j is that, Z, of h complex z_j = x_2j + i x_2j+1:
 * X_k = (Z_k + conj(Z_h-k)) / 2 - i w^k (Z_k - conj(Z_h-k)) / 2, w = e^(-2 pi i / n). Of an odd n it is computed as
 * that of complex numbers. */
static void NAME(rfft_lines)(const transform *t, const NAME(lines) * b)
{
    const int64_t m = b->m, h = t->n / 2;
    const bool even = t->n % 2 == 0;
    const TYPE *turn = t->turn;
    NAME(planes) z = NAME(planes_of)(t, 0);
    NAME(take)(even ? h : t->n, m, z.re, b->x, (even + 1) * b->x_step, b->x_across);
    if (even)
        NAME(take)(h, m, z.im, b->x + b->x_step, 2 * b->x_step, b->x_across);
    else
        memset(z.im, 0, (size_t)(t->n * m) * sizeof *z.im);
    z = NAME(transformed)(t, m);
    for (int64_t k = 0; k <= h; k++) {
        const int64_t at = even ? k % h : k, mirror = even ? (h - k) % h : k;
        const TYPE by = (TYPE)(t->factor * (is_end(t, k) ? 1 : t->inner));
        const TYPE turn_re = even ? turn[2 * k] : 0, turn_im = even ? turn[2 * k + 1] : 0;
        for (int64_t l = 0; l < m; l++) {
            const TYPE re = z.re[at * m + l], im = z.im[at * m + l];
            const TYPE other_re = z.re[mirror * m + l], other_im = even ? -z.im[mirror * m + l] : im;
            const TYPE low_re = re - other_re, low_im = im - other_im;
            TYPE *out = b->out + k * b->out_step + l * b->out_across;
            out[0] = by * (TYPE)0.5 * ((re + other_re) + (turn_im * low_re + turn_re * low_im));
            out[1] = by * (TYPE)0.5 * ((im + other_im) + (turn_im * low_im - turn_re * low_re));
        }
    }
}

/* Element k <= n / 2 of a spectrum of real numbers, of which a half is there. At its ends imaginary parts have no
 * effect; each of the others stands for two. */
static void NAME(half)(const transform *t, const TYPE *x, int64_t k, TYPE *re, TYPE *im)
{
    const TYPE by = is_end(t, k) ? 1 : (TYPE)(0.5 * t->inner);
    *re = by * x[0];
    *im = is_end(t, k) ? 0 : by * x[1];
}

/* The reverse of rfft: Z_k = (X_k + conj(X_h-k)) + i w^-k (X_k - conj(X_h-k)). */
static void NAME(irfft_lines)(const transform *t, const NAME(lines) * b)
{
    const int64_t m = b->m, h = t->n / 2;
    const bool even = t->n % 2 == 0;
    const TYPE factor = (TYPE)t->factor, *turn = t->turn;
    NAME(planes) z = NAME(planes_of)(t, 0);
    for (int64_t k = 0; k < (even ? h : t->n); k++) {
        const int64_t at = k > h ? t->n - k : k, mirror = even ? h - k : at;
        const TYPE turn_re = even ? turn[2 * k] : 0, turn_im = even ? turn[2 * k + 1] : 0;
        for (int64_t l = 0; l < m; l++) {
            TYPE re, im, other_re, other_im;
            NAME(half)(t, b->x + at * b->x_step + l * b->x_across, at, &re, &im);
            if (even) {
                NAME(half)(t, b->x + mirror * b->x_step + l * b->x_across, mirror, &other_re, &other_im);
                const TYPE low_re = re - other_re, low_im = im + other_im;
                re = (re + other_re) + (turn_im * low_re - turn_re * low_im);
                im = (im - other_im) + (turn_re * low_re + turn_im * low_im);
            }
            z.re[k * m + l] = re;
            z.im[k * m + l] = k > h ? -im : im;
        }
    }
    z = NAME(transformed)(t, m);
    NAME(give)(even ? h : t->n, m, z.re, b->out, (even + 1) * b->out_step, b->out_across, factor);
    if (even)
        NAME(give)(h, m, z.im, b->out + b->out_step, 2 * b->out_step, b->out_across, factor);
}

/* Rows of along_run, a block of lines at a time. out_parts, x_parts: 2 of complex numbers. */
static void NAME(each_block)(int64_t n, void *const *data, const int64_t *step, const along *a, int64_t out_parts,
                             int64_t x_parts, void (*run_lines)(const transform *t, const NAME(lines) * b))
{
    const transform *t = a->scratch;
    for (int64_t from = 0; from < n; from += t->lines) {
        const NAME(lines) b = {.m = n - from < t->lines ? n - from : t->lines,
                               .out = (TYPE *)data[0] + from * step[0] * out_parts,
                               .x = (const TYPE *)data[1] + from * step[1] * x_parts,
                               .out_step = a->step[0] * out_parts,
                               .x_step = a->step[1] * x_parts,
                               .out_across = step[0] * out_parts,
                               .x_across = step[1] * x_parts};
        run_lines(t, &b);
    }
}

ROW_SIGNATURE(NAME(fft))
{
    NAME(each_block)(n, data, step, with, 2, 2, NAME(fft_lines));
}

ROW_SIGNATURE(NAME(rfft))
{
    NAME(each_block)(n, data, step, with, 2, 1, NAME(rfft_lines));
}

ROW_SIGNATURE(NAME(irfft))
{
    NAME(each_block)(n, data, step, with, 1, 2, NAME(irfft_lines));
}

#undef TYPE
#undef NAME
