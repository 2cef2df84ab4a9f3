/* SPDX-License-Identifier: Apache-2.0 */
/* Independent programs are recorded, completed, planned and run by several threads at once: for ThreadSanitizer. */
#include <check.h>
#include <pthread.h>
#include <string.h>

#include "mlp.h"
#include "suite.h"

enum { N_THREADS = 4, N_ROUNDS = 3 };

/* The loss of one training step on a mesh, and the last message of a wrong text in between. */
static double train_once(const char *mesh_name, int ranks)
{
    static const int sizes[] = {7, 6, 5, 3};
    mlp m = mlp_new(mesh_name, 3, sizes, "adamw");
    machine *table = machine_uniform(ranks, 2);
    simulation_options o = {.plan = {2, 1, 1, false}};
    simulation *s = simulation_new(m.program, table, &o);
    dense x, y;
    mlp_batch(&m, 5, 1, &x, &y);
    simulation_feed(s, m.x, &x);
    simulation_feed(s, m.y, &y);
    simulation_run(s, m.train);
    dense loss = simulation_value(s, m.loss);
    double result = loss.at[0];
    trama_mesh_create(mesh_name[0] == 'd' ? "?d" : "?m");
    if (!strstr(trama_error(), mesh_name[0] == 'd' ? "'?d'" : "'?m'"))
        result = -1;
    dense_free(&loss);
    dense_free(&x);
    dense_free(&y);
    simulation_destroy(&s);
    machine_destroy(&table);
    mlp_free(&m);
    return result;
}

typedef struct job {
    const char *mesh;
    int ranks;
    double expected;
    bool failed;
} job;

static void *work(void *arg)
{
    job *j = arg;
    for (int i = 0; i < N_ROUNDS; i++)
        j->failed |= train_once(j->mesh, j->ranks) != j->expected;
    return NULL;
}

START_TEST(independent_programs_are_planned_at_the_same_time)
{
    job jobs[N_THREADS] = {
        {"dp=2", 2, 0, false}, {"mp=2", 2, 0, false}, {"dp=2,mp=2", 3, 0, false}, {"dp=3", 4, 0, false}};
    pthread_t threads[N_THREADS];
    for (int i = 0; i < N_THREADS; i++)
        jobs[i].expected = train_once(jobs[i].mesh, jobs[i].ranks);
    for (int i = 0; i < N_THREADS; i++)
        ck_assert(!pthread_create(&threads[i], NULL, work, &jobs[i]));
    for (int i = 0; i < N_THREADS; i++)
        ck_assert(!pthread_join(threads[i], NULL));
    for (int i = 0; i < N_THREADS; i++)
        ck_assert_msg(!jobs[i].failed, "%s gives another loss beside others", jobs[i].mesh);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        independent_programs_are_planned_at_the_same_time,
    };
    return suite_run("threads", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
