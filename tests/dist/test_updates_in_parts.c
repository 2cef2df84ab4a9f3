/* SPDX-License-Identifier: Apache-2.0 */
/* Updates in parts change no number: fits against plain loops, whole updates, and random programs. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "fitting.h"
#include "suite.h"
#include "trama_composed.h"

/* lamb and heavy_ball are several ops; the second one is a user's. */
enum { N_OPTIMIZERS = 7 };
static void list_optimizers(trama_optimizer *all)
{
    all[0] = trama_sgd(0.05);
    all[1] = trama_sgd(0.05);
    all[1].momentum = 0.9;
    all[2] = trama_adam(0.05);
    all[3] = trama_adamw(0.05);
    all[3].clip_norm = 0.5;
    all[3].clip_value = 0.25;
    all[4] = trama_lamb(0.02);
    all[5] = trama_adamw(0.05);
    all[5].loss_scale = trama_loss_scale_dynamic();
    all[6] = trama_optimizer_define("heavy_ball", 0.05, heavy_ball);
    for (int i = 0; i < N_OPTIMIZERS; i++)
        all[i].share_bytes = 1;
}

/* Of more layouts than those of other tests: parts of 7 and 5 over 2, 3 and 4, of replicas, and more processes than
 * parts. */
static const fit_layout fits[] = {
    {"2", "S(0)", "R", NULL, "R"},
    {"3", "S(0)", "R", NULL, "R"},
    {"4", "S(0)", "R", NULL, "R"},
    {"7", "S(0)", "R", NULL, "R"},
    {"2,2", "S(0),R", "R,R", NULL, "R,R"},
    {"2,2", "S(0),R", "R,S(1)", NULL, "R,S(0)"},
    {"2,2", "S(0),S(0)", "R,R", NULL, "R,R"},
    {"[2,1]", "S(0)", "R", NULL, "R"},
};
enum { N_FITS = sizeof fits / sizeof *fits };

/* Whether the last op that updates a state computes on parts of it. */
static bool is_in_parts(const simulation *s, const trama_value *state)
{
    const layouts *l = simulation_layouts(s);
    const trama_node *node = state->program->nodes.at[state->state->updated_by - 1];
    for (int t = 0; t < node->op->n_in; t++)
        if (node_updates(node, t) && value_storage(node->in[t]) == state)
            return !trama_layout_equal(&l->op[node->id]->in[t], &l->value[state->id]);
    return false;
}

/* Ranks of several processes and one, of CPUs and GPUs: replicas must agree, which simulation_value checks. */
START_TEST(updates_in_parts_follow_plain_loops)
{
    trama_optimizer all[N_OPTIMIZERS];
    list_optimizers(all);
    for (int i = 0; i < N_OPTIMIZERS; i++)
        for (int l = 0; l < N_FITS; l++)
            for (int variant = 0; variant < MACHINE_VARIANTS; variant += 1 + (i + l) % 2) {
                char name[96];
                plain_fit plain = plain_fit_new();
                fit_run r = run_new(&fits[l], &all[i], &plain, 1 + (i + l) % 4, variant);
                ck_assert(is_in_parts(r.s, r.f.parameter[0]));
                snprintf(name, sizeof name, "%s on %s, variant %d", all[i].name, fits[l].mesh, variant);
                for (int step = 1; step <= 6; step++) {
                    simulation_run(r.s, r.train);
                    ck_assert_msg(simulation_verify(r.s) == TRAMA_OK, "%s: %s", name, trama_error());
                    if (i == 6) {
                        trama_optimizer momentum = trama_sgd(0.05);
                        momentum.momentum = 0.9;
                        plain_fit_step(&momentum, momentum.lr, &plain);
                    } else {
                        plain_fit_step(&all[i], all[i].lr, &plain);
                    }
                    fit_compare(&r, &plain, name, step, TOLERANCE);
                }
                fit_run_free(&r);
            }
}
END_TEST

/* Each term is added in its order, and each element is updated by the same numbers. */
START_TEST(parts_have_the_bits_of_the_whole)
{
    trama_optimizer all[N_OPTIMIZERS];
    list_optimizers(all);
    for (int i = 0; i < 3; i++)
        for (int l = 0; l < N_FITS; l++) {
            plain_fit plain = plain_fit_new();
            trama_optimizer whole = all[i];
            whole.share_bytes = 0;
            fit_run of[] = {run_new(&fits[l], &all[i], &plain, 2, 0), run_new(&fits[l], &whole, &plain, 2, 0)};
            for (int step = 0; step < 3; step++)
                for (int k = 0; k < 2; k++)
                    simulation_run(of[k].s, of[k].train);
            for (int q = 0; q < FIT_PARAMETERS; q++) {
                dense one = simulation_value(of[0].s, of[0].f.parameter[q]),
                      other = simulation_value(of[1].s, of[1].f.parameter[q]);
                ck_assert_mem_eq(one.at, other.at, (size_t)plain.parameter[q].n * sizeof *one.at);
                dense_free(&one);
                dense_free(&other);
            }
            fit_run_free(&of[0]);
            fit_run_free(&of[1]);
        }
}
END_TEST

/* ---- Programs of their own ---- */

/* of: weights, and values of the target. */
typedef struct job {
    trama_program *p;
    trama_mesh *mesh;
    trama_value *x, *of[4];
    trama_target *train;
    machine *m;
    simulation *s;
} job;

static void job_step(job *j, const dense *x, const char *name)
{
    simulation_feed(j->s, j->x, x);
    simulation_run(j->s, j->train);
    ck_assert_msg(simulation_verify(j->s) == TRAMA_OK, "%s: %s", name, trama_error());
}

static void job_free(job *j)
{
    simulation_destroy(&j->s);
    machine_destroy(&j->m);
    trama_program_destroy(&j->p);
    trama_mesh_destroy(&j->mesh);
}

/* mean((x w)^2) on n GPUs that run collectives: w after two steps, and the all-gathers of rank 0 into a state. */
static dense trained_on_gpus(int n, int64_t share_bytes, int *gathers)
{
    char of_gpus[8];
    trama_optimizer adam = trama_adam(0.1);
    adam.share_bytes = share_bytes;
    snprintf(of_gpus, sizeof of_gpus, "%d", n);
    job j = {.p = trama_program_create(), .mesh = trama_mesh_create(of_gpus), .m = machine_uniform(n, 1)};
    j.x = trama_shard(trama_input(j.p, "x", TRAMA_F32, TRAMA_SHAPE(64, 12)), j.mesh, "S(0)");
    trama_value *w = trama_parameter(j.p, "w", TRAMA_F32, TRAMA_SHAPE(12, 16), NULL);
    j.train = trama_target_create(j.p, "train", trama_minimize(trama_mean(trama_square(trama_matmul(j.x, w))), &adam));
    machine_vary(j.m, 1);
    j.s = simulation_new(j.p, j.m, &(simulation_options){.plan = {1, 1, 1, false, .collectives = true}});
    dense data = dense_random(TRAMA_SHAPE(64, 12), 1, -4, 4, true),
          start = dense_random(TRAMA_SHAPE(12, 16), 2, -2, 2, true);
    simulation_write(j.s, w, &start);
    for (int step = 0; step < 2; step++)
        job_step(&j, &data, of_gpus);
    const plan *planned = simulation_plan(j.s, 0);
    *gathers = 0;
    for (int i = 0; i < planned->steps.n; i++) {
        const plan_step *step = &planned->steps.at[i];
        *gathers += step->kind == STEP_COLLECTIVE && step->collective.form == PLAN_ALL_GATHER &&
                    planned->shards.at[plan_step_operand(planned, step, 0)->region.shard].source == SHARD_IMPORT;
    }
    dense made = simulation_value(j.s, w);
    dense_free(&data);
    dense_free(&start);
    job_free(&j);
    return made;
}

START_TEST(gpus_gather_parts_together)
{
    for (int n = 2; n <= 4; n++) {
        int in_parts_gathers, whole_gathers;
        dense one = trained_on_gpus(n, 1, &in_parts_gathers), other = trained_on_gpus(n, 0, &whole_gathers);
        ck_assert_int_eq(in_parts_gathers, 1);
        ck_assert_int_eq(whole_gathers, 0);
        ck_assert_mem_eq(one.at, other.at, 12 * 16 * sizeof *one.at);
        dense_free(&one);
        dense_free(&other);
    }
}
END_TEST

/* w, decayed by adam without terms, and fitted by sgd to data of which each process has a half: after three runs of
 * each, adam's first. They are recorded in either order. */
static dense trained_by_two(bool adam_first, int64_t share_bytes)
{
    job j = {.p = trama_program_create(), .mesh = trama_mesh_create("2"), .m = machine_uniform(2, 1)};
    trama_optimizer adam = trama_adam(0.1), sgd = trama_sgd(0.01);
    adam.share_bytes = sgd.share_bytes = share_bytes;
    j.x = trama_shard(trama_input(j.p, "x", TRAMA_F64, TRAMA_SHAPE(24, 12)), j.mesh, "S(0)");
    trama_value *w = trama_shard(trama_parameter(j.p, "w", TRAMA_F64, TRAMA_SHAPE(12, 16), NULL), j.mesh, "R");
    trama_target *of[2];
    for (int i = 0; i < 2; i++) {
        const bool decays = adam_first == (i == 0);
        trama_value *loss = decays ? trama_sum(trama_square(w)) : trama_mean(trama_square(trama_matmul(j.x, w)));
        of[i] = trama_target_create(j.p, i ? "second" : "first", trama_minimize(loss, decays ? &adam : &sgd));
        ck_assert_msg(of[i] != NULL, "%s", trama_program_error(j.p));
    }
    j.s = simulation_new(j.p, j.m, &(simulation_options){.plan = {1, 1, 1, false}});
    dense data = dense_random(TRAMA_SHAPE(24, 12), 1, -1, 1, false),
          start = dense_random(TRAMA_SHAPE(12, 16), 2, -1, 1, false);
    simulation_write(j.s, w, &start);
    for (int step = 0; step < 6; step++) {
        j.train = of[adam_first ? step % 2 : 1 - step % 2];
        job_step(&j, &data, "two optimizers");
    }
    dense made = simulation_value(j.s, w);
    dense_free(&data);
    dense_free(&start);
    job_free(&j);
    return made;
}

START_TEST(two_optimizers_update_one_parameter)
{
    dense whole = trained_by_two(true, 0);
    for (int i = 0; i < 4; i++) {
        dense other = trained_by_two(i % 2, i / 2);
        ck_assert_double_le(dense_difference(&whole, &other), 1e-12);
        dense_free(&other);
    }
    dense_free(&whole);
}
END_TEST

/* ---- Random programs ---- */

/* A network of two weights: the first one annotated, the second one not, trained with what is drawn. */
typedef struct drawn {
    const fit_layout *l; /* x and w */
    int optimizer, n_processes, rows, columns, variant, k, slot, tiles, late;
    bool clips, groups;
} drawn;

static uint64_t draws;
static int draw(int n)
{
    draws = draws * 6364136223846793005u + 1442695040888963407u;
    return (int)((draws >> 33) % (uint64_t)n);
}

static drawn draw_program(void)
{
    static const struct {
        fit_layout l;
        int n;
    } layouts_of[] = {
        {{"2", "S(0)", "R", NULL, NULL}, 2},          {{"3", "S(0)", "R", NULL, NULL}, 3},
        {{"8", "S(0)", "R", NULL, NULL}, 8},          {{"2,2", "S(0),R", "R,R", NULL, NULL}, 4},
        {{"2,2", "R,S(0)", "R,R", NULL, NULL}, 4},    {{"2,2", "S(0),S(0)", "R,R", NULL, NULL}, 4},
        {{"2,2", "S(0),R", "R,S(1)", NULL, NULL}, 4}, {{"2,2", "S(0),S(1)", "R,S(0)", NULL, NULL}, 4},
        {{"2,3", "S(0),R", "R,R", NULL, NULL}, 6},    {{"[3,1,1]", "S(0)", "R", NULL, NULL}, 3},
    };
    const int l = draw(sizeof layouts_of / sizeof *layouts_of);
    return (drawn){.l = &layouts_of[l].l,
                   .n_processes = layouts_of[l].n,
                   .optimizer = draw(N_OPTIMIZERS),
                   .rows = 3 + draw(14),
                   .columns = 3 + draw(14),
                   .variant = draw(MACHINE_VARIANTS),
                   .k = 1 + draw(2),
                   .slot = draw(3) - 1,
                   .tiles = 1 + draw(5),
                   .late = draw(4),
                   .clips = draw(2),
                   .groups = draw(2)};
}

/* The second value is read behind the update, but has w as it was before; so has the third. */
static void name_late(job *j, const drawn *d, trama_value *loss)
{
    trama_value *w = j->of[0];
    j->of[2] = d->late ? trama_sum(trama_mul(w, trama_scale(w, 2))) : loss;
    j->of[3] = d->late == 2 ? trama_scale(trama_matmul(j->x, w), 3) : d->late == 3 ? trama_stop_gradient(w) : loss;
}

static job job_of(const drawn *d, bool in_parts)
{
    job j = {.p = trama_program_create(), .mesh = trama_mesh_create(d->l->mesh)};
    trama_optimizer all[N_OPTIMIZERS], *o = &all[d->optimizer];
    list_optimizers(all);
    o->share_bytes = in_parts;
    o->clip_norm = d->clips ? 0.3 : o->clip_norm;
    trama_optimizer other = *o;
    other.share_bytes = 0;
    const trama_parameter_group group = {.parameters = "v", .optimizer = &other};
    o->n_groups = d->groups;
    o->groups = &group;
    j.x = trama_shard(trama_input(j.p, "x", TRAMA_F64, TRAMA_SHAPE(24, d->rows)), j.mesh, d->l->x);
    j.of[0] = trama_parameter(j.p, "w", TRAMA_F64, TRAMA_SHAPE(d->rows, d->columns), NULL);
    j.of[1] = trama_parameter(j.p, "v", TRAMA_F64, TRAMA_SHAPE(d->columns, d->rows), NULL);
    trama_shard(j.of[0], j.mesh, d->l->w);
    trama_value *h = trama_tanh(trama_matmul(j.x, j.of[0])), *loss = trama_mean(trama_square(trama_matmul(h, j.of[1]))),
                *done = trama_minimize(loss, o);
    if (d->slot >= 0 && in_parts && d->optimizer == 2 && trama_mesh_ndim(j.mesh) == 1)
        trama_shard(program_leaf_named(j.p, "w.m", NULL), j.mesh, d->slot ? "S(1)" : "S(0)");
    name_late(&j, d, loss);
    j.train = trama_target_create(j.p, "train", done, loss, j.of[2], j.of[3]);
    ck_assert_msg(j.train != NULL, "%s", trama_program_error(j.p));
    j.m = simulation_machine(d->n_processes, 1, 2);
    machine_vary(j.m, d->variant);
    const simulation_options options = {.plan = {d->tiles, 1, 1, false, .sum_tile = d->tiles > 2 ? 24 : 0}};
    j.s = simulation_of_cycle(j.p, j.train, d->k, j.m, &options);
    return j;
}

/* Returns whether the first weight is updated in parts. */
static bool compare_jobs(const drawn *d, const char *name)
{
    job whole = job_of(d, false), parts = job_of(d, true);
    const bool shared = is_in_parts(parts.s, parts.of[0]);
    ck_assert_msg(!is_in_parts(whole.s, whole.of[0]), "%s", name);
    for (int step = 0; step < 3; step++) {
        dense x = dense_random(TRAMA_SHAPE(24, d->rows), (uint64_t)step + 1, -1, 1, false);
        job_step(&whole, &x, name);
        job_step(&parts, &x, name);
        for (int i = 0; i < 4; i++) {
            dense one = simulation_value(whole.s, whole.of[i]), other = simulation_value(parts.s, parts.of[i]);
            ck_assert_msg(dense_difference(&one, &other) < 1e-11, "%s: value %d in step %d", name, i, step);
            dense_free(&one);
            dense_free(&other);
        }
        dense_free(&x);
    }
    job_free(&whole);
    job_free(&parts);
    return shared;
}

START_TEST(random_programs_have_equal_values_in_parts)
{
    const int n = suite_is_long() ? 5000 : suite_is_sanitized() ? 40 : 150;
    int shared = 0;
    for (int i = 0; i < n; i++) {
        char name[96];
        draws = (uint64_t)i;
        const drawn d = draw_program();
        snprintf(name, sizeof name, "program %d on %s", i, d.l->mesh);
        shared += compare_jobs(&d, name);
    }
    printf("%d of %d programs update in parts\n", shared, n);
    ck_assert_int_gt(3 * shared, n);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        updates_in_parts_follow_plain_loops, parts_have_the_bits_of_the_whole,           gpus_gather_parts_together,
        two_optimizers_update_one_parameter, random_programs_have_equal_values_in_parts,
    };
    return suite_run("updates_in_parts", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
