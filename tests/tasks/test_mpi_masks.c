/* SPDX-License-Identifier: Apache-2.0 */
/* State with a mask: who holds it, what is read, written, assigned and trained, beside plain loops. Trainings with
 * every optimizer are in test_optimizer.c, checkpoints in test_mpi_checkpoint.c. */
#include "harness.h"

enum { ROWS = 5, COLUMNS = 7, COUNT = ROWS * COLUMNS };

/* On four processes; local boxes by process: the columns from and to. */
static const struct {
    const char *mesh, *layout;
    int from[4], to[4];
} cases[] = {
    {"4", "R mask{0,1,0,1}", {0, 0, 0, 0}, {0, 7, 0, 7}},
    {"4", "R mask{0,0,1,0}", {0, 0, 0, 0}, {0, 0, 7, 0}},
    {"2,2", "R,S(1) mask{1,1,0,0}", {0, 4, 0, 0}, {4, 7, 0, 0}},
    {"2,2", "S(1),R mask{1,0,0,1}", {0, 0, 0, 4}, {4, 0, 0, 7}},
    {"2,2", "S(1),R", {0, 0, 4, 4}, {4, 4, 7, 7}}, /* all hold a part */
    {"2,2:3,2,1,0", "R,S(1) mask{1,0,0,1}", {4, 0, 0, 0}, {7, 0, 0, 4}},
};
enum { N_CASES = sizeof cases / sizeof *cases };

static void start_in_order(void)
{
    start_with(&(trama_config){.map_by_order = true});
}

static void demand_state(trama_executable *e, const trama_value *s, const double *wanted, const char *what)
{
    double got[COUNT];
    must(trama_read(e, s, got, sizeof got));
    for (int i = 0; i < COUNT; i++)
        demand(got[i] == wanted[i], "%s: element %d is %.17g instead of %.17g", what, i, got[i], wanted[i]);
}

/* The boxes of this rank are those of its processes that hold some. */
static void demand_boxes(trama_executable *e, const trama_value *s, int c)
{
    int n = 0, wanted = 0;
    must(trama_local_count(e, s, &n));
    for (int process = 0; process < 4; process++) {
        if (process * n_ranks / 4 != my_rank || cases[c].to[process] == 0)
            continue;
        bool found = false;
        for (int i = 0; i < n; i++) {
            int64_t offset[2], extent[2];
            must(trama_local_box(e, s, i, offset, extent));
            found |= offset[0] == 0 && extent[0] == ROWS && offset[1] == cases[c].from[process] &&
                     offset[1] + extent[1] == cases[c].to[process];
        }
        demand(found, "%s: process %d does not hold its box", cases[c].layout, process);
        wanted++;
    }
    demand(n <= wanted && (n > 0) == (wanted > 0), "%s: %d boxes instead of %d", cases[c].layout, n, wanted);
}

typedef struct user_boxes {
    trama_mesh *mesh;
    trama_program *p;
    trama_value *s, *sum, *flag, *x, *more;
    trama_target *grow, *look, *maybe, *fed;
    trama_executable *e;
} user_boxes;

/* A state, which becomes 2 s + 1, or the same where a flag says so. */
static user_boxes stated_new(int c)
{
    user_boxes t = {.mesh = mesh_of(cases[c].mesh), .p = trama_program_create()};
    t.s = trama_state(t.p, "s", TRAMA_F64, TRAMA_SHAPE(ROWS, COLUMNS), &(trama_init){.low = 3, .high = 3});
    t.flag = trama_input(t.p, "flag", TRAMA_U8, TRAMA_SCALAR);
    demand(trama_shard(t.s, t.mesh, cases[c].layout), "%s", trama_error());
    t.sum = trama_sum(t.s);
    t.x = trama_input(t.p, "x", TRAMA_F64, TRAMA_SHAPE(ROWS, COLUMNS));
    demand(trama_shard(t.x, t.mesh, cases[c].layout), "%s", trama_error());
    t.more = trama_add(t.x, t.s);
    trama_value *next = trama_add_scalar(trama_scale(t.s, 2), 1);
    t.grow = trama_target_create(t.p, "grow", trama_assign(t.s, next));
    t.maybe = trama_target_create(t.p, "maybe", trama_assign_if(t.s, next, t.flag));
    t.look = trama_target_create(t.p, "look", t.sum);
    t.fed = trama_target_create(t.p, "fed", t.more);
    t.e = compile(t.p);
    return t;
}

static void stated_free(user_boxes *t)
{
    must(trama_executable_destroy(&t->e));
    trama_program_destroy(&t->p);
    trama_mesh_destroy(&t->mesh);
}

START_TEST(holders_alone_have_it_and_all_read_it)
{
    for (int c = 0; c < N_CASES; c++) {
        start_in_order();
        user_boxes t = stated_new(c);
        double wanted[COUNT], sum;
        for (int i = 0; i < COUNT; i++)
            wanted[i] = 3;
        demand_boxes(t.e, t.s, c);
        demand_state(t.e, t.s, wanted, cases[c].layout);
        must(trama_run(t.e, t.look));
        must(trama_read(t.e, t.sum, &sum, sizeof sum));
        demand(sum == 3 * COUNT, "the sum is %g", sum);
        demand(trama_state_count(t.e) == 1 && trama_state_find(t.e, "s"), "it is not in the list of state");
        stated_free(&t);
        stop();
    }
}
END_TEST

START_TEST(what_is_fed_to_some_is_read_by_all)
{
    for (int c = 0; c < N_CASES; c++) {
        start_in_order();
        user_boxes t = stated_new(c);
        double fed[COUNT], wanted[COUNT];
        for (int i = 0; i < COUNT; i++) {
            fed[i] = i;
            wanted[i] = i + 3;
        }
        must(trama_feed(t.e, t.x, fed, TRAMA_SHAPE(ROWS, COLUMNS)));
        must(trama_run(t.e, t.fed));
        demand_state(t.e, t.more, wanted, cases[c].layout);
        stated_free(&t);
        stop();
    }
}
END_TEST

START_TEST(what_is_written_is_read_globally_and_box_by_box)
{
    for (int c = 0; c < N_CASES; c++) {
        start_in_order();
        user_boxes t = stated_new(c);
        double wanted[COUNT], box[COUNT];
        int n;
        for (int i = 0; i < COUNT; i++)
            wanted[i] = i * 0.5;
        must(trama_write(t.e, t.s, wanted, sizeof wanted));
        demand_state(t.e, t.s, wanted, "written");
        must(trama_local_count(t.e, t.s, &n));
        for (int b = 0; b < n; b++) {
            int64_t offset[2], extent[2];
            must(trama_local_box(t.e, t.s, b, offset, extent));
            size_t bytes = (size_t)(extent[0] * extent[1]) * sizeof *box;
            must(trama_read_local(t.e, t.s, b, box, bytes));
            for (int64_t i = 0; i < extent[0]; i++)
                for (int64_t j = 0; j < extent[1]; j++) {
                    double *at = &box[i * extent[1] + j];
                    demand(*at == wanted[(offset[0] + i) * COLUMNS + offset[1] + j], "a box has %g", *at);
                    *at = -*at;
                }
            must(trama_write_local(t.e, t.s, b, box, bytes));
        }
        for (int i = 0; i < COUNT; i++)
            wanted[i] = -wanted[i];
        demand_state(t.e, t.s, wanted, "written box by box");
        stated_free(&t);
        stop();
    }
}
END_TEST

START_TEST(assignments_reach_the_holders)
{
    for (int c = 0; c < N_CASES; c++) {
        start_in_order();
        user_boxes t = stated_new(c);
        double wanted[COUNT], value = 3;
        for (int run = 0; run < 4; run++) {
            unsigned char flag = run == 3;
            must(trama_feed(t.e, t.flag, &flag, TRAMA_SCALAR));
            must(trama_run(t.e, run < 2 ? t.grow : t.maybe));
            value = run == 2 ? value : 2 * value + 1;
            for (int i = 0; i < COUNT; i++)
                wanted[i] = value;
            demand_state(t.e, t.s, wanted, "assigned");
        }
        demand_boxes(t.e, t.s, c);
        stated_free(&t);
        stop();
    }
}
END_TEST

/* w -= 0.5 dw of mean((x w)^2), in eager mode, where each step reads the gradient too. */
START_TEST(eager_steps_train_what_some_hold)
{
    for (int c = 0; c < N_CASES; c++) {
        start_in_order();
        trama_mesh *mesh = mesh_of(cases[c].mesh);
        trama_program *p;
        trama_executable *e;
        double x[3 * ROWS], w[COUNT], velocity[COUNT] = {0}, z[3 * COLUMNS], d[COUNT], got[COUNT];
        must(trama_eager(ctx, &p, &e));
        for (int i = 0; i < 3 * ROWS; i++)
            x[i] = (i * 7 % 5 - 2) / 4.0;
        for (int i = 0; i < COUNT; i++)
            w[i] = 0.25;
        trama_value *parameter =
            trama_parameter(p, "w", TRAMA_F64, TRAMA_SHAPE(ROWS, COLUMNS), &(trama_init){.low = 0.25, .high = 0.25});
        demand(trama_shard(parameter, mesh, cases[c].layout), "%s", trama_error());
        trama_optimizer sgd = trama_sgd(0.5);
        sgd.momentum = 0.5;
        for (int step = 0; step < 4; step++) {
            int mark = trama_program_mark(p);
            trama_value *data = trama_tensor(p, TRAMA_F64, TRAMA_SHAPE(3, ROWS), x, mesh,
                                             trama_mesh_ndim(mesh) == 1 ? "S(0)" : "S(0),R");
            trama_value *loss = trama_mean(trama_square(trama_matmul(data, parameter)));
            trama_value *gradient = trama_gradient(loss, parameter);
            demand(trama_program_status(p) == TRAMA_OK, "%s", trama_program_error(p));
            must(trama_read(e, gradient, got, sizeof got));
            for (int i = 0; i < 3 * COLUMNS; i++) {
                z[i] = 0;
                for (int k = 0; k < ROWS; k++)
                    z[i] += x[i / COLUMNS * ROWS + k] * w[k * COLUMNS + i % COLUMNS];
            }
            for (int i = 0; i < COUNT; i++) {
                d[i] = 0;
                for (int b = 0; b < 3; b++)
                    d[i] += 2 * z[b * COLUMNS + i % COLUMNS] * x[b * ROWS + i / COLUMNS] / (3 * COLUMNS);
                demand(fabs(got[i] - d[i]) < 1e-12, "%s: gradient %d is %g instead of %g", cases[c].layout, i, got[i],
                       d[i]);
                velocity[i] = 0.5 * velocity[i] + d[i];
                w[i] -= 0.5 * velocity[i];
            }
            demand(trama_minimize(loss, &sgd), "%s", trama_program_error(p));
            must(trama_program_rewind(p, mark));
        }
        must(trama_read(e, parameter, got, sizeof got));
        for (int i = 0; i < COUNT; i++)
            demand(fabs(got[i] - w[i]) < 1e-12, "%s: w[%d] is %g instead of %g", cases[c].layout, i, got[i], w[i]);
        must(trama_executable_destroy(&e));
        trama_program_destroy(&p);
        trama_mesh_destroy(&mesh);
        stop();
    }
}
END_TEST

TESTS(holders_alone_have_it_and_all_read_it, what_is_fed_to_some_is_read_by_all,
      what_is_written_is_read_globally_and_box_by_box, assignments_reach_the_holders, eager_steps_train_what_some_hold)
