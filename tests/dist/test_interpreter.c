/* SPDX-License-Identifier: Apache-2.0 */
/* The test machinery itself: published answers for the reference, and mistakes planted in plans that must be noticed.
 */
#include <check.h>
#include <string.h>

#include "damage.h"
#include "pair.h"
#include "partition.h"
#include "reference.h"
#include "suite.h"
#include "trama_ops.h"

/* ---- The reference ---- */

/* kat_vectors of the Random123 distribution, philox4x32 with 10 rounds. */
START_TEST(philox_gives_its_published_answers)
{
    static const struct {
        uint32_t counter[4], key[2], answer[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (int i = 0; i < 3; i++) {
        uint32_t words[4];
        reference_philox(known[i].counter, known[i].key, words);
        ck_assert_mem_eq(words, known[i].answer, sizeof words);
    }
    ck_assert_double_eq(reference_uniform(0, 0, 0, 1), (double)(0xe169c58d >> 8) / (1 << 24));
}
END_TEST

/* They were other values on 8, 4 and 1 devices, and split along another dim. */
START_TEST(pytorch_168058_jax_40232_random_values_do_not_depend_on_the_mesh)
{
    static const char *const cases[][2] = {{"1", "R"},           {"4", "S(0)"},         {"4", "S(1)"},
                                           {"8", "S(0)"},        {"8", "S(1)"},         {"2,3", "R,R"},
                                           {"2,3", "S(0),S(1)"}, {"2,3", "S(1),S(0)"},  {"2,3", "S(0)[1],S(0)[0]"},
                                           {"2,3", "P,S(0)"},    {"[3,1],2", "S(0),R"}, {"3:7,1,4", "S(1)"}};
    for (int i = 0; i < 12; i++) {
        trama_program *p = trama_program_create();
        trama_mesh *mesh = trama_mesh_create(cases[i][0]);
        machine *m = machine_uniform(1 + i % 8, 2);
        machine_vary(m, i % MACHINE_VARIANTS);
        trama_value *x = trama_uniform_fixed(p, TRAMA_F64, TRAMA_SHAPE(7, 5), -1, 1, 99, 2, 3);
        trama_value *y = trama_neg(trama_shard(x, mesh, cases[i][1]));
        simulation *s = simulation_new(p, m, NULL);
        simulation_run(s, trama_target_create(p, "t", y));
        dense got = simulation_value(s, y);
        for (int k = 0; k < 35; k++)
            ck_assert_double_eq(got.at[k], -(2 * reference_uniform(99, 2, 3, (uint64_t)k) - 1));
        dense_free(&got);
        simulation_destroy(&s);
        machine_destroy(&m);
        trama_mesh_destroy(&mesh);
        trama_program_destroy(&p);
    }
}
END_TEST

/* dist/README.md: A = [[1,2],[3,4]] R, B = [[5,6],[7,8]] S(0): the partials sum to [[19,22],[43,50]]; relu forces P ->
 * R.
 */
START_TEST(the_published_example_of_partials)
{
    trama_program *p = trama_program_create();
    trama_mesh *mesh = trama_mesh_create("2");
    machine *m = machine_uniform(2, 1);
    trama_value *a = trama_constant(p, TRAMA_F64, TRAMA_SHAPE(2, 2), ((double[]){1, 2, 3, 4}));
    trama_value *b = trama_constant(p, TRAMA_F64, TRAMA_SHAPE(2, 2), ((double[]){5, 6, 7, 8}));
    trama_shard(a, mesh, "R");
    trama_shard(b, mesh, "S(0)");
    trama_value *c = trama_matmul(a, b), *d = trama_relu(c);
    simulation_options o = {.keep_all = true};
    simulation *s = simulation_new(p, m, &o);
    simulation_run(s, trama_target_create(p, "t", c, d));
    dense expected = {TRAMA_SHAPE(2, 2), (double[]){19, 22, 43, 50}}, got_c = simulation_value(s, c),
          got_d = simulation_value(s, d);
    ck_assert(dense_difference(&got_c, &expected) == 0 && dense_difference(&got_d, &expected) == 0);
    ck_assert_int_eq(simulation_layouts(s)->value[c->id].axis[0].kind, TRAMA_PARTIAL);
    ck_assert_int_eq(simulation_layouts(s)->value[d->id].axis[0].kind, TRAMA_REPLICATE);
    dense_free(&got_c);
    dense_free(&got_d);
    simulation_destroy(&s);
    machine_destroy(&m);
    trama_mesh_destroy(&mesh);
    trama_program_destroy(&p);
}
END_TEST

/* ---- Planted mistakes: x as S(0) on two ranks, all-gathered for a softmax along dim 0 ---- */

static trama_program *p;
static trama_mesh *mesh, *alone;
static trama_value *x, *y;
static layouts l;
static machine *table;
static process_map *map;
static trama_shape shapes[2];
static node_rules rules;
static plan *plans[2];
static memory *memories[2];

static void set_up(void)
{
    p = trama_program_create();
    mesh = trama_mesh_create("2");
    alone = trama_mesh_create("1");
    x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(6, 2));
    y = trama_softmax(x, 0);
    trama_shard(x, mesh, "S(0)");
    trama_shard(y, mesh, "R");
    ck_assert(!complete_program(p, 1, alone, &l));
    table = machine_uniform(2, 2);
    map = map_by_order(2, NULL, table);
    shapes[0] = x->shape;
    rules = node_rules_new(p->nodes.n);
    ck_assert(!program_resolve(p, NULL, shapes, &rules));
    for (int r = 0; r < 2; r++) {
        plan_source source = {p, &l, shapes, rules.of, map, table, {.max_tiles = 2, .grain_flops = 1, .grain_bytes = 1},
                              r};
        partition *q = partition_begin(&source);
        partition_input(q, x->id);
        partition_run(q, (bool[]){true}, (int[]){0}, (bool[]){true, true});
        plans[r] = partition_end(&q);
        memories[r] = memory_new(plans[r], NULL);
    }
}

static void tear_down(void)
{
    for (int r = 0; r < 2; r++) {
        memory_destroy(&memories[r]);
        plan_destroy(&plans[r]);
    }
    node_rules_free(&rules);
    layouts_free(&l);
    map_destroy(&map);
    machine_destroy(&table);
    trama_mesh_destroy(&mesh);
    trama_mesh_destroy(&alone);
    trama_program_destroy(&p);
}

static char *run(void)
{
    world w = {p, table, map, 0};
    dense data = dense_random(x->shape, 1, -1, 1, false), *terms = terms_of_value(mesh, &l.value[x->id], &data);
    scatter(&w, memories, x->id, terms);
    free_terms(mesh, &l.value[x->id], terms);
    dense_free(&data);
    return interpret(&w, memories, shapes, NULL);
}

static void expect(const char *part)
{
    char *wrong = run();
    ck_assert_msg(wrong && strstr(wrong, part), "'%s' answers: %s", part, wrong ? wrong : "nothing is wrong");
    free(wrong);
}

/* The first step of a kind in rank 0's plan. */
static plan_step *step(step_kind kind)
{
    for (int i = 0; i < plans[0]->steps.n; i++)
        if (plans[0]->steps.at[i].kind == kind)
            return &plans[0]->steps.at[i];
    ck_abort_msg("no step of kind %d", (int)kind);
    return NULL;
}

static void drop(plan_step *s)
{
    plan_step *end = plans[0]->steps.at + plans[0]->steps.n--;
    memmove(s, s + 1, (size_t)((char *)end - (char *)(s + 1)));
}

START_TEST(a_sound_plan_has_no_complaint)
{
    char *wrong = run();
    ck_assert_msg(!wrong, "%s", wrong);
}
END_TEST

START_TEST(a_missing_send_is_a_wait_for_ever)
{
    drop(step(STEP_SEND));
    expect("waits for ever");
}
END_TEST

START_TEST(a_missing_receive_is_a_message_that_nobody_takes)
{
    drop(step(STEP_RECEIVE));
    expect("never");
}
END_TEST

START_TEST(another_tag_is_a_wait_for_ever)
{
    step(STEP_SEND)->tag += 7;
    expect("waits for ever");
}
END_TEST

START_TEST(the_same_tag_twice_is_noticed)
{
    const plan_step twice = *step(STEP_SEND);
    *ARRAY_PUSH(&plans[0]->steps) = twice;
    expect("two messages have one tag");
}
END_TEST

START_TEST(a_wait_before_the_send_on_both_sides_is_noticed)
{
    for (int r = 0; r < 2; r++)
        damage_sends_wait(plans[r]);
    expect("waits for ever");
}
END_TEST

START_TEST(a_message_of_another_box_is_noticed)
{
    plan_operand *o = &plans[0]->operands.at[step(STEP_SEND)->operand];
    plan_shard *shard = &plans[0]->shards.at[o->region.shard];
    shard->cut_dim = 0;
    shard->cut_parts = (int)shard->box.n[0];
    o->region.box = plan_tile(shard, 0);
    expect("another box than the one sent");
}
END_TEST

START_TEST(wrong_accounts_are_noticed)
{
    plans[0]->exchanges.at[0].sent += 8;
    expect("accounts for");
}
END_TEST

START_TEST(reading_what_nobody_wrote_is_noticed)
{
    for (int i = 0; i < plans[0]->shards.n; i++)
        if (plans[0]->shards.at[i].source == SHARD_INPUT)
            plans[0]->shards.at[i].source = SHARD_OWN;
    world w = {p, table, map, 0};
    char *wrong = interpret(&w, memories, shapes, NULL);
    ck_assert_msg(wrong && strstr(wrong, "never written"), "%s", wrong);
    free(wrong);
}
END_TEST

START_TEST(undeclared_writes_are_noticed)
{
    plan_step *s = step(STEP_COMPUTE);
    plans[0]->operands.at[s->operand + plans[0]->calls.at[s->call].out[0]].access = ACCESS_READ;
    expect("");
}
END_TEST

START_TEST(undeclared_reads_are_noticed)
{
    plan_step *s = step(STEP_COMPUTE);
    plans[0]->operands.at[s->operand + plans[0]->calls.at[s->call].in[0]].access = ACCESS_WRITE;
    expect("");
}
END_TEST

START_TEST(replicas_that_differ_in_the_last_bit_are_noticed)
{
    world w = {p, table, map, 0};
    const plan_dist_value *h[] = {plan_find(plans[0], y->id), plan_find(plans[1], y->id)};
    dense result;
    char *wrong = run();
    ck_assert_ptr_null(wrong);
    memories[1]->data[h[1]->pieces.at[0].region.shard][3] *= 1 + 0x1p-52;
    wrong = gather(&w, memories, h, y->shape, &result);
    ck_assert_msg(wrong && strstr(wrong, "replicas differ"), "%s", wrong);
    free(wrong);
}
END_TEST

START_TEST(a_box_on_the_wrong_place_is_noticed)
{
    world w = {p, table, map, 0};
    const plan_dist_value *h[] = {plan_find(plans[0], x->id), plan_find(plans[1], x->id)};
    dense result;
    char *wrong = run();
    ck_assert_ptr_null(wrong);
    h[0]->pieces.at[0].region.box.n[0]--;
    wrong = gather(&w, memories, h, x->shape, &result);
    ck_assert_msg(wrong && strstr(wrong, "lacks its piece"), "%s", wrong);
    free(wrong);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        philox_gives_its_published_answers,
        pytorch_168058_jax_40232_random_values_do_not_depend_on_the_mesh,
        the_published_example_of_partials,
        a_sound_plan_has_no_complaint,
        a_missing_send_is_a_wait_for_ever,
        a_missing_receive_is_a_message_that_nobody_takes,
        another_tag_is_a_wait_for_ever,
        the_same_tag_twice_is_noticed,
        a_wait_before_the_send_on_both_sides_is_noticed,
        a_message_of_another_box_is_noticed,
        wrong_accounts_are_noticed,
        reading_what_nobody_wrote_is_noticed,
        undeclared_writes_are_noticed,
        undeclared_reads_are_noticed,
        replicas_that_differ_in_the_last_bit_are_noticed,
        a_box_on_the_wrong_place_is_noticed,
    };
    return suite_run("interpreter", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
