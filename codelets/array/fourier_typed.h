/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of fourier_line.c for numbers of TYPE, which it includes once for each. */

/* One pass of Stockham's form: the transforms of length `factor m` over `stride` elements side by side become `factor`
 * of length m. x and y are the planes of operand and result. */
typedef struct NAME(pass) {
    int64_t m, stride;
    int factor;
    const TYPE *turn; /* [fourier_length][2] */
    int64_t step;     /* of the table, from e^(-2 pi i / (factor m)) to its square */
    const TYPE *x_re, *x_im;
    TYPE *y_re, *y_im;
} NAME(pass);

/* y_k = w_k (u_re + i u_im) */
#define PUT(k, u_re, u_im)                                                                                             \
    {                                                                                                                  \
        const TYPE a = u_re, b = u_im;                                                                                 \
        y_re[(k)*s + q] = w_re[k] * a - w_im[k] * b;                                                                   \
        y_im[(k)*s + q] = w_re[k] * b + w_im[k] * a;                                                                   \
    }

FAST static void NAME(pass_2)(int64_t s, const TYPE *x_re, const TYPE *x_im, int64_t apart, TYPE *y_re, TYPE *y_im,
                              const TYPE *w_re, const TYPE *w_im)
{
    INDEPENDENT
    for (int64_t q = 0; q < s; q++) {
        const TYPE re0 = x_re[q], im0 = x_im[q], re1 = x_re[q + apart], im1 = x_im[q + apart];
        y_re[q] = re0 + re1;
        y_im[q] = im0 + im1;
        PUT(1, re0 - re1, im0 - im1)
    }
}

FAST static void NAME(pass_3)(int64_t s, const TYPE *x_re, const TYPE *x_im, int64_t apart, TYPE *y_re, TYPE *y_im,
                              const TYPE *w_re, const TYPE *w_im)
{
    const TYPE height = (TYPE)0.86602540378443864676; /* sin(pi / 3) */
    INDEPENDENT
    for (int64_t q = 0; q < s; q++) {
        const TYPE re0 = x_re[q], im0 = x_im[q], re1 = x_re[q + apart], im1 = x_im[q + apart];
        const TYPE re2 = x_re[q + 2 * apart], im2 = x_im[q + 2 * apart];
        const TYPE sum_re = re1 + re2, sum_im = im1 + im2, across_re = height * (im1 - im2),
                   across_im = height * (re2 - re1), mid_re = re0 - (TYPE)0.5 * sum_re,
                   mid_im = im0 - (TYPE)0.5 * sum_im;
        y_re[q] = re0 + sum_re;
        y_im[q] = im0 + sum_im;
        PUT(1, mid_re + across_re, mid_im + across_im)
        PUT(2, mid_re - across_re, mid_im - across_im)
    }
}

FAST static void NAME(pass_4)(int64_t s, const TYPE *x_re, const TYPE *x_im, int64_t apart, TYPE *y_re, TYPE *y_im,
                              const TYPE *w_re, const TYPE *w_im)
{
    INDEPENDENT
    for (int64_t q = 0; q < s; q++) {
        const TYPE re0 = x_re[q], im0 = x_im[q], re1 = x_re[q + apart], im1 = x_im[q + apart];
        const TYPE re2 = x_re[q + 2 * apart], im2 = x_im[q + 2 * apart];
        const TYPE re3 = x_re[q + 3 * apart], im3 = x_im[q + 3 * apart];
        const TYPE even_re = re0 + re2, even_im = im0 + im2, odd_re = re1 + re3, odd_im = im1 + im3;
        const TYPE low_re = re0 - re2, low_im = im0 - im2, high_re = im1 - im3, high_im = re3 - re1;
        y_re[q] = even_re + odd_re;
        y_im[q] = even_im + odd_im;
        PUT(1, low_re + high_re, low_im + high_im)
        PUT(2, even_re - odd_re, even_im - odd_im)
        PUT(3, low_re - high_re, low_im - high_im)
    }
}

/* Any factor, by the definition; roots [factor][2] are its roots of unity. */
FAST static void NAME(pass_any)(int64_t s, const TYPE *x_re, const TYPE *x_im, int64_t apart, TYPE *y_re, TYPE *y_im,
                                const TYPE *w_re, const TYPE *w_im, int factor, const TYPE *roots)
{
    for (int k = 0; k < factor; k++) {
        INDEPENDENT
        for (int64_t q = 0; q < s; q++) {
            TYPE re = x_re[q], im = x_im[q];
            for (int j = 1, at = k; j < factor; j++, at = (at + k) % factor) {
                const TYPE c = roots[2 * at], d = roots[2 * at + 1], a = x_re[j * apart + q], b = x_im[j * apart + q];
                re += c * a - d * b;
                im += c * b + d * a;
            }
            PUT(k, re, im)
        }
    }
}
#undef PUT

static void NAME(run_pass)(const NAME(pass) * p)
{
    TYPE w_re[LARGEST + 1] = {1}, w_im[LARGEST + 1] = {0}, roots[2 * LARGEST];
    const int64_t s = p->stride, apart = s * p->m;
    for (int j = 0; j < p->factor; j++)
        memcpy(&roots[2 * j], &p->turn[2 * j * p->m * p->step], 2 * sizeof *roots);
    for (int64_t k = 0; k < p->m; k++) {
        const TYPE *x_re = p->x_re + k * s, *x_im = p->x_im + k * s;
        TYPE *y_re = p->y_re + k * p->factor * s, *y_im = p->y_im + k * p->factor * s;
        for (int j = 1; j < p->factor; j++) {
            w_re[j] = p->turn[2 * j * k * p->step];
            w_im[j] = p->turn[2 * j * k * p->step + 1];
        }
        if (p->factor == 4)
            NAME(pass_4)(s, x_re, x_im, apart, y_re, y_im, w_re, w_im);
        else if (p->factor == 2)
            NAME(pass_2)(s, x_re, x_im, apart, y_re, y_im, w_re, w_im);
        else if (p->factor == 3)
            NAME(pass_3)(s, x_re, x_im, apart, y_re, y_im, w_re, w_im);
        else
            NAME(pass_any)(s, x_re, x_im, apart, y_re, y_im, w_re, w_im, p->factor, roots);
    }
}

/* Whether the result lies in the other planes. */
static bool NAME(run_passes)(const fourier *f, int64_t lines, TYPE *re, TYPE *im, TYPE *other_re, TYPE *other_im)
{
    const int64_t n = fourier_length(f);
    int64_t length = n;
    bool others = false;
    for (int i = 0; i < f->n_factors; i++, others = !others) {
        const int factor = f->factor[i];
        const NAME(pass) p = {.m = length / factor,
                              .stride = lines * (n / length),
                              .factor = factor,
                              .turn = f->turn,
                              .step = n / length,
                              .x_re = others ? other_re : re,
                              .x_im = others ? other_im : im,
                              .y_re = others ? re : other_re,
                              .y_im = others ? im : other_im};
        NAME(run_pass)(&p);
        length /= factor;
    }
    return others;
}

/* Elements k < n of each line are multiplied by those of a table [n][2]. */
static void NAME(multiply)(int64_t n, int64_t lines, TYPE *re, TYPE *im, const TYPE *by)
{
    for (int64_t k = 0; k < n; k++)
        for (int64_t l = k * lines; l < (k + 1) * lines; l++) {
            const TYPE a = re[l], b = im[l];
            re[l] = a * by[2 * k] - b * by[2 * k + 1];
            im[l] = a * by[2 * k + 1] + b * by[2 * k];
        }
}

bool NAME(fourier_lines)(const fourier *f, int64_t lines, TYPE *re, TYPE *im, TYPE *other_re, TYPE *other_im)
{
    if (!f->padded)
        return NAME(run_passes)(f, lines, re, im, other_re, other_im);
    const size_t rest = (size_t)((f->padded - f->n) * lines) * sizeof *re;
    NAME(multiply)(f->n, lines, re, im, f->chirp);
    memset(re + f->n * lines, 0, rest);
    memset(im + f->n * lines, 0, rest);
    const bool first = NAME(run_passes)(f, lines, re, im, other_re, other_im);
    TYPE *now[2] = {first ? other_re : re, first ? other_im : im};
    TYPE *then[2] = {first ? re : other_re, first ? im : other_im};
    NAME(multiply)(f->padded, lines, now[0], now[1], f->filter);
    /* the inverse: real and imaginary parts change places */
    const bool second = NAME(run_passes)(f, lines, now[1], now[0], then[1], then[0]);
    NAME(multiply)(f->n, lines, second ? then[0] : now[0], second ? then[1] : now[1], f->chirp);
    return first != second;
}

/* e^(-pi i k^2 / n) and, for the convolution, its conjugate at k and padded - k, divided by the padded length. */
static void NAME(fill_chirp)(fourier *f, TYPE *work)
{
    TYPE *chirp = f->chirp, *re = work, *im = re + f->padded, *other = im + f->padded, *filter = f->filter;
    memset(work, 0, (size_t)(4 * f->padded) * sizeof *work);
    for (int64_t k = 0; k < f->n; k++) {
        double c, s;
        fourier_turn((int64_t)((unsigned __int128)k * (unsigned __int128)k % (uint64_t)(2 * f->n)), 2 * f->n, &c, &s);
        chirp[2 * k] = (TYPE)c;
        chirp[2 * k + 1] = (TYPE)s;
        re[k] = re[k ? f->padded - k : 0] = (TYPE)(c / (double)f->padded);
        im[k] = im[k ? f->padded - k : 0] = (TYPE)(-s / (double)f->padded);
    }
    if (NAME(run_passes)(f, 1, re, im, other, other + f->padded)) {
        re = other;
        im = other + f->padded;
    }
    for (int64_t k = 0; k < f->padded; k++) {
        filter[2 * k] = re[k];
        filter[2 * k + 1] = im[k];
    }
}

bool NAME(fourier)(fourier *f, int64_t n, scratch *s, int i)
{
    *f = (fourier){.n = n};
    if (!factors_of(n, &f->n_factors, f->factor)) {
        f->padded = fourier_smooth(2 * n - 1);
        factors_of(f->padded, &f->n_factors, f->factor);
    }
    const int64_t length = fourier_length(f);
    TYPE *turn = scratch_take(s, i, (size_t)(2 * length + (f->padded ? 2 * n + 6 * length : 0)) * sizeof *turn);
    if (!turn)
        return false;
    f->turn = turn;
    for (int64_t k = 0; k < length; k++) {
        double c, d;
        fourier_turn(k, length, &c, &d);
        turn[2 * k] = (TYPE)c;
        turn[2 * k + 1] = (TYPE)d;
    }
    if (f->padded) {
        f->chirp = turn + 2 * length;
        f->filter = turn + 2 * length + 2 * n;
        NAME(fill_chirp)(f, turn + 4 * length + 2 * n);
    }
    return true;
}

#undef TYPE
#undef NAME
