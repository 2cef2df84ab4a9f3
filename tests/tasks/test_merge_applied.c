/* SPDX-License-Identifier: Apache-2.0 */
/* Values of a merging target on one rank and on several: made of its merged gradient, and of what each micro-step
 * computes. */
#include "harness.h"

/* A target that lists what is made of its merged gradient and of what each micro-step computes. */
typedef struct mixed {
    trama_program *program;
    trama_mesh *mesh;
    trama_value *x, *total;             /* [n, 2]; the sum of it, which is not listed */
    trama_value *scaled, *old, *shaped; /* the merged gradient times the total, and times that of the run before; its
                                           sum times the sums of rows [1, n] */
    trama_target *train;
    trama_executable *e;
} mixed;

static const char *const mixed_on[][2] = {{"1", "R"}, {"2", "S(0)"}, {"2", "S(1)"}, {"2,2", "S(0),S(1)"}};
enum { N_MIXED = sizeof mixed_on / sizeof *mixed_on };

static mixed mixed_new(const char *const *on, int64_t k)
{
    mixed m = {.program = trama_program_create(), .mesh = trama_mesh_create(on[0])};
    m.x = trama_input(m.program, "x", TRAMA_F64, TRAMA_SHAPE(TRAMA_ANY, 2));
    trama_value *w = trama_parameter(m.program, "w", TRAMA_F64, TRAMA_SHAPE(2), NULL);
    trama_value *seen = trama_state(m.program, "seen", TRAMA_F64, TRAMA_SCALAR, NULL);
    trama_shard(m.x, m.mesh, on[1]);
    trama_value *rows = trama_sum_over(m.x, 1, (int[]){1}, false);
    trama_value *loss = trama_mean(trama_sum_over(trama_mul(m.x, w), 1, (int[]){1}, false));
    trama_optimizer sgd = trama_sgd(1);
    trama_value *step = trama_minimize(loss, &sgd), *merged = trama_merged_gradient(step, w);
    m.total = trama_sum(rows);
    m.scaled = trama_mul(merged, m.total);
    m.old = trama_mul(merged, seen);
    m.shaped = trama_mul(trama_sum(merged), trama_reshape(rows, TRAMA_SHAPE(1, TRAMA_ANY)));
    m.train = trama_target_create(m.program, "train", step, m.scaled, m.old, m.shaped, trama_assign(seen, m.total));
    trama_gradient_merge(m.train, k, TRAMA_MERGE_SUM);
    m.e = compile(m.program);
    return m;
}

static void mixed_free(mixed *m)
{
    must(trama_executable_destroy(&m->e));
    trama_program_destroy(&m->program);
    trama_mesh_destroy(&m->mesh);
}

/* n micro-steps of one row each, behind one whose columns add up to `before`. */
static void mixed_rows(const mixed *m, int n, const double (*rows)[2], double before)
{
    double g[2], all[2] = {0}, now = before;
    for (int i = 0; i < n; i++) {
        must(trama_feed(m->e, m->x, rows[i], TRAMA_SHAPE(1, 2)));
        must(trama_run(m->e, m->train));
        before = now;
        now = rows[i][0] + rows[i][1];
        all[0] += rows[i][0];
        all[1] += rows[i][1];
    }
    if (n < 3) { /* of k; a flush uses no feed */
        must(trama_feed(m->e, m->x, (double[8]){0}, TRAMA_SHAPE(4, 2)));
        must(trama_flush(m->e, m->train));
    }
    for (int old = 0; old < 2; old++) {
        double by = old ? before : now;
        must(trama_read(m->e, old ? m->old : m->scaled, g, sizeof g));
        demand(g[0] == by * all[0] && g[1] == by * all[1], "%g %g, not %g times %g %g", g[0], g[1], by, all[0], all[1]);
    }
    must(trama_read(m->e, m->shaped, g, sizeof *g));
    demand(g[0] == (all[0] + all[1]) * now, "%g of rows", g[0]);
    demand(trama_read(m->e, m->total, g, sizeof *g) == TRAMA_E_NOT_KEPT, "%s", trama_error());
}

/* Also where the cycle is flushed. */
START_TEST(what_is_applied_reads_the_last_micro_step)
{
    static const double rows[][2] = {{1, 2}, {3, 4}, {5, 6}, {7, 8}};
    start_with(&(trama_config){.verify = true});
    for (int i = 0; i < N_MIXED; i++) {
        mixed m = mixed_new(mixed_on[i], 3);
        mixed_rows(&m, 3, rows, 0);
        mixed_rows(&m, 2, &rows[1], 11);
        mixed_rows(&m, 3, rows, 11);
        mixed_free(&m);
    }
    stop();
}
END_TEST

/* Both parts of it, before the first run and after one with other extents. Rank 0 always has tasks. */
START_TEST(plans_of_cycles_are_shown_whatever_ran)
{
    start();
    for (int i = 0; i < N_MIXED; i++) {
        mixed m = mixed_new(mixed_on[i], 3);
        for (int rows = 1; rows < 4; rows++) {
            char *words = NULL, *dot = NULL;
            trama_traffic moved;
            must(trama_feed(m.e, m.x, (double[8]){0}, TRAMA_SHAPE(rows, 2)));
            must(trama_plan_text(m.e, m.train, true, &words));
            const char *apply = strstr(words, "the last micro-step of a cycle goes on:\n");
            demand(apply && (my_rank > 0 || (apply > words && strstr(apply, "compute"))), "%s", words);
            must(trama_plan_graph(m.e, m.train, &dot));
            demand(!strncmp(dot, "digraph", 7) && !strstr(dot + 7, "digraph"), "%s", dot);
            must(trama_target_traffic(m.e, m.train, &moved));
            demand(my_rank > 0 || (moved.apply_tasks > 0 && moved.tasks > moved.apply_tasks),
                   "%d tasks, %d of them to apply", moved.tasks, moved.apply_tasks);
            trama_text_free(&words);
            trama_text_free(&dot);
            if (rows == 1)
                must(trama_run(m.e, m.train));
        }
        mixed_free(&m);
    }
    stop();
}
END_TEST

/* There is no last micro-step then. */
START_TEST(a_cycle_resumed_elsewhere_is_not_flushed_without_what_it_goes_on_with)
{
    start();
    mixed m = mixed_new(mixed_on[0], 3);
    const trama_merge_cycle begun = {.k = 3, .at = 1, .first = 1, .sum = 1};
    must(trama_merge_resume(m.e, m.train, &begun));
    expect_here(trama_flush(m.e, m.train), TRAMA_E_ORDER, "trama_flush", "trama_merge_resume");
    mixed_free(&m);
    stop();
}
END_TEST

TESTS(what_is_applied_reads_the_last_micro_step, plans_of_cycles_are_shown_whatever_ran,
      a_cycle_resumed_elsewhere_is_not_flushed_without_what_it_goes_on_with)
