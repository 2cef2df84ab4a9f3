/* SPDX-License-Identifier: Apache-2.0 */
/* Reshaped, transposed and cut-out operands that readers find in place: which of them need no copy, results of one
 * device, and damage that the verifier finds. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "pair.h"
#include "suite.h"
#include "trama_array.h"
#include "trama_composed.h"
#include "trama_convolution.h"
#include "trama_ops.h"
#include "trama_optimizer.h"
#include "verify_plan.h"

enum { MOST_TILES = 2 };

static trama_value *reshaped(trama_value *x)
{
    return trama_reshape(x, TRAMA_SHAPE(32, 32));
}

static trama_value *turned(trama_value *x)
{
    return trama_transpose(x, ((int[]){1, 0, 2}));
}

static trama_value *turned_inside(trama_value *x)
{
    return trama_transpose(x, ((int[]){0, 2, 1}));
}

static trama_value *sliced(trama_value *x)
{
    return trama_slice(x, 0, 3, 4);
}

static trama_value *cut_out(trama_value *x)
{
    return trama_slice(x, 2, 8, 16);
}

static trama_value *cut_thin(trama_value *x)
{
    return trama_slice(x, 2, 8, 15);
}

static trama_value *every_second(trama_value *x)
{
    return trama_slice_by(x, 1, 1, 2, 2);
}

static trama_value *padded(trama_value *x)
{
    return trama_pad(x, 0, 1, 1);
}

static trama_value *merged_across(trama_value *x)
{
    return trama_reshape(turned(x), TRAMA_SHAPE(32, 32));
}

static trama_value *in_a_chain(trama_value *x)
{
    trama_value *parts = trama_transpose(trama_reshape(x, TRAMA_SHAPE(8, 2, 2, 32)), ((int[]){1, 2, 0, 3}));
    return trama_squeeze(trama_slice(parts, 0, 1, 1), 0);
}

static trama_value *repeated(trama_value *x)
{
    return trama_broadcast_to(trama_slice(x, 1, 2, 1), TRAMA_SHAPE(8, 6, 32));
}

static trama_value *repeated_in_front(trama_value *x)
{
    return trama_broadcast_to(x, TRAMA_SHAPE(3, 8, 4, 32));
}

static trama_value *repeated_elements(trama_value *x)
{
    return trama_broadcast_to(trama_slice(x, 2, 2, 1), TRAMA_SHAPE(8, 4, 32));
}

/* x [8, 4, 32] computed, one such op or more, and a softmax, which is not done in one task with them. The tiles of x
 * are halves of its last dim. */
typedef struct rearranged {
    const char *name;
    trama_value *(*of)(trama_value *x);
    int aliases[MOST_TILES], copies[MOST_TILES]; /* shards and steps where x has 1 tile, and 2 */
} rearranged;

static const rearranged cases[] = {
    {"reshape", reshaped, {1, 1}, {0, 0}},
    {"transpose", turned, {1, 1}, {0, 0}},
    {"transpose of the last dim", turned_inside, {0, 0}, {1, 2}},
    {"slice", sliced, {1, 1}, {0, 0}},
    {"slice of the dim that is cut", cut_out, {1, 0}, {0, 2}},
    {"rows of 15", cut_thin, {0, 0}, {1, 2}},
    {"step", every_second, {2, 2}, {0, 0}},
    {"pad", padded, {0, 0}, {1, 2}},
    {"reshape of a transposed one", merged_across, {1, 1}, {1, 2}},
    {"expand", repeated, {2, 2}, {0, 0}},
    {"expand in front", repeated_in_front, {2, 2}, {0, 0}},
    {"expand of elements", repeated_elements, {0, 0}, {2, 4}},
    {"chain", in_a_chain, {4, 4}, {0, 0}},
};
enum { CASES = sizeof cases / sizeof *cases };

typedef struct job {
    machine *m;
    trama_program *p;
    trama_value *x, *y, *z;
    trama_target *t;
    pair both;
} job;

static job job_of(const rearranged *c, int tiles, bool keep)
{
    job j = {.m = machine_uniform(1, 2), .p = trama_program_create()};
    j.x = trama_input(j.p, "x", TRAMA_F64, TRAMA_SHAPE(8, 4, 32));
    j.y = c->of(trama_tanh(j.x));
    j.z = trama_softmax(j.y, -1);
    j.t = trama_target_at(NOWHERE, j.p, "t", 1 + keep, (trama_value *[]){j.z, j.y});
    ck_assert_msg(j.t != NULL, "%s", trama_program_error(j.p));
    j.both = pair_new(j.p, j.m, &(simulation_options){.plan = {.max_tiles = tiles, 1, 1}}, c->name);
    dense data = dense_random(j.x->shape, 5, -1, 1, false);
    pair_feed(&j.both, j.x, &data);
    pair_run(&j.both, j.t, 1e-12);
    dense_free(&data);
    return j;
}

static const plan *plan_of(const job *j)
{
    return simulation_plan(j->both.many, 0);
}

static void job_end(job *j)
{
    pair_free(&j->both);
    trama_program_destroy(&j->p);
    machine_destroy(&j->m);
}

static int count_copies(const job *j)
{
    return plan_count_copies(plan_of(j), j->p);
}

START_TEST(operands_are_read_where_they_lie)
{
    for (int i = 0; i < CASES * MOST_TILES; i++) {
        const rearranged *c = &cases[i / MOST_TILES];
        const int tiles = 1 + i % MOST_TILES;
        job j = job_of(c, tiles, false);
        ck_assert_msg(plan_of(&j)->aliases.n == c->aliases[tiles - 1] && count_copies(&j) == c->copies[tiles - 1],
                      "%s, %d tiles: %d aliases, %d copies", c->name, tiles, plan_of(&j)->aliases.n, count_copies(&j));
        ck_assert_int_eq(plan_wrong_alias(plan_of(&j)), -1);
        job_end(&j);
    }
}
END_TEST

/* The user may read it when x is no longer there. */
START_TEST(a_value_that_is_kept_has_a_buffer)
{
    job j = job_of(&cases[0], 1, true);
    ck_assert_int_eq(plan_of(&j)->aliases.n, 0);
    ck_assert_int_eq(count_copies(&j), 1);
    job_end(&j);
}
END_TEST

/* A slice that is used long after the rest would hold up a buffer of which it is a quarter; a half of one may. */
START_TEST(a_small_part_does_not_hold_a_large_buffer_up)
{
    static const struct {
        int64_t rows;
        int aliases;
        bool again; /* the rest is used then too */
    } ways[] = {{2, 0, false}, {4, 1, false}, {2, 1, true}};
    for (int i = 0; i < 3; i++) {
        machine *m = machine_uniform(1, 2);
        trama_program *p = trama_program_create();
        trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(8, 4, 32));
        trama_value *all = trama_tanh(x), *part = trama_slice(all, 0, 1, ways[i].rows), *z = trama_softmax(part, -1);
        for (int k = 0; k < 70; k++)
            z = trama_softmax(z, -1);
        z = trama_add(z, trama_softmax(part, -1));
        trama_target *t =
            trama_target_at(NOWHERE, p, "t", 1 + ways[i].again, (trama_value *[]){z, trama_softmax(all, -1)});
        pair both = pair_new(p, m, &(simulation_options){.plan = {.max_tiles = 1, 1, 1}}, "a small part");
        dense data = dense_random(x->shape, 7, -1, 1, false);
        pair_feed(&both, x, &data);
        pair_run(&both, t, 1e-12);
        ck_assert_int_eq(simulation_plan(both.many, 0)->aliases.n, ways[i].aliases);
        dense_free(&data);
        pair_free(&both);
        trama_program_destroy(&p);
        machine_destroy(&m);
    }
}
END_TEST

/* Processes exchange the halves of a transposed operand as messages, which have buffers; meshes with several axes. */
START_TEST(results_are_those_of_one_device)
{
    static const char *const ways[][2] = {{"2", "S(0)"}, {"2", "S(1)"}, {"2,2", "S(0),S(2)"}, {"3", "S(2)"}};
    for (int i = 0; i < 4 * CASES; i++) {
        const rearranged *c = &cases[i / 4];
        trama_program *p = trama_program_create();
        trama_mesh *mesh = trama_mesh_create(ways[i % 4][0]);
        trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(8, 4, 32));
        trama_shard(x, mesh, ways[i % 4][1]);
        trama_value *w = trama_parameter(p, "w", TRAMA_F64, TRAMA_SHAPE(8, 4, 32), &(trama_init){-1, 1, 1, 1});
        trama_value *loss = trama_mean(trama_softmax(c->of(trama_tanh(trama_mul(x, w))), -1));
        trama_target *t =
            trama_target_at(NOWHERE, p, "t", 2, (trama_value *[]){loss, trama_gradient(trama_mul(loss, loss), w)});
        ck_assert_msg(t != NULL, "%s", trama_program_error(p));
        dense data = dense_random(x->shape, 5, -1, 1, false);
        pair_try(p, t, 1, &x, &data, 4, 1e-12, c->name);
        dense_free(&data);
        trama_program_destroy(&p);
        trama_mesh_destroy(&mesh);
    }
}
END_TEST

START_TEST(damage_is_found)
{
    job j = job_of(&cases[CASES - 1], 2, false);
    plan *p = (plan *)plan_of(&j); /* of the simulation, which runs it no more */
    ck_assert_int_eq(p->aliases.n, 4);
    for (int i = 0; i < p->shards.n; i++) {
        plan_shard *s = &p->shards.at[i];
        if (s->source != SHARD_ALIAS)
            continue;
        plan_alias *a = &p->aliases.at[s->import], before = *a;
        a->at += s->value == p->shards.at[p->shards.n - 1].value ? 0 : 16; /* of the other tile */
        a->at += before.at == a->at ? 8 * 4 * 32 : 0;
        ck_assert_int_eq(plan_wrong_alias(p), i);
        *a = before;
        a->stride[s->cut_dim] = 33;
        ck_assert_int_eq(plan_wrong_alias(p), i);
        *a = before;
        s->cut_parts = 1;
        ck_assert_int_eq(plan_wrong_alias(p), i);
        s->cut_parts = 2;
    }
    ck_assert_int_eq(plan_wrong_alias(p), -1);
    const plan_step first = p->steps.at[0]; /* it makes half of x */
    p->steps.at[0] = p->steps.at[p->steps.n - 1];
    p->steps.at[p->steps.n - 1] = first;
    ck_assert_int_ge(plan_wrong_alias(p), 0);
    job_end(&j);
}
END_TEST

/* Dims of several factors are cut by the first one: groups of channels, of which these have none. */
START_TEST(merged_dims_may_be_empty)
{
    trama_program *p = trama_program_create();
    trama_value *x = trama_parameter(p, "x", TRAMA_F64, TRAMA_SHAPE(3, 4, 9), &(trama_init){-1, 1, 1, 1});
    trama_value *w = trama_parameter(p, "w", TRAMA_F64, TRAMA_SHAPE(0, 2, 3), &(trama_init){-1, 1, 1, 2});
    trama_value *y = trama_conv(x, w, NULL, &(trama_windows){.groups = 2});
    trama_value *flat = trama_reshape(trama_tanh(trama_transpose(y, NULL)), TRAMA_SHAPE(7, 0));
    trama_target *t =
        trama_target_at(NOWHERE, p, "t", 2, (trama_value *[]){flat, trama_gradient(trama_sum(trama_mul(y, y)), w)});
    ck_assert_msg(t != NULL, "%s", trama_program_error(p));
    pair_try(p, t, 0, NULL, NULL, 2, 1e-12, "no channels");
    trama_program_destroy(&p);
}
END_TEST

/* The gradients of three parts that lie beside each other are joined, in any order of the parts. */
START_TEST(gradients_of_parts_are_joined)
{
    static const int orders[][3] = {{0, 1, 2}, {2, 1, 0}, {0, 2, 1}, {1, 0, 2}};
    for (int i = 0; i < 4; i++) {
        trama_program *p = trama_program_create();
        trama_value *x = trama_parameter(p, "x", TRAMA_F64, TRAMA_SHAPE(5, 7), &(trama_init){-1, 1, 1, 1}), *sum = NULL;
        trama_value *z = trama_tanh(x);
        static const int64_t from[] = {0, 2, 3}, n[] = {2, 1, 4};
        for (int k = 0; k < 3; k++) {
            const int part = orders[i][k];
            trama_value *y = trama_scale(trama_slice(z, 1, from[part], n[part]), part + 2);
            y = trama_mean(trama_mul(y, y));
            sum = sum ? trama_add(sum, y) : y;
        }
        trama_value *d = trama_gradient(sum, x);
        trama_target *t = trama_target_create(p, "t", d);
        int joins = 0, windows = 0;
        bool *needed = trama_alloc((size_t)p->nodes.n);
        program_closure(p, 1, (trama_value *[]){d}, needed);
        for (int k = 0; k < p->nodes.n; k++) {
            joins += needed[k] && !strncmp(p->nodes.at[k]->op->name, "concat", 6);
            windows += needed[k] && !strcmp(p->nodes.at[k]->op->name, "window");
        }
        free(needed);
        ck_assert_int_eq(joins, i == 3 ? 0 : 1); /* the last two of the last order have a gap */
        ck_assert_int_eq(windows, i == 3 ? 6 : 3);
        pair_try(p, t, 0, NULL, NULL, 3, 1e-12, "parts");
        trama_program_destroy(&p);
    }
}
END_TEST

int main(void)
{
    const TTest *tests[] = {operands_are_read_where_they_lie,
                            a_value_that_is_kept_has_a_buffer,
                            a_small_part_does_not_hold_a_large_buffer_up,
                            results_are_those_of_one_device,
                            damage_is_found,
                            merged_dims_may_be_empty,
                            gradients_of_parts_are_joined};
    return suite_run("aliases", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
