/* SPDX-License-Identifier: Apache-2.0 */
/* Plans with collectives: a training step over GPUs, what the verifier says of members that do not meet, and what plans
 * say of themselves. */
#include <check.h>
#include <string.h>

#include "mlp.h"
#include "partition.h"
#include "suite.h"
#include "verify_plan.h"

static int count_steps(const plan *p, step_kind kind, int form)
{
    int n = 0;
    for (int i = 0; i < p->steps.n; i++)
        n += p->steps.at[i].kind == kind && (kind != STEP_COLLECTIVE || (int)p->steps.at[i].collective.form == form);
    return n;
}

/* ---- Training ---- */

static const int sizes[] = {8, 12, 4};

typedef struct job {
    mlp m;
    machine *machine;
    simulation *s;
} job;

static job job_new(const char *mesh, int ranks, int places, const plan_options *options)
{
    job j = {.m = mlp_new(mesh, 2, sizes, "adamw"), .machine = simulation_machine(ranks, places, 1)};
    machine_vary(j.machine, 1);
    j.s = simulation_new(j.m.program, j.machine, &(simulation_options){.plan = *options});
    for (int step = 0; step < 3; step++) {
        dense x, y;
        mlp_batch(&j.m, 16, (uint64_t)step, &x, &y);
        simulation_feed(j.s, j.m.x, &x);
        simulation_feed(j.s, j.m.y, &y);
        simulation_run(j.s, j.m.train);
        dense_free(&x);
        dense_free(&y);
    }
    return j;
}

static void job_free(job *j)
{
    simulation_destroy(&j->s);
    machine_destroy(&j->machine);
    mlp_free(&j->m);
}

static void compare(job *a, job *b, const trama_value *of_a, const trama_value *of_b, double tolerance)
{
    dense x = simulation_value(a->s, of_a), y = simulation_value(b->s, of_b);
    double wrong = dense_difference(&x, &y);
    ck_assert_msg(wrong <= tolerance, "%s differs by %g", of_a->name, wrong);
    dense_free(&x);
    dense_free(&y);
}

static void compare_jobs(job *a, job *b, double tolerance)
{
    compare(a, b, a->m.loss, b->m.loss, tolerance);
    for (int i = 0; i < 2; i++) {
        compare(a, b, a->m.w[i], b->m.w[i], tolerance);
        compare(a, b, a->m.b[i], b->m.b[i], tolerance);
    }
}

static void verify(const job *j)
{
    ck_assert_msg(!simulation_verify(j->s), "%s", trama_error());
}

START_TEST(gradients_over_four_gpus_are_summed_in_order_and_to_the_bit)
{
    for (int ranks = 1; ranks <= 4; ranks *= 2) {
        job by_messages = job_new("dp=4", ranks, 4 / ranks, &(plan_options){.max_tiles = 1});
        job together = job_new("dp=4", ranks, 4 / ranks, &(plan_options){.max_tiles = 1, .collectives = true});
        int places = 4 / ranks;
        verify(&together);
        compare_jobs(&together, &by_messages, 0);
        for (int r = 0; r < ranks; r++) {
            const plan *p = simulation_plan(together.s, r);
            ck_assert_int_eq(count_steps(p, STEP_COLLECTIVE, PLAN_ALL_TO_ALL), 4 * places); /* two layers' w and b */
            ck_assert_int_eq(count_steps(p, STEP_COLLECTIVE, PLAN_ALL_GATHER), 4 * places);
            for (int i = 0; i < p->exchanges.n; i++)
                ck_assert(!p->exchanges.at[i].collectives || !p->exchanges.at[i].messages);
        }
        job_free(&by_messages);
        job_free(&together);
    }
}
END_TEST

START_TEST(sums_of_nccl_are_one_collective_each)
{
    static const char *const meshes[] = {"dp=4", "dp=2,mp=2", "mp=2,dp=2"};
    for (int i = 0; i < 3; i++)
        for (int ranks = 1; ranks <= 4; ranks *= 2) {
            job by_messages = job_new(meshes[i], ranks, 4 / ranks, &(plan_options){.max_tiles = 1});
            job together = job_new(meshes[i], ranks, 4 / ranks,
                                   &(plan_options){.max_tiles = 1, .collectives = true, .nccl_sums = true});
            verify(&together);
            compare_jobs(&together, &by_messages, 1e-12);
            const plan *p = simulation_plan(together.s, 0);
            ck_assert_int_gt(count_steps(p, STEP_COLLECTIVE, PLAN_ALL_REDUCE), 0);
            ck_assert_int_eq(plan_count(p).messages, 0);
            job_free(&by_messages);
            job_free(&together);
        }
}
END_TEST

/* ---- Damage ---- */

/* x loses its split along the rows of a mesh, then along its columns, and y along its rows. */
typedef struct set {
    trama_program *program;
    trama_mesh *mesh;
    machine *machine;
    process_map *map;
    plan *plans[4];
} set;

static set set_new(void)
{
    set s = {.program = trama_program_create(), .mesh = trama_mesh_create("2,2"), .machine = machine_uniform(4, 1)};
    const trama_shape shapes_of[] = {TRAMA_SHAPE(4, 8), TRAMA_SHAPE(8, 3)};
    const trama_mesh *meshes[] = {s.mesh, s.mesh};
    trama_layout from[2], rows, all;
    machine_vary(s.machine, 1);
    s.map = map_by_order(4, NULL, s.machine);
    trama_input(s.program, "x", TRAMA_F64, shapes_of[0]);
    trama_input(s.program, "y", TRAMA_F64, shapes_of[1]);
    ck_assert(!trama_layout_parse(s.mesh, 2, "S(0),S(1)", &from[0]) &&
              !trama_layout_parse(s.mesh, 2, "R,S(0)", &from[1]) && !trama_layout_parse(s.mesh, 2, "S(0),R", &rows) &&
              !trama_layout_parse(s.mesh, 2, "R,R", &all));
    layouts l = {.n_values = 2, .mesh = meshes, .value = from};
    for (int r = 0; r < 4; r++) {
        plan_options options = {.max_tiles = 1, .grain_flops = 1, .grain_bytes = 1, .collectives = true};
        plan_source source = {s.program, &l, shapes_of, NULL, s.map, s.machine, options, r};
        partition *q = partition_begin(&source);
        partition_input(q, 0);
        partition_input(q, 1);
        partition_reshard(q, 0, s.mesh, &rows, -1, false);
        partition_reshard(q, 0, s.mesh, &all, -1, false);
        partition_reshard(q, 1, s.mesh, &all, -1, false);
        s.plans[r] = partition_end(&q);
    }
    return s;
}

static void set_free(set *s)
{
    for (int r = 0; r < 4; r++)
        plan_destroy(&s->plans[r]);
    map_destroy(&s->map);
    machine_destroy(&s->machine);
    trama_mesh_destroy(&s->mesh);
    trama_program_destroy(&s->program);
}

/* Number k of the collectives of a rank's one place. */
static plan_step *collective_number(plan *p, int k)
{
    for (int i = 0; i < p->steps.n; i++)
        if (p->steps.at[i].kind == STEP_COLLECTIVE && k-- == 0)
            return &p->steps.at[i];
    ck_abort_msg("no such collective");
    return NULL;
}

static void swap_steps(plan *p, int i, int k)
{
    plan_step *a = collective_number(p, i), *b = collective_number(p, k), kept = *a;
    *a = *b;
    *b = kept;
}

static void drop_step(plan *p, const plan_step *s)
{
    int at = (int)(s - p->steps.at);
    memmove(&p->steps.at[at], &p->steps.at[at + 1], (size_t)(p->steps.n - at - 1) * sizeof *s);
    p->steps.n--;
}

/* Damages the plans; returns words of the verifier's message. */
static const char *damage(set *s, int which)
{
    plan *p = s->plans[1];
    plan_step *first = collective_number(p, 0);
    switch (which) {
    case 0:
        swap_steps(p, 0, 2); /* both among the same places */
        return "another collective";
    case 1:
        swap_steps(p, 1, 2); /* of four that stand in a ring each waits for the next */
        swap_steps(s->plans[2], 1, 2);
        return "circle";
    case 2:
        first->collective.count *= 2;
        return "another collective";
    case 3:
        first->collective.form = PLAN_BROADCAST;
        return "another collective";
    case 4:
        first->collective.dtype = TRAMA_F32;
        return "another collective";
    case 5:
        drop_step(p, collective_number(p, 1));
        return "takes no part";
    case 6:
        p->groups.at[first->collective.group].places[0] = 3;
        return "takes no part";
    case 7:
        for (int r = 0; r < 4; r++)
            collective_number(s->plans[r], 0)->collective.count--;
        return "buffers";
    case 8:
        p->exchanges.at[0].received += 8;
        return "other bytes";
    default:
        p->operands.at[first->operand].region.box.n[0]--;
        return "buffers";
    }
}

START_TEST(members_that_do_not_meet_are_named)
{
    set whole = set_new();
    ck_assert_msg(!plan_verify((const plan *const *)whole.plans, 4, whole.program), "%s", trama_error());
    set_free(&whole);
    for (int i = 0; i < 10; i++) {
        set s = set_new();
        const char *says = damage(&s, i);
        ck_assert_msg(plan_verify((const plan *const *)s.plans, 4, s.program), "damage %d goes unnoticed", i);
        ck_assert_msg(strstr(trama_error(), says) != NULL, "damage %d: %s", i, trama_error());
        set_free(&s);
    }
}
END_TEST

START_TEST(a_plan_says_what_is_a_collective)
{
    set s = set_new();
    text steps = {0}, summary = {0};
    plan_describe(s.plans[1], s.program, &steps);
    plan_summary(s.plans[1], s.program, &summary);
    ck_assert_ptr_nonnull(strstr(steps.at, "GPU place 1 lane 0 all-gather of 8 among places 0 1 >"));
    ck_assert_ptr_nonnull(strstr(summary.at, "; 1 collectives"));
    ck_assert_ptr_nonnull(strstr(summary.at, "in 0 messages and 3 collectives"));
    free(steps.at);
    free(summary.at);
    set_free(&s);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        gradients_over_four_gpus_are_summed_in_order_and_to_the_bit,
        sums_of_nccl_are_one_collective_each,
        members_that_do_not_meet_are_named,
        a_plan_says_what_is_a_collective,
    };
    return suite_run("collective_plans", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
