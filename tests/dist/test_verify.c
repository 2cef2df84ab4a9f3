/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier must notice every damage to plans that fit together; and what the public reshard plans say. */
#include <check.h>
#include <string.h>

#include "damage.h"
#include "planner.h"
#include "simulation.h"
#include "suite.h"
#include "trama_reshard_plan.h"
#include "verify_plan.h"

/* P over 3 becomes R: a reduce-scatter and an all-gather. */
typedef struct set {
    trama_program *program;
    trama_mesh *mesh;
    machine *machine;
    process_map *map;
    plan *plans[3];
} set;

static set set_with(int64_t staging_bytes)
{
    set s = {.program = trama_program_create(), .mesh = trama_mesh_create("3"), .machine = machine_uniform(3, 1)};
    trama_shape shape = TRAMA_SHAPE(9, 2);
    trama_layout from, to;
    s.map = map_by_order(3, NULL, s.machine);
    ck_assert(!trama_layout_parse(s.mesh, 2, "P", &from) && !trama_layout_parse(s.mesh, 2, "R", &to));
    trama_input(s.program, "x", TRAMA_F64, shape);
    layouts l = {.n_values = 1, .mesh = (const trama_mesh *[]){s.mesh}, .value = &from};
    for (int r = 0; r < 3; r++) {
        plan_source source = {s.program,
                              &l,
                              &shape,
                              NULL,
                              s.map,
                              s.machine,
                              {.max_tiles = 1, .grain_flops = 1, .grain_bytes = 1, .staging_bytes = staging_bytes},
                              r};
        partition *q = partition_begin(&source);
        partition_input(q, 0);
        partition_reshard(q, 0, s.mesh, &to, -1, false);
        s.plans[r] = partition_end(&q);
    }
    return s;
}

static set set_new(void)
{
    return set_with(0);
}

static void set_free(set *s)
{
    for (int r = 0; r < 3; r++)
        plan_destroy(&s->plans[r]);
    map_destroy(&s->map);
    machine_destroy(&s->machine);
    trama_mesh_destroy(&s->mesh);
    trama_program_destroy(&s->program);
}

static plan_step *step_of(plan *p, step_kind kind, int which)
{
    for (int i = 0; i < p->steps.n; i++)
        if (p->steps.at[i].kind == kind && which-- == 0)
            return &p->steps.at[i];
    ck_abort_msg("no such step");
    return NULL;
}

static void drop_step(plan *p, const plan_step *s)
{
    int at = (int)(s - p->steps.at);
    memmove(&p->steps.at[at], &p->steps.at[at + 1], (size_t)(p->steps.n - at - 1) * sizeof *s);
    p->steps.n--;
}

static void damage(set *s, int which)
{
    plan_step twice;
    plan *p = s->plans[1];
    switch (which) {
    case 0:
        drop_step(p, step_of(p, STEP_SEND, 0));
        break;
    case 1:
        drop_step(p, step_of(p, STEP_RECEIVE, 0));
        break;
    case 2:
        step_of(p, STEP_SEND, 0)->tag = 77;
        break;
    case 3:
        step_of(p, STEP_SEND, 0)->peer = 1;
        break;
    case 4:
        p->operands.at[step_of(p, STEP_SEND, 0)->operand].region.box.n[0]--;
        break;
    case 5:
        p->exchanges.at[0].received += 8;
        break;
    case 6:
        p->exchanges.at[0].sent -= 8;
        break;
    case 7:
        twice = *step_of(p, STEP_SEND, 0);
        *ARRAY_PUSH(&p->steps) = twice;
        break;
    case 8:
        for (int r = 0; r < 3; r++)
            damage_sends_wait(s->plans[r]);
        break;
    }
}

START_TEST(plans_that_fit_pass)
{
    set s = set_new();
    ck_assert_msg(!plan_verify((const plan *const *)s.plans, 3, s.program), "%s", trama_error());
    set_free(&s);
}
END_TEST

START_TEST(every_damage_is_noticed)
{
    static const char *const words[] = {
        "nobody sends it", "nobody receives it", "nobody",      "nobody",
        "another box",     "other bytes",        "other bytes", "another message has its number",
        "circle"};
    for (int i = 0; i < 9; i++) {
        set s = set_new();
        damage(&s, i);
        ck_assert_msg(plan_verify((const plan *const *)s.plans, 3, s.program), "damage %d goes unnoticed", i);
        ck_assert_msg(strstr(trama_error(), words[i]) != NULL, "damage %d: no '%s' in: %s", i, words[i], trama_error());
        set_free(&s);
    }
}
END_TEST

/* Windows of 128 bytes: sums go in rounds. Of 1,024: slices are sent from where they lie. */
START_TEST(memory_that_is_not_handed_over_is_noticed)
{
    static const int64_t windows[] = {128, 1024};
    for (int w = 0; w < 2; w++) {
        int orders = 0, noticed = 0;
        set whole = set_with(windows[w]);
        ck_assert_msg(!plan_verify((const plan *const *)whole.plans, 3, whole.program), "%s", trama_error());
        for (int i = 0; i < whole.plans[1]->steps.n; i++)
            orders += whole.plans[1]->steps.at[i].kind == STEP_ORDER;
        set_free(&whole);
        ck_assert_int_gt(orders, 1);
        for (int i = 0; i < orders; i++) {
            set s = set_with(windows[w]);
            drop_step(s.plans[1], step_of(s.plans[1], STEP_ORDER, i));
            noticed += plan_verify((const plan *const *)s.plans, 3, s.program) && strstr(trama_error(), "memory");
            set_free(&s);
        }
        ck_assert_int_eq(noticed, orders);
    }
}
END_TEST

/* Buffers in a window are aligned to 64 bytes: messages that are cut to less save nothing. */
START_TEST(a_small_window_does_not_cut_messages_below_what_a_buffer_takes)
{
    set small = set_with(1), large = set_new();
    for (int r = 0; r < 3; r++)
        ck_assert_int_eq(plan_count(small.plans[r]).messages, plan_count(large.plans[r]).messages);
    set_free(&small);
    set_free(&large);
}
END_TEST

START_TEST(more_buffers_than_the_plan_says_are_noticed)
{
    set s = set_new();
    s.plans[2]->exchanges.at[0].buffers -= 8;
    ck_assert(plan_verify((const plan *const *)s.plans, 3, s.program));
    ck_assert_ptr_nonnull(strstr(trama_error(), "message buffers"));
    set_free(&s);
}
END_TEST

/* ---- Public plans ---- */

static trama_reshard_cost cost(const char *mesh, const char *from, const char *to_mesh, const char *to,
                                     trama_shape shape)
{
    trama_mesh *a = trama_mesh_create(mesh), *b = trama_mesh_create(to_mesh);
    trama_layout source, target;
    trama_reshard_plan *p = NULL;
    ck_assert(!trama_layout_parse(a, shape.ndim, from, &source) && !trama_layout_parse(b, shape.ndim, to, &target));
    ck_assert_msg(!trama_reshard_plan_create(a, &source, b, &target, TRAMA_F32, shape, &p), "%s", trama_error());
    trama_reshard_cost c = trama_reshard_plan_cost(p);
    const trama_move *moves;
    int64_t total = 0;
    for (int64_t i = 0; i < trama_reshard_plan_moves(p, &moves); i++)
        total += moves[i].bytes;
    ck_assert_int_eq(total, c.total);
    trama_reshard_plan_destroy(&p);
    trama_mesh_destroy(&a);
    trama_mesh_destroy(&b);
    return c;
}

/* dist/README.md, "Bytes of a change of layout": 0.0137 and 0.0154 of 4 MiB; senders do no more than their part, but
 * for rounding. */
/* Columns of a whole value lie in it in rows with gaps, which are packed. */
START_TEST(messages_from_inside_a_larger_shard_keep_to_the_window)
{
    const int64_t window = 1 << 20;
    trama_program *p = trama_program_create();
    trama_mesh *a = trama_mesh_create("2:0,1"), *b = trama_mesh_create("2:2,3");
    trama_shape shape = TRAMA_SHAPE(1 << 19, 2);
    trama_layout whole, columns;
    machine *m = machine_uniform(4, 1);
    process_map *map = map_by_order(4, NULL, m);
    ck_assert(!trama_layout_parse(a, 2, "R", &whole) && !trama_layout_parse(a, 2, "S(1)", &columns));
    trama_input(p, "x", TRAMA_F32, shape);
    layouts l = {.n_values = 1, .mesh = (const trama_mesh *[]){a}, .value = &whole};
    plan *plans[4];
    for (int r = 0; r < 4; r++) {
        plan_source source = {
            p, &l, &shape, NULL, map, m, {.max_tiles = 1, .grain_flops = 1, .grain_bytes = 1, .staging_bytes = window}, r};
        partition *q = partition_begin(&source);
        partition_input(q, 0);
        partition_reshard(q, 0, a, &columns, -1, false);
        reshard_dist_value(q, 1, b, &columns, -1, false);
        plans[r] = partition_end(&q);
    }
    ck_assert_msg(!plan_verify((const plan *const *)plans, 4, p), "%s", trama_error());
    for (int r = 0; r < 4; r++) {
        ck_assert_int_le(plan_message_buffers(plans[r]), window);
        plan_destroy(&plans[r]);
    }
    map_destroy(&map);
    machine_destroy(&m);
    trama_mesh_destroy(&a);
    trama_mesh_destroy(&b);
    trama_program_destroy(&p);
}
END_TEST

/* Three places of one rank exchange rows for columns. Planned for the GPUs of one variant, verified as those of
 * another.
 */
static trama_status verified_as(int planned, int really)
{
    machine *m = simulation_machine(1, 3, 2), *other = simulation_machine(1, 3, 2);
    trama_mesh *mesh = trama_mesh_create("3");
    trama_program *program = trama_program_create();
    trama_shape shape = TRAMA_SHAPE(9, 5);
    trama_layout rows, columns;
    process_map *map = map_by_order(3, NULL, m);
    ck_assert(!trama_layout_parse(mesh, 2, "S(0)", &rows) && !trama_layout_parse(mesh, 2, "S(1)", &columns));
    trama_input(program, "x", TRAMA_F64, shape);
    machine_vary(m, planned);
    machine_vary(other, really);
    layouts l = {.n_values = 1, .mesh = (const trama_mesh *[]){mesh}, .value = &rows};
    plan_source source = {program, &l, &shape, NULL, map, m, {.max_tiles = 1, .grain_flops = 1, .grain_bytes = 1}, 0};
    partition *q = partition_begin(&source);
    partition_input(q, 0);
    partition_reshard(q, 0, mesh, &columns, -1, false);
    plan *p = partition_end(&q);
    for (int i = 0; i < 3; i++)
        p->gpus.at[i] = other->places[i].gpu;
    trama_status status = plan_verify((const plan *const[]){p}, 1, program);
    plan_destroy(&p);
    trama_program_destroy(&program);
    trama_mesh_destroy(&mesh);
    map_destroy(&map);
    machine_destroy(&other);
    machine_destroy(&m);
    return status;
}

START_TEST(parts_of_what_lies_on_a_gpu_of_the_rank_are_not_read_elsewhere)
{
    for (int planned = 0; planned < MACHINE_VARIANTS; planned++) {
        ck_assert_msg(!verified_as(planned, planned), "%s", trama_error());
        ck_assert_int_eq(verified_as(planned, 0), TRAMA_OK);
    }
    ck_assert_int_eq(verified_as(0, 1), TRAMA_E_SYSTEM);
    ck_assert_ptr_nonnull(strstr(trama_error(), "GPU"));
    ck_assert_int_eq(verified_as(0, 2), TRAMA_E_SYSTEM);
}
END_TEST

START_TEST(messages_in_a_shard_of_a_gpu_are_noticed)
{
    set s = set_new();
    for (int i = 0; i < 3; i++)
        s.plans[0]->gpus.at[i] = true;
    ck_assert_int_eq(plan_verify((const plan *const *)s.plans, 3, s.program), TRAMA_E_SYSTEM);
    ck_assert_ptr_nonnull(strstr(trama_error(), "GPU"));
    set_free(&s);
}
END_TEST

START_TEST(all_holders_send_alike)
{
    trama_reshard_cost c = cost("8,8", "R,S(0)", "8,8", "S(1),S(1)", TRAMA_SHAPE(1024, 1024));
    ck_assert_int_eq(c.received, 57344);
    ck_assert_int_eq(c.bound, 57344);
    ck_assert_int_le(c.sent, 65536);
    c = cost("8,8", "R,R", "4:64,65,66,67", "S(0)", TRAMA_SHAPE(64, 8));
    ck_assert_int_eq(c.total, 64 * 8 * 4);
    ck_assert_int_le(c.sent, 64 * 8 * 4 / 4);
}
END_TEST

/* Each needs the boxes of the 63 others, who all have the same to do: no slices, one message each way. */
START_TEST(an_all_gather_takes_one_message_a_pair)
{
    trama_reshard_cost c = cost("8,8", "S(0),S(0)", "8,8", "R,R", TRAMA_SHAPE(1024, 1024));
    ck_assert_int_eq(c.messages, 2 * 63);
    ck_assert_int_eq(c.sent, c.received);
    c = cost("8,8", "R,S(1)", "8,8", "R,R", TRAMA_SHAPE(1024, 1024));
    ck_assert_int_eq(c.messages, 2 * 7);
    ck_assert_int_eq(c.sent, c.received);
}
END_TEST

START_TEST(processes_may_have_any_ids)
{
    trama_reshard_cost c = cost("2:1000000,3", "S(0)", "3:7,3,5", "R", TRAMA_SHAPE(4, 3));
    ck_assert_int_eq(c.processes, 4);
    ck_assert_int_eq(c.received, 48);
    ck_assert_int_eq(c.total, 48 + 48 + 24);
    c = cost("2", "R", "2", "R", TRAMA_SCALAR);
    ck_assert_int_eq(c.total + c.bound + c.received + c.messages, 0);
}
END_TEST

START_TEST(what_does_not_fit_is_refused)
{
    trama_mesh *mesh = trama_mesh_create("2");
    trama_layout split, open, whole;
    trama_reshard_plan *p = NULL;
    ck_assert(!trama_layout_parse(mesh, 2, "S(1)", &split) && !trama_layout_parse(mesh, 2, "?", &open));
    ck_assert(!trama_layout_parse(mesh, 2, "R", &whole));
    ck_assert_int_eq(trama_reshard_plan_create(mesh, &split, mesh, &whole, TRAMA_F32, TRAMA_SHAPE(4), &p), TRAMA_E_LAYOUT);
    ck_assert_ptr_nonnull(strstr(trama_error(), "source"));
    ck_assert_int_eq(trama_reshard_plan_create(mesh, &whole, mesh, &open, TRAMA_F32, TRAMA_SHAPE(4, 4), &p),
                     TRAMA_E_LAYOUT);
    ck_assert_ptr_nonnull(strstr(trama_error(), "open"));
    ck_assert_int_eq(trama_reshard_plan_create(mesh, &whole, mesh, &split, TRAMA_F32, TRAMA_SHAPE(TRAMA_ANY, 4), &p),
                     TRAMA_E_SHAPE);
    ck_assert_int_eq(trama_reshard_plan_create(mesh, &whole, mesh, &split, (trama_dtype)99, TRAMA_SHAPE(4, 4), &p),
                     TRAMA_E_DTYPE);
    ck_assert_int_eq(trama_reshard_plan_create(NULL, &whole, mesh, &split, TRAMA_F32, TRAMA_SHAPE(4, 4), &p),
                     TRAMA_E_ARGUMENT);
    ck_assert_ptr_null(p);
    trama_mesh_destroy(&mesh);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        plans_that_fit_pass,
        every_damage_is_noticed,
        memory_that_is_not_handed_over_is_noticed,
        a_small_window_does_not_cut_messages_below_what_a_buffer_takes,
        more_buffers_than_the_plan_says_are_noticed,
        messages_from_inside_a_larger_shard_keep_to_the_window,
        parts_of_what_lies_on_a_gpu_of_the_rank_are_not_read_elsewhere,
        messages_in_a_shard_of_a_gpu_are_noticed,
        all_holders_send_alike,
        an_all_gather_takes_one_message_a_pair,
        processes_may_have_any_ids,
        what_does_not_fit_is_refused,
    };
    return suite_run("verify", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
