/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that are applied, skipped and flushed under a merge whose k changes: what counts them, schedules them and
 * scales their loss, and the boxes of every rank, beside plain loops. */
#include "optimizing.h"

/* n micro-steps of k; flushed where they are fewer. Micro-step `at` has data that are not finite. */
typedef struct merged_step {
    int k, n;
    double spoil;
    int at;
} merged_step;

/* A fit whose target merges, what can be read of its steps (NULL: it has no such thing), and the same in plain. */
typedef struct merged_fit {
    fit f;
    const trama_optimizer *o;
    trama_value *part[TRAMA_N_STEP_PARTS];
    trama_target *train;
    trama_executable *e;
    plain_fit plain;
    plain_scale scale;
    const char *on; /* the layout's mesh, for messages */
} merged_fit;

static merged_fit merged_fit_new(const fit_layout *l, const trama_optimizer *o, int k, unsigned how)
{
    merged_fit m = {.f = fit_of_rows(l, TRAMA_F64, TRAMA_ANY), .o = o, .plain = plain_fit_new()};
    trama_value *listed[1 + TRAMA_N_STEP_PARTS] = {trama_minimize(m.f.loss, o)};
    int n = 1;
    const bool has[] = {true, true, isfinite(o->clip_norm), o->loss_scale.initial > 0, o->loss_scale.initial > 0};
    for (int i = 0; i < TRAMA_N_STEP_PARTS; i++)
        if (has[i])
            listed[n++] = m.part[i] = trama_step_value(listed[0], (trama_step_part)i);
    m.train = trama_target_at(TRAMA_HERE, m.f.program, "train", n, listed);
    trama_gradient_merge(m.train, k, how);
    m.e = compile(m.f.program);
    m.scale.scale = o->loss_scale.initial;
    m.on = l->mesh ? l->mesh : "nothing";
    return m;
}

static void merged_fit_free(merged_fit *m)
{
    must(trama_executable_destroy(&m->e));
    fit_free(&m->f);
}

/* This rank's boxes of every parameter. */
static void compare_boxes(const merged_fit *m, int step, const char *when)
{
    for (int p = 0; p < FIT_PARAMETERS; p++) {
        const trama_value *v = m->f.parameter[p];
        int n;
        must(trama_local_count(m->e, v, &n));
        for (int i = 0; i < n; i++) {
            int64_t lo[2] = {0}, extent[2] = {1, 1};
            double room[FIT_IN * FIT_OUT];
            must(trama_local_box(m->e, v, i, lo, extent));
            int64_t width = trama_value_shape(v).dim[p ? 0 : 1], rows = p ? 1 : extent[0], run = extent[p ? 0 : 1];
            must(trama_read_local(m->e, v, i, room, (size_t)(rows * run) * sizeof *room));
            for (int64_t k = 0; k < rows * run; k++) {
                int64_t at = p ? lo[0] + k : (lo[0] + k / run) * width + lo[1] + k % run;
                double wanted = m->plain.parameter[p].value[at];
                demand(fabs(room[k] - wanted) <= 1e-10 * fmax(1, fabs(wanted)),
                       "%s on %s, %s step %d: element %" PRId64 " of %s is %.17g, not %.17g", m->o->name, m->on, when,
                       step, at, trama_value_name(v), room[k], wanted);
            }
        }
    }
}

static double part_of(const merged_fit *m, trama_step_part part)
{
    char room[sizeof(double)];
    const trama_value *v = m->part[part];
    must(trama_read(m->e, v, room, trama_dtype_size(trama_value_dtype(v))));
    return number_at(room, trama_value_dtype(v), 0);
}

static void demand_part(const merged_fit *m, trama_step_part part, double wanted, int step)
{
    static const char *const names[] = {"number", "learning rate", "norm", "flag", "scale"};
    double is = m->part[part] ? part_of(m, part) : wanted;
    demand(relative(is, wanted) <= 1e-10, "%s on %s: the %s of step %d is %.17g, not %.17g", m->o->name, m->on,
           names[part], step, is, wanted);
}

/* Nothing moves within a cycle; what is state has its first content. */
static void demand_still(const merged_fit *m, int step)
{
    double room;
    if (step == 0)
        expect_here(trama_read(m->e, m->part[TRAMA_STEP_LR], &room, 8), TRAMA_E_NOT_KEPT,
                    "no gradients were applied yet");
    demand_part(m, TRAMA_STEP_NUMBER, (double)m->plain.steps, step - 1);
    compare_boxes(m, step, "within the cycle of");
}

static void take_plain_step(merged_fit *m, const merged_step *s, int step)
{
    bool taken = s->spoil == 0;
    if (taken) {
        double rate = warm_cosine(m->plain.steps);
        optimize_plainly(&m->plain, m->o);
        demand_part(m, TRAMA_STEP_LR, m->o->lr * rate, step);
    }
    plain_scale_step(&m->o->loss_scale, &m->scale, taken);
    demand_part(m, TRAMA_STEP_NUMBER, (double)m->plain.steps, step);
    demand_part(m, TRAMA_STEP_TAKEN, taken, step);
    demand_part(m, TRAMA_STEP_SCALE, m->scale.scale, step);
    compare_boxes(m, step, "after");
}

/* The rows are cut evenly, as far as that goes. */
static void follow_steps(const fit_layout *l, const trama_optimizer *o, unsigned how, int n, const merged_step *steps)
{
    merged_fit m = merged_fit_new(l, o, steps[0].k, how);
    for (int step = 0; step < n; step++) {
        const merged_step *s = &steps[step];
        must(trama_merge_set(m.e, m.train, s->k));
        for (int i = 0; i < s->n; i++) {
            int from = FIT_ROWS * i / s->n, to = FIT_ROWS * (i + 1) / s->n;
            fit_rows(m.e, &m.f, m.train, TRAMA_F64, &m.plain, from, to - from,
                     (spoiled){i == s->at ? FIT_IN * from + 3 : -1, s->spoil});
            if (i < s->k - 1)
                demand_still(&m, step);
        }
        if (s->n < s->k)
            must(trama_flush(m.e, m.train));
        take_plain_step(&m, s, step);
    }
    merged_fit_free(&m);
}

static void follow_steps_everywhere(const trama_optimizer *o, int n, const merged_step *steps)
{
    for (int l = 0; l < n_fit_layouts; l++)
        for (int each = 0; each < 2; each++)
            if (!suite_is_sanitized() || each == l % 2)
                follow_steps(&fit_layouts[l], o, each ? TRAMA_MERGE_SYNC_EACH : TRAMA_MERGE_AVG, n, steps);
}

/* The schedule is that of warm_cosine. */
static trama_optimizer scheduled(trama_optimizer o)
{
    o.schedule = trama_schedule_cosine(10, 0.1);
    o.schedule.warmup = 3;
    return o;
}

START_TEST(schedules_count_steps_that_are_applied_however_long_their_cycles)
{
    static const merged_step steps[] = {{4, 4, 0, 0}, {4, 4, 0, 0}, {1, 1, 0, 0}, {1, 1, 0, 0}, {2, 2, 0, 0},
                                        {8, 8, 0, 0}, {8, 3, 0, 0}, {2, 1, 0, 0}, {3, 3, 0, 0}, {3, 2, 0, 0},
                                        {1, 1, 0, 0}, {4, 4, 0, 0}, {4, 1, 0, 0}, {2, 2, 0, 0}};
    trama_optimizer momentum = scheduled(trama_sgd(0.05)), adam = scheduled(trama_adam(0.05));
    momentum.momentum = 0.9;
    momentum.clip_norm = 0.5;
    adam.clip_value = 0.25;
    start();
    follow_steps_everywhere(&momentum, sizeof steps / sizeof *steps, steps);
    follow_steps_everywhere(&adam, sizeof steps / sizeof *steps, steps);
    stop();
}
END_TEST

/* As one; flushed ones too. */
START_TEST(one_micro_step_that_is_not_finite_skips_its_whole_cycle)
{
    static const merged_step steps[] = {
        {3, 3, 0, 0}, {3, 3, INFINITY, 0},  {3, 3, 0, 0}, {3, 3, NAN, 1}, {3, 3, INFINITY, 2}, {3, 2, 0, 0},
        {3, 3, 0, 0}, {3, 2, -INFINITY, 1}, {1, 1, 0, 0}, {1, 1, NAN, 0}, {8, 8, 0, 0},        {8, 8, INFINITY, 7},
        {8, 3, 0, 0}, {2, 2, 0, 0},         {2, 1, 0, 0}, {4, 4, 0, 0},   {4, 4, 0, 0}};
    trama_optimizer all[] = {scheduled(trama_sgd(0.05)), scheduled(trama_adamw(0.05)), scheduled(trama_lamb(0.02))};
    all[0].momentum = 0.9;
    all[1].clip_norm = 0.5;
    start();
    for (int i = 0; i < 3; i++) {
        all[i].loss_scale = (trama_loss_scale){1024, 2, 0.5, 3};
        follow_steps_everywhere(&all[i], sizeof steps / sizeof *steps, steps);
    }
    stop();
}
END_TEST

TESTS(schedules_count_steps_that_are_applied_however_long_their_cycles,
      one_micro_step_that_is_not_finite_skips_its_whole_cycle)
