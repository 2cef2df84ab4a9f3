/* SPDX-License-Identifier: Apache-2.0 */
/* A message under way holds up only what needs it: MPI's requests are held back (support/delay.h) until all other tasks
 * have run. Tasks are counted by an op that copies and marks. The benchmark has how much time that hides (rows
 * overlap.*). */
#include <stdatomic.h>

#include "context.h"
#include "delay.h"
#include "harness.h"

enum { MOST_MARKS = 16, GRADIENT = MOST_MARKS / 2 };

static atomic_int marks[MOST_MARKS];

/* y = x; a piece of mark i is computed. */
static trama_status mark_cpu(const trama_call *call)
{
    int64_t i[TRAMA_MAX_NDIM];
    for (bool more = trama_first(call->out, i); more; more = trama_next(call->out, i))
        *(double *)trama_element(call->out, call->out->ndim, i) =
            *(double *)trama_element(call->in, call->out->ndim, i);
    atomic_fetch_add(&marks[call->attributes->integer[0]], 1);
    return TRAMA_OK;
}

static trama_value *marked(const trama_op *mark, trama_value *x, int i)
{
    return trama_apply(mark, 1, &x, &(trama_attributes){.integer = {i}});
}

static void mark_gradient(const trama_op_gradient *g)
{
    int i = (int)g->attributes->integer[0];
    trama_op_set_gradient(g, 0, marked(g->op, trama_op_result_gradient(g, 0), GRADIENT + i));
}

static const trama_op *define_mark(void)
{
    const trama_op *mark;
    must(trama_op_define(&(trama_op_definition){.name = "mark",
                                                .n_in = 1,
                                                .n_out = 1,
                                                .rule = "...->...",
                                                .cpu = mark_cpu,
                                                .gradient = mark_gradient,
                                                .attributes = "i"},
                         &mark));
    return mark;
}

/* Runs a target while no message arrives. Of the marks `free` all come, and of those `bound` none before messages do.
 */
static void run_held(trama_executable *e, const trama_target *t, unsigned free, unsigned bound)
{
    must(trama_run(e, t)); /* the first run is planned together */
    must(trama_wait(e));
    for (int i = 0; i < MOST_MARKS; i++)
        atomic_store(&marks[i], 0);
    delay_set(INT64_C(1000000000000));
    delay_spare_thread(true);
    context_barrier(ctx, "run_held"); /* a rank sends nothing before the others hold messages back */
    delay_spare_thread(false);
    delay_counts before = delay_count();
    must(trama_run(e, t));
    for (int i = 0; i < MOST_MARKS; i++)
        while (free >> i & 1 && !atomic_load(&marks[i]))
            usleep(1000); /* for ever where it waits for a message */
    for (int i = 0; i < MOST_MARKS; i++)
        demand(!(bound >> i & 1) || !atomic_load(&marks[i]), "mark %d comes before its message", i);
    delay_counts after = delay_count();
    demand(after.envelopes == before.envelopes && after.data == before.data, "a message arrives though it is held");
    delay_set(0);
    must(trama_wait(e));
    for (int i = 0; i < MOST_MARKS; i++)
        demand(!(bound >> i & 1) || atomic_load(&marks[i]), "mark %d never comes", i);
    demand(delay_count().data > after.data, "no request passes through delay.c");
}

/* Micro-batches x_i = 1 [4, 6] through a block: a matrix of ones split by columns, one split by rows. */
START_TEST(a_held_message_leaves_the_other_micro_batches_going)
{
    enum { N = 4, BATCH = 4, WIDTH = 6 };
    start();
    const trama_op *mark = define_mark();
    trama_mesh *mesh = mesh_of("mp=2");
    trama_program *p = trama_program_create();
    const trama_init ones = {.low = 1, .high = 1};
    trama_value *u = trama_parameter(p, "u", TRAMA_F64, TRAMA_SHAPE(WIDTH, WIDTH), &ones);
    trama_value *v = trama_parameter(p, "v", TRAMA_F64, TRAMA_SHAPE(WIDTH, WIDTH), &ones);
    trama_shard(u, mesh, "S(1)");
    trama_shard(v, mesh, "S(0)");
    trama_value *y[N];
    for (int i = 0; i < N; i++) {
        char name[16];
        snprintf(name, sizeof name, "x%d", i);
        trama_value *x = trama_shard(trama_state(p, name, TRAMA_F64, TRAMA_SHAPE(BATCH, WIDTH), &ones), mesh, "R");
        trama_value *terms = trama_matmul(marked(mark, trama_matmul(x, u), i), v);
        y[i] = marked(mark, trama_reshard(terms, mesh, "R"), GRADIENT + i);
    }
    trama_target *t = trama_target_at(TRAMA_HERE, p, "t", N, y);
    trama_executable *e = compile(p);
    run_held(e, t, (1U << N) - 1, ((1U << N) - 1) << GRADIENT);
    for (int i = 0; i < N; i++) {
        double got[BATCH * WIDTH];
        must(trama_read(e, y[i], got, sizeof got));
        for (int k = 0; k < BATCH * WIDTH; k++)
            demand(got[k] == WIDTH * WIDTH, "micro-batch %d: %g", i, got[k]);
    }
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
    trama_op_destroy(&mark);
    stop();
}
END_TEST

/* Data parallel: the gradient of the last layer's weights is summed over the ranks, while that of the first is made. */
START_TEST(held_gradients_leave_the_backward_pass_going)
{
    enum { LAYERS = 4, BATCH = 6, WIDTH = 5 };
    start();
    const trama_op *mark = define_mark();
    trama_mesh *mesh = mesh_of("dp=2");
    trama_program *p = trama_program_create();
    const trama_init ones = {.low = 1, .high = 1};
    trama_value *w[LAYERS], *at = trama_state(p, "x", TRAMA_F64, TRAMA_SHAPE(BATCH, WIDTH), &ones);
    trama_shard(at, mesh, "S(0)");
    for (int i = 0; i < LAYERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "w%d", i);
        w[i] = trama_shard(trama_parameter(p, name, TRAMA_F64, TRAMA_SHAPE(WIDTH, WIDTH), &ones), mesh, "R");
        at = marked(mark, trama_matmul(at, w[i]), i);
    }
    trama_value *loss = trama_mean(at), *sums[LAYERS + 1];
    sums[LAYERS] = loss; /* without it the last layer would lend its shape alone, and not be computed */
    for (int i = 0; i < LAYERS; i++)
        sums[i] = marked(mark, trama_reshard(trama_gradient(loss, w[i]), mesh, "R"), LAYERS + i);
    trama_target *t = trama_target_at(TRAMA_HERE, p, "t", LAYERS + 1, sums);
    trama_executable *e = compile(p);
    unsigned all = (1U << LAYERS) - 1;
    run_held(e, t, all | all << GRADIENT, all << LAYERS);
    for (int i = 0; i < LAYERS; i++) {
        double got[WIDTH * WIDTH];
        must(trama_read(e, sums[i], got, sizeof got));
        for (int k = 0; k < WIDTH * WIDTH; k++) /* BATCH times WIDTH^i of before and WIDTH^(LAYERS - 1 - i) of behind */
            demand(relative(got[k], pow(WIDTH, LAYERS - 2)) < 1e-12, "gradient %d: %.17g", i, got[k]);
    }
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
    trama_op_destroy(&mark);
    stop();
}
END_TEST

int main(void)
{
    const TTest *tests[] = {a_held_message_leaves_the_other_micro_batches_going,
                            held_gradients_leave_the_backward_pass_going};
    if (!TRAMA_HAVE_MPI) {
        fprintf(stderr, "skipped: there are no messages without MPI\n");
        return 77;
    }
    return run_tests(__FILE__, tests, (int)(sizeof tests / sizeof *tests));
}
