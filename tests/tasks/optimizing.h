/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of an optimizer on the fit of descent.h, through Trama and through its plain loops. */
#ifndef OPTIMIZING_H
#define OPTIMIZING_H

#include "descent.h"
#include "harness.h"

/* Warm-up over 3 steps, then a cosine over 10 to a tenth. */
static inline double warm_cosine(int64_t n)
{
    double share = fmin(fmax((double)n - 3, 0) / 10, 1);
    return fmin((double)(n + 1) / 4, 1) * (0.1 + 0.9 * (1 + cos(acos(-1) * share)) / 2);
}

/* One number of the data, and what it is more than it should be. */
typedef struct spoiled {
    int64_t at;
    double by;
} spoiled;

/* Rows [from, from + n) of an input. */
static inline void feed_rows(trama_executable *e, const trama_value *input, trama_dtype dtype, const double *all,
                             int from, int n, spoiled s)
{
    int64_t width = trama_value_shape(input).dim[1], first = from * width, count = n * width;
    void *room = malloc((size_t)count * sizeof *all);
    for (int64_t i = 0; i < count; i++)
        set_number(room, dtype, i, all[first + i] + (first + i == s.at ? s.by : 0));
    must(trama_feed(e, input, room, TRAMA_SHAPE(n, width)));
    free(room);
}

/* One micro-step: n rows. */
static inline void fit_rows(trama_executable *e, const fit *f, const trama_target *train, trama_dtype dtype,
                            const plain_fit *data, int from, int n, spoiled s)
{
    feed_rows(e, f->x, dtype, data->x, from, n, s);
    feed_rows(e, f->y, dtype, data->y, from, n, (spoiled){-1, 0});
    must(trama_run(e, train));
}

static inline void optimize_plainly(plain_fit *p, const trama_optimizer *o)
{
    double rate = o->schedule.factor ? warm_cosine(p->steps) : 1;
    plain_fit_gradients(p);
    plain_clip(o, FIT_PARAMETERS, p->parameter);
    p->steps++;
    for (int i = 0; i < FIT_PARAMETERS; i++)
        plain_update(o, o->lr * rate, p->steps, &p->parameter[i]);
}

static inline void compare_fit(trama_executable *e, const fit *f, trama_dtype dtype, const plain_fit *p,
                               const char *name, double tolerance)
{
    for (int i = 0; i < FIT_PARAMETERS; i++) {
        double room[FIT_IN * FIT_OUT];
        int n = p->parameter[i].n;
        must(trama_read(e, f->parameter[i], room, (size_t)n * trama_dtype_size(dtype)));
        for (int k = 0; k < n; k++) {
            double got = number_at(room, dtype, k), wanted = p->parameter[i].value[k];
            demand(fabs(got - wanted) <= tolerance * fmax(1, fabs(wanted)),
                   "%s, %s: element %d of %s is %.17g, not %.17g", name, trama_dtype_name(dtype), k,
                   trama_value_name(f->parameter[i]), got, wanted);
        }
    }
}

#endif
