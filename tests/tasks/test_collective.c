/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives among the GPUs of a process, where there are four and NCCL, be it what stands in for both: every kind of
 * them gives what was fed, and training follows plain loops. */
#include "gpu_group.h"
#include "harness.h"
#include "itself.h"
#include "network.h"
#include "suite.h"

enum { ROWS = 8, COLUMNS = 12, SKIPPED = 77 };

static bool start_gpus(bool nccl_sums)
{
    trama_config config = {.device = TRAMA_GPU, .nccl_sums = nccl_sums, .map_by_order = true, .verify = true};
    if (trama_start(&config, &ctx))
        return false;
    my_rank = trama_context_rank(ctx);
    n_ranks = trama_context_ranks(ctx);
    if (gpu_groups_can(ctx) && context_machine(ctx)->n_places >= 4)
        return true;
    stop();
    return false;
}

/* ---- Changes of layout ---- */

typedef struct path {
    const char *mesh, *from, *to;
    int collectives, nccl; /* of each GPU, with sums in the order of processes and in NCCL */
} path;

/* A product whose contraction is split is a sum of terms; the others are layouts of what is fed. */
static const path paths[] = {{"4", "S(0)", "R", 1, 1},
                             {"4", "S(1)", "R", 1, 1},
                             {"4", "S(0)", "S(1)", 1, 1},
                             {"4", "P", "S(0)", 1, 1},
                             {"4", "P", "S(1)", 1, 1},
                             {"4", "P", "R", 2, 1},
                             {"2,2", "S(0),S(1)", "R,S(1)", 1, 1},
                             {"2,2", "R,S(0)", "R,S(1)", 1, 1}};

static const trama_dtype types[] = {TRAMA_F32, TRAMA_I16, TRAMA_C64, TRAMA_C128};

/* Of complex elements the imaginary part is told apart from the real one. */
static void put(void *data, trama_dtype dtype, int64_t i, double x)
{
    set_number(data, dtype, i, x);
    if (dtype == TRAMA_C64)
        ((float *)data)[2 * i + 1] = (float)(3 * x);
    if (dtype == TRAMA_C128)
        ((double *)data)[2 * i + 1] = 3 * x;
}

static void try_path(const path *p, trama_dtype dtype, bool nccl)
{
    enum { ROOM = 16 }; /* bytes of an element of any type */
    char data[ROWS * COLUMNS * ROOM], twice[ROWS * COLUMNS * ROOM], got[ROWS * COLUMNS * ROOM],
        ones[ROWS * ROWS * ROOM];
    const size_t bytes = ROWS * COLUMNS * trama_dtype_size(dtype);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        put(data, dtype, i, i % 31 - 11);
        put(twice, dtype, i, 2 * (i % 31 - 11));
    }
    for (int i = 0; i < ROWS * ROWS; i++)
        set_number(ones, dtype, i, i % (ROWS + 1) ? 0 : 2);
    bool sums = p->from[0] == 'P';
    trama_mesh *mesh = mesh_of(p->mesh);
    trama_program *program = trama_program_create();
    trama_value *x = trama_input(program, "x", dtype, TRAMA_SHAPE(ROWS, COLUMNS));
    trama_value *a = trama_input(program, "a", dtype, TRAMA_SHAPE(ROWS, ROWS));
    trama_shard(x, mesh, sums ? "S(0)" : p->from);
    trama_shard(a, mesh, sums ? "S(1)" : *p->mesh == '4' ? "R" : "R,R");
    trama_value *y = sums ? trama_shard(trama_matmul(a, x), mesh, "P") : trama_add(x, x);
    trama_value *z = trama_reshard(y, mesh, p->to);
    trama_target *target = trama_target_create(program, "both", z);
    trama_executable *e = compile(program);
    for (int run = 0; run < 3; run++) {
        must(trama_feed(e, x, data, TRAMA_SHAPE(ROWS, COLUMNS)));
        if (sums)
            must(trama_feed(e, a, ones, TRAMA_SHAPE(ROWS, ROWS)));
        must(trama_run(e, target));
        must(trama_read(e, z, got, bytes));
        for (int64_t i = 0; i < ROWS * COLUMNS; i++)
            demand(!memcmp(&got[(size_t)i * (bytes / (ROWS * COLUMNS))], &twice[(size_t)i * (bytes / (ROWS * COLUMNS))],
                           bytes / (ROWS * COLUMNS)),
                   "%s, %s, %s -> %s: element %d is %g instead of %g", trama_dtype_name(dtype), p->mesh, p->from, p->to,
                   (int)i, number_at(got, dtype, i), number_at(twice, dtype, i));
    }
    trama_traffic traffic = {0};
    must(trama_target_traffic(e, target, &traffic));
    /* NCCL has no sums of 16-bit integers */
    int expected = 4 / n_ranks * (nccl && dtype != TRAMA_I16 ? p->nccl : p->collectives);
    demand(traffic.collectives == expected, "%s, %s, %s -> %s: %d collectives instead of %d", trama_dtype_name(dtype),
           p->mesh, p->from, p->to, traffic.collectives, expected);
    trama_executable_destroy(&e);
    trama_program_destroy(&program);
    trama_mesh_destroy(&mesh);
}

START_TEST(every_kind_of_collective_gives_what_was_fed)
{
    for (int nccl = 0; nccl < 2; nccl++) {
        if (!start_gpus(nccl))
            return;
        for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
            for (size_t t = 0; t < sizeof types / sizeof *types; t++)
                try_path(&paths[i], types[t], nccl);
        stop();
    }
}
END_TEST

/* ---- Training ---- */

START_TEST(training_on_four_gpus_follows_plain_loops)
{
    static const char *const meshes[] = {"dp=4", "dp=2,mp=2"};
    static const int sizes[] = {16, 8, 4};
    for (int nccl = 0; nccl < 2; nccl++) {
        if (!start_gpus(nccl))
            return;
        for (int i = 0; i < 2; i++)
            train_beside_plain(&(training){meshes[i], TRAMA_F64, i == 1, 3, 1e-12, 2, sizes, {8}});
        stop();
    }
}
END_TEST

/* ---- Failure ---- */

/* In a process of its own, whose second call of NCCL fails. */
static int exchange_and_fail(void)
{
    setenv("TRAMA_WATCHDOG", "1", 1);
    if (start_gpus(false))
        try_path(&paths[0], TRAMA_F32, false);
    return 0;
}

START_TEST(a_failure_of_nccl_ends_the_job)
{
    char said[4096];
    start_gpus(false);
    bool standin = on_standin(ctx);
    stop();
    if (suite_skips(!standin || n_ranks > 1, "failures of NCCL, which only the stand-in makes, on one rank"))
        return;
    int status = run_itself("fail", "nccl:2", said, sizeof said);
    demand(WIFSIGNALED(status) && strstr(said, "GPUs that cannot exchange any more: NCCL reports"), "status %d: %s",
           status, said);
}
END_TEST

int main(int argc, char **argv)
{
    setenv("TRAMA_STANDIN_GPUS", "4", 0);
    setenv("STARPU_SCHED", "prio", 0); /* StarPU's lws wants a core for each worker of so many */
    const TTest *tests[] = {every_kind_of_collective_gives_what_was_fed, training_on_four_gpus_follows_plain_loops,
                            a_failure_of_nccl_ends_the_job};
    if (argc > 1 && !strcmp(argv[1], "fail"))
        return exchange_and_fail();
    if (!start_gpus(false)) {
        printf("skipped: no four GPUs that exchange through NCCL: %s\n", trama_error());
        return SKIPPED;
    }
    stop();
    return run_tests(__FILE__, tests, (int)(sizeof tests / sizeof *tests));
}
