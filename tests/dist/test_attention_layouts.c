/* SPDX-License-Identifier: Apache-2.0 */
/* Attention in layouts: values and gradients on ranks as on one device, messages, tiles, and wrong calls. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "pair.h"
#include "suite.h"
#include "trama_attention.h"
#include "trama_ops.h"

/* Shapes [batch, heads, n, d], [batch, groups, m, d], [batch, groups, m, e]. */
typedef struct setup {
    trama_program *p;
    trama_value *in[3], *out, *d[3];
    trama_target *t;
} setup;

static setup setup_new(int64_t heads, int64_t groups, int64_t n, int64_t m, bool causal)
{
    setup s = {.p = trama_program_create()};
    s.in[0] = trama_input(s.p, "q", TRAMA_F64, TRAMA_SHAPE(2, heads, n, 3));
    s.in[1] = trama_input(s.p, "k", TRAMA_F64, TRAMA_SHAPE(2, groups, m, 3));
    s.in[2] = trama_input(s.p, "v", TRAMA_F64, TRAMA_SHAPE(2, groups, m, 5));
    s.out = trama_attention_with(s.in[0], s.in[1], s.in[2], NULL, causal, 0);
    trama_value *loss = trama_sum(trama_square(s.out));
    for (int i = 0; i < 3; i++)
        s.d[i] = trama_gradient(loss, s.in[i]);
    s.t = trama_target_create(s.p, "t", s.out, s.d[0], s.d[1], s.d[2]);
    ck_assert_msg(s.t != NULL, "%s", trama_program_error(s.p));
    return s;
}

static void try_layouts(setup *s, const char *mesh_text, const char *q, const char *k, const char *v, const char *name)
{
    trama_mesh *mesh = trama_mesh_create(mesh_text);
    const char *const texts[3] = {q, k, v};
    dense data[3];
    for (int i = 0; i < 3; i++) {
        if (texts[i])
            ck_assert_msg(trama_shard(s->in[i], mesh, texts[i]) != NULL, "%s", trama_program_error(s->p));
        data[i] = dense_random(s->in[i]->shape, (uint64_t)i + 1, -1, 1, false);
    }
    pair_try(s->p, s->t, 3, s->in, data, 4, 1e-12, name);
    for (int i = 0; i < 3; i++)
        dense_free(&data[i]);
    trama_program_destroy(&s->p);
    trama_mesh_destroy(&mesh);
}

START_TEST(any_split_gives_the_values_of_one_device)
{
    static const struct {
        const char *mesh, *q, *k, *v;
    } tried[] = {
        {"2", "S(0)", NULL, NULL},
        {"2", "S(1)", NULL, NULL},
        {"3", "S(1)", "S(1)", "S(1)"},
        {"2", "S(2)", NULL, NULL},
        {"4", "S(2)", "S(2)", "S(2)"},
        {"3", "S(2)", "S(2)", "S(2)"},
        {"2,2", "S(2),S(0)", "S(2),S(0)", "S(2),S(0)"},
        {"2,2", "S(0),S(1)", NULL, NULL},
        {"2", NULL, "S(2)", NULL},
        {"2,2", "S(1),S(2)", NULL, NULL},
        {"3", "S(3)", "S(3)", "S(3)"},
        {"2", NULL, NULL, "P(sum)"},
        {"2,2", "S(2),S(1)", "R,S(1)", "R,S(2)"},
    };
    static const int64_t heads[][4] = {{4, 4, 7, 6}, {4, 2, 5, 9}, {3, 1, 2, 3}};
    for (int h = 0; h < 3; h++)
        for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
            setup s = setup_new(heads[h][0], heads[h][1], heads[h][2], heads[h][3], h % 2 == 0);
            try_layouts(&s, tried[i].mesh, tried[i].q, tried[i].k, tried[i].v, "attention");
        }
}
END_TEST

/* One query and three processes: two of them have no query, and still a term of the gradients of keys and values. */
START_TEST(a_process_without_a_query_gives_a_term_of_zeros)
{
    setup s = setup_new(2, 2, 1, 4, false);
    try_layouts(&s, "3", "S(2)", "R", "R", "one query");
}
END_TEST

/* ---- Second derivatives ---- */

/* The sum of the squares of all first gradients, of whose gradient by q, k and v one element in three is compared with
 * central differences. */
static double squares_at(single *one, const trama_target *t, const trama_value *loss, const trama_value *x, dense *data)
{
    single_feed(one, x, data);
    single_run(one, t);
    return single_value(one, loss)->at[0];
}

static void try_second(int64_t heads, int64_t groups, bool causal, bool masked)
{
    trama_program *p = trama_program_create();
    trama_value *in[4] = {trama_input(p, "q", TRAMA_F64, TRAMA_SHAPE(2, heads, 5, 3)),
                          trama_input(p, "k", TRAMA_F64, TRAMA_SHAPE(2, groups, 4, 3)),
                          trama_input(p, "v", TRAMA_F64, TRAMA_SHAPE(2, groups, 4, 2)),
                          trama_input(p, "mask", TRAMA_F64, TRAMA_SHAPE(heads, 1, 4))};
    trama_value *out = trama_attention_with(in[0], in[1], in[2], masked ? in[3] : NULL, causal, 0), *d[4], *sum = NULL;
    const int n = masked ? 4 : 3;
    trama_value *first = trama_sum(trama_mul(trama_square(out), out));
    for (int i = 0; i < n; i++) {
        trama_value *squares = trama_sum(trama_square(trama_gradient(first, in[i])));
        sum = sum ? trama_add(sum, squares) : squares;
    }
    for (int i = 0; i < n; i++)
        d[i] = trama_gradient(sum, in[i]);
    trama_target *t = masked ? trama_target_create(p, "t", sum, d[0], d[1], d[2], d[3])
                             : trama_target_create(p, "t", sum, d[0], d[1], d[2]);
    ck_assert_msg(t != NULL, "%s", trama_program_error(p));
    single *one = single_new(p);
    dense data[4];
    for (int i = 0; i < n; i++) {
        data[i] = dense_random(in[i]->shape, (uint64_t)i + 1, -1, 1, false);
        single_feed(one, in[i], &data[i]);
    }
    single_run(one, t);
    for (int i = 0; i < n; i++) {
        dense derived = dense_copy(single_value(one, d[i]));
        for (int64_t k = 0; k < trama_shape_count(derived.shape); k += 3) {
            const double h = 1e-5, x = data[i].at[k];
            data[i].at[k] = x + h;
            const double above = squares_at(one, t, sum, in[i], &data[i]);
            data[i].at[k] = x - h;
            const double slope = (above - squares_at(one, t, sum, in[i], &data[i])) / (2 * h);
            data[i].at[k] = x;
            squares_at(one, t, sum, in[i], &data[i]);
            ck_assert_msg(fabs(slope - derived.at[k]) < 1e-6 * fmax(1, fabs(slope)), "operand %d, %lld: %g, not %g", i,
                          (long long)k, derived.at[k], slope);
        }
        dense_free(&derived);
    }
    for (int i = 0; i < n; i++)
        dense_free(&data[i]);
    single_destroy(&one);
    trama_program_destroy(&p);
}

START_TEST(gradients_of_gradients_are_their_slopes)
{
    try_second(2, 2, true, false);
    try_second(4, 2, false, false);
    try_second(2, 1, true, true);
    try_second(4, 2, true, true);
}
END_TEST

/* ---- Messages and tiles ---- */

/* Runs the target once on random operands. */
static simulation *simulate(const setup *s, const machine *m, const simulation_options *o)
{
    simulation *sim = simulation_new(s->p, m, o);
    for (int i = 0; i < 3; i++) {
        dense data = dense_random(s->in[i]->shape, 1, -1, 1, false);
        simulation_feed(sim, s->in[i], &data);
        dense_free(&data);
    }
    simulation_run(sim, s->t);
    return sim;
}

/* Messages of one run, forward and backward. */
static int messages(setup *s, const char *mesh_text, const char *layout)
{
    trama_mesh *mesh = trama_mesh_create(mesh_text);
    machine *m = machine_uniform(trama_mesh_size(mesh), 1);
    ck_assert_ptr_nonnull(trama_shard(s->in[0], mesh, layout));
    simulation_options o = {.plan = {.max_tiles = 1, .grain_flops = 1, .grain_bytes = 1}};
    simulation *sim = simulate(s, m, &o);
    const int n = simulation_traffic(sim).messages;
    simulation_destroy(&sim);
    machine_destroy(&m);
    trama_mesh_destroy(&mesh);
    trama_program_destroy(&s->p);
    return n;
}

START_TEST(split_heads_and_batches_take_no_message)
{
    setup s = setup_new(4, 4, 7, 6, true), groups = setup_new(4, 2, 7, 6, true), batch = setup_new(4, 4, 7, 6, false);
    ck_assert_int_eq(messages(&s, "mp=4", "S(1)"), 0);
    ck_assert_int_eq(messages(&groups, "mp=2", "S(1)"), 0);
    ck_assert_int_eq(messages(&batch, "dp=2", "S(0)"), 0);
}
END_TEST

/* Tiles of two workers are cut along heads: the queries of a causal call take unequal work, and are a sum in dk. */
static void expect_tiles(const plan *p, const trama_program *program, const char *op, int dim)
{
    int n = 0;
    for (int i = 0; i < p->steps.n; i++) {
        const plan_step *s = &p->steps.at[i];
        if (s->kind != STEP_COMPUTE || strcmp(program->nodes.at[p->calls.at[s->call].node]->op->name, op))
            continue;
        const plan_operand *result = &p->operands.at[s->operand + p->calls.at[s->call].out[0]];
        ck_assert_int_eq(s->lane, n);
        n++;
        ck_assert_int_eq(result->region.box.n[dim], 2);
        ck_assert_int_eq(result->region.box.n[2], 64);
    }
    ck_assert_int_eq(n, 2);
}

START_TEST(two_workers_take_half_of_the_heads_each)
{
    setup s = setup_new(4, 4, 64, 64, true);
    trama_mesh *mesh = trama_mesh_create("1");
    machine *m = machine_uniform(1, 2);
    ck_assert_ptr_nonnull(trama_shard(s.in[0], mesh, "R"));
    simulation_options o = {.plan = {.grain_flops = 1, .grain_bytes = 1}};
    simulation *sim = simulate(&s, m, &o);
    expect_tiles(simulation_plan(sim, 0), s.p, "attention", 1);
    expect_tiles(simulation_plan(sim, 0), s.p, "attention_grad", 1);
    simulation_destroy(&sim);
    machine_destroy(&m);
    trama_mesh_destroy(&mesh);
    trama_program_destroy(&s.p);
}
END_TEST

/* The n parts of the keys that the steps of an op on one rank read, one tile of keys and one of values each: from the
 * rank's own part downwards, or, of the gradient, ending with it. Steps behind the first go on from their results. */
static void expect_turns(const plan *p, const trama_program *program, const char *op, int n, int updated)
{
    int turn = 0, before = !strcmp(op, "attention_grad");
    for (int i = 0; i < p->steps.n; i++) {
        const plan_step *s = &p->steps.at[i];
        const plan_call *c = s->kind == STEP_COMPUTE ? &p->calls.at[s->call] : NULL;
        if (!c || strcmp(program->nodes.at[c->node]->op->name, op))
            continue;
        const int64_t part = 16 / n, from = (p->rank + n - before - turn + n) % n * part;
        for (int t = 1; t <= 2; t++) {
            const plan_operand *o = plan_step_operand(p, s, c->in[t]);
            int first, last;
            plan_tiles(&p->shards.at[o->region.shard], &o->region.box, &first, &last);
            ck_assert_int_eq(first, last);
            ck_assert_int_eq(o->region.box.lo[2], from);
            ck_assert_int_eq(o->region.box.n[2], part);
        }
        ck_assert(c->goes_on == (turn > 0));
        for (int o = 0; o < program->nodes.at[c->node]->op->n_out; o++)
            ck_assert_int_eq(plan_step_operand(p, s, c->out[o])->access,
                             turn && o < updated ? ACCESS_UPDATE : ACCESS_WRITE);
        turn++;
    }
    ck_assert_int_eq(turn, n);
}

/* One head and two batches cannot be split, so that processes with a part of the queries need all keys and values. */
START_TEST(split_sequences_take_the_keys_in_turn_as_they_arrive)
{
    for (int n = 4; n <= 8; n += 4) {
        setup s = setup_new(1, 1, 16, 16, true);
        trama_mesh *mesh = trama_mesh_create(n == 4 ? "4" : "8");
        machine *m = machine_uniform(n, 1);
        for (int i = 0; i < 3; i++)
            ck_assert_ptr_nonnull(trama_shard(s.in[i], mesh, "S(2)"));
        simulation_options o = {.plan = {.grain_flops = 1, .grain_bytes = 1}};
        simulation *sim = simulate(&s, m, &o);
        for (int rank = 0; rank < n; rank++) {
            expect_turns(simulation_plan(sim, rank), s.p, "attention", n, 2);
            expect_turns(simulation_plan(sim, rank), s.p, "attention_grad", n, 1);
        }
        /* (p - 1) / p of keys and values, and of their gradients' terms, on each process. */
        const int64_t numbers = 2 * 16 * (3 + 5);
        ck_assert_int_eq(simulation_traffic(sim).bytes, (n - 1) * 2 * numbers * 8);
        simulation_destroy(&sim);
        machine_destroy(&m);
        trama_mesh_destroy(&mesh);
        trama_program_destroy(&s.p);
    }
}
END_TEST

START_TEST(gradients_that_are_asked_for_one_by_one_are_computed_once)
{
    setup s = setup_new(2, 2, 3, 3, false);
    int n = 0;
    for (int i = 0; i < s.p->nodes.n; i++)
        n += s.p->nodes.at[i]->op == trama_op_find("attention_grad");
    ck_assert_int_eq(n, 1);
    trama_program_destroy(&s.p);
}
END_TEST

/* ---- Keys that are split ---- */

/* Keys and values split along m; the mask is none, of bools or numbers, with as many dims as are not 0. */
static void try_split_keys(const char *mesh_text, const char *layout, int64_t heads, int64_t groups, int64_t m,
                           trama_shape mask_shape, trama_dtype mask_dtype)
{
    char name[100];
    trama_program *p = trama_program_create();
    trama_mesh *mesh = trama_mesh_create(mesh_text);
    trama_value *in[4] = {trama_input(p, "q", TRAMA_F64, TRAMA_SHAPE(2, heads, 2, 3)),
                          trama_input(p, "k", TRAMA_F64, TRAMA_SHAPE(2, groups, m, 3)),
                          trama_input(p, "v", TRAMA_F64, TRAMA_SHAPE(2, groups, m, 5))};
    const int n = mask_shape.ndim ? 4 : 3;
    trama_value *mask = n == 4 ? in[3] = trama_input(p, "mask", TRAMA_F64, mask_shape) : NULL;
    if (mask && mask_dtype == TRAMA_BOOL)
        mask = trama_less(mask, trama_scale(mask, 0));
    ck_assert_ptr_nonnull(trama_shard(in[1], mesh, layout));
    trama_value *out = trama_attention_with(in[0], in[1], in[2], mask, false, 0), *lse = trama_result(out, 1);
    trama_value *loss = trama_sum(trama_add(trama_square(trama_sum_over(out, TRAMA_DIMS(3), false)), trama_sin(lse)));
    if (mask && mask_dtype == TRAMA_BOOL) /* queries without a key have lse -inf */
        loss = trama_sum(trama_square(out));
    trama_value *d[3];
    for (int i = 0; i < 3; i++)
        d[i] = trama_gradient(loss, in[i]);
    trama_target *t = trama_target_create(p, "t", out, d[0], d[1], d[2]);
    ck_assert_msg(t != NULL, "%s", trama_program_error(p));
    dense data[4];
    for (int i = 0; i < n; i++)
        data[i] = dense_random(in[i]->shape, (uint64_t)i + 1, -1, 1, false);
    snprintf(name, sizeof name, "%s on %s, %lld and %lld heads, %lld keys, mask of %d dims", layout, mesh_text,
             (long long)heads, (long long)groups, (long long)m, mask_shape.ndim);
    pair_try(p, t, n, in, data, 4, 1e-12, name);
    for (int i = 0; i < n; i++)
        dense_free(&data[i]);
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
}

START_TEST(split_keys_give_the_values_of_one_device)
{
    static const struct {
        const char *mesh, *layout;
    } tried[] = {{"2", "S(2)"}, {"3", "S(2)"}, {"2,2", "S(2),S(2)"}, {"2,2", "S(0),S(2)"}, {"[3,1]", "S(2)"}};
    static const int64_t heads[][3] = {{4, 4, 8}, {4, 2, 9}, {3, 1, 7}, {2, 2, 1}, {0, 0, 7}};
    for (int i = 0; i < (int)(sizeof tried / sizeof *tried); i++)
        for (int h = 0; h < 5; h++) {
            const int64_t m = heads[h][2];
            const trama_shape masks[] = {{0},        {1, {m}}, {2, {2, m}}, {3, {heads[h][0], 1, m}}, {4, {2, 1, 2, m}},
                                         {2, {2, 1}}};
            for (int k = 0; k < 6; k++)
                try_split_keys(tried[i].mesh, tried[i].layout, heads[h][0], heads[h][1], m, masks[k],
                               (i + h + k) % 2 ? TRAMA_BOOL : TRAMA_F64);
        }
}
END_TEST

/* A query over 64 keys of 8 numbers: results and sums of two processes, and no key, move. */
START_TEST(split_keys_stay_where_they_are)
{
    trama_program *p = trama_program_create();
    trama_mesh *mesh = trama_mesh_create("2");
    trama_value *q = trama_input(p, "q", TRAMA_F32, TRAMA_SHAPE(2, 1, 8));
    trama_value *k = trama_parameter(p, "k", TRAMA_F32, TRAMA_SHAPE(2, 64, 8), NULL);
    trama_value *v = trama_parameter(p, "v", TRAMA_F32, TRAMA_SHAPE(2, 64, 8), NULL);
    ck_assert_ptr_nonnull(trama_shard(k, mesh, "S(1)"));
    ck_assert_ptr_nonnull(trama_shard(v, mesh, "S(1)"));
    trama_target *t = trama_target_create(p, "t", trama_attention(q, k, v));
    machine *m = machine_uniform(2, 1);
    simulation_options o = {.plan = {.max_tiles = 1, .grain_flops = 1, .grain_bytes = 1}};
    simulation *s = simulation_new(p, m, &o);
    dense data = dense_random(q->shape, 1, -1, 1, false);
    simulation_feed(s, q, &data);
    simulation_run(s, t);
    ck_assert_int_le(plan_count(simulation_plan(s, 0)).received, 4 * (2 * 8 + 4 * 2));
    dense_free(&data);
    simulation_destroy(&s);
    machine_destroy(&m);
    trama_mesh_destroy(&mesh);
    trama_program_destroy(&p);
}
END_TEST

/* ---- Wrong calls ---- */

static void refuse_call(trama_status status, const char *words, trama_shape k, trama_dtype dtype, double scale)
{
    trama_program *p = trama_program_create();
    trama_value *q = trama_input(p, "q", TRAMA_F32, TRAMA_SHAPE(4, 7, 3)), *keys = trama_input(p, "keys", dtype, k);
    trama_value *mask = trama_input(p, "mask", TRAMA_F64, TRAMA_SHAPE(7, 7));
    ck_assert_ptr_null(trama_attention_with(q, keys, keys, scale == 2 ? mask : NULL, false, scale));
    ck_assert_int_eq(trama_program_status(p), status);
    ck_assert_msg(strstr(trama_program_error(p), words) && strstr(trama_program_error(p), "test_attention_layouts.c"),
                  "%s", trama_program_error(p));
    trama_program_destroy(&p);
}

START_TEST(wrong_operands_are_refused_in_words)
{
    refuse_call(TRAMA_E_SHAPE, "no multiple of those of keys", TRAMA_SHAPE(3, 7, 3), TRAMA_F32, 0);
    refuse_call(TRAMA_E_SHAPE, "needs heads, keys and features", TRAMA_SHAPE(7, 3), TRAMA_F32, 0);
    refuse_call(TRAMA_E_SHAPE, "the dims do not agree", TRAMA_SHAPE(4, 7, 2), TRAMA_F32, 0);
    refuse_call(TRAMA_E_DTYPE, "keys is f64", TRAMA_SHAPE(4, 7, 3), TRAMA_F64, 0);
    refuse_call(TRAMA_E_DTYPE, "a mask is bool", TRAMA_SHAPE(4, 7, 3), TRAMA_F32, 2);
    refuse_call(TRAMA_E_ARGUMENT, "must be finite", TRAMA_SHAPE(4, 7, 3), TRAMA_F32, 1.0 / 0.0);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        any_split_gives_the_values_of_one_device,
        a_process_without_a_query_gives_a_term_of_zeros,
        gradients_of_gradients_are_their_slopes,
        split_heads_and_batches_take_no_message,
        two_workers_take_half_of_the_heads_each,
        split_sequences_take_the_keys_in_turn_as_they_arrive,
        split_keys_give_the_values_of_one_device,
        split_keys_stay_where_they_are,
        gradients_that_are_asked_for_one_by_one_are_computed_once,
        wrong_operands_are_refused_in_words,
    };
    return suite_run("attention_layouts", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
