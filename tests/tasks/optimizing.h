/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizers with all that belongs to them, run on every layout of descent.h beside its plain loops. */
#ifndef OPTIMIZING_H
#define OPTIMIZING_H

#include "descent.h"
#include "harness.h"
#include "suite.h"

/* Steps of which the data are not finite; only optimizers with a loss scale see them. */
static inline bool is_spoiled(const trama_optimizer *o, int step)
{
    return o->loss_scale.initial > 0 && (step == 1 || step == 6);
}

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

/* How the rows of a step are cut into k micro-steps, by turns. */
static inline const int *fit_parts(int k, int step)
{
    static const int none[] = {FIT_ROWS}, of_2[][2] = {{6, 6}, {5, 7}}, of_4[][4] = {{3, 3, 3, 3}, {1, 5, 2, 4}},
                     of_8[][8] = {{2, 1, 2, 1, 2, 1, 2, 1}, {1, 1, 3, 1, 2, 1, 1, 2}};
    return k == 1 ? none : k == 2 ? of_2[step % 2] : k == 4 ? of_4[step % 2] : of_8[step % 2];
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

/* k: micro-steps of a step, which merge as `how` says; the plain loops have its batch at once. */
static inline void optimize_beside_plain(const fit_layout *l, const trama_optimizer *o, trama_dtype dtype, int k,
                                         unsigned how, int steps, double tolerance)
{
    char name[64];
    plain_fit plain = plain_fit_new();
    fit f = fit_of_rows(l, dtype, k > 1 ? TRAMA_ANY : FIT_ROWS);
    trama_target *train = trama_target_create(f.program, "train", trama_minimize(f.loss, o), f.loss);
    if (k > 1)
        trama_gradient_merge(train, k, how);
    must(trama_program_status(f.program));
    trama_executable *e = compile(f.program);
    for (int step = 0; step < steps; step++) {
        const int *part = fit_parts(k, step);
        for (int i = 0, from = 0; i < k; from += part[i++])
            fit_rows(e, &f, train, dtype, &plain, from, part[i], (spoiled){40, is_spoiled(o, step) ? INFINITY : 0});
        if (!is_spoiled(o, step))
            optimize_plainly(&plain, o);
    }
    snprintf(name, sizeof name, "%s on %s, k = %d", o->name, l->mesh ? l->mesh : "nothing", k);
    compare_fit(e, &f, dtype, &plain, name, tolerance);
    must(trama_executable_destroy(&e));
    fit_free(&f);
}

enum { N_OPTIMIZERS = 8 };
static inline void list_optimizers(trama_optimizer o[N_OPTIMIZERS])
{
    trama_optimizer all[] = {trama_sgd(0.05),   trama_sgd(0.05),   trama_sgd(0.05),  trama_adam(0.05),
                             trama_adamw(0.05), trama_adamw(0.05), trama_lamb(0.02), trama_sgd(0.05)};
    all[1].momentum = 0.9;
    all[1].nesterov = true;
    all[1].weight_decay = 0.01;
    all[2].clip_value = 0.25;
    all[2].clip_norm = 0.5;
    all[2].loss_scale = trama_loss_scale_dynamic();
    all[3].weight_decay = 0.1;
    all[4].clip_norm = 1;
    all[4].schedule = trama_schedule_cosine(10, 0.1);
    all[4].schedule.warmup = 3;
    all[5].loss_scale = trama_loss_scale_dynamic();
    all[6].schedule = all[4].schedule;
    all[6].loss_scale = trama_loss_scale_dynamic();
    all[7].momentum = 0.8;
    memcpy(o, all, sizeof all);
}

static inline void optimize_everywhere(trama_dtype dtype, int steps, double tolerance)
{
    trama_optimizer all[N_OPTIMIZERS];
    list_optimizers(all);
    for (int i = 0; i < N_OPTIMIZERS; i++)
        for (int l = 0; l < n_fit_layouts; l++)
            optimize_beside_plain(&fit_layouts[l], &all[i], dtype, 1, TRAMA_MERGE_AVG, steps, tolerance);
}

/* In 2, 4 or 8 micro-steps, such that each optimizer and each layout has all; in a long run, all in one rank. */
static inline void optimize_merged(trama_dtype dtype, unsigned how, int steps, double tolerance)
{
    trama_optimizer all[N_OPTIMIZERS];
    list_optimizers(all);
    for (int i = 0; i < N_OPTIMIZERS; i++)
        for (int l = 0; l < n_fit_layouts; l++)
            for (int k = 1; k <= 3; k++)
                if ((n_ranks == 1 && suite_is_long()) || (i + l) % 3 == k - 1)
                    optimize_beside_plain(&fit_layouts[l], &all[i], dtype, 1 << k, how, steps, tolerance);
}

#endif
