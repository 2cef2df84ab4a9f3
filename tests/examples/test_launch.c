/* SPDX-License-Identifier: Apache-2.0 */
/* However a program is launched, its results are the same, and trama info says what was used. */
#include "programs.h"
#include "suite.h"

/* Before a program; and what trama info says then. */
typedef struct way {
    const char *how, *told[3];
} way;

static char *results_alone(void)
{
    return strdup(text_of(run("TRAMA_MAX_TILES=2 ./demo_mlp 2>/dev/null")));
}

static void expect_same(const char *wanted, const char *launcher, const way *w)
{
    const char *text = text_of(run("TRAMA_MAX_TILES=2 %s%s ./demo_mlp 2>/dev/null", launcher, w->how));
    ck_assert_msg(!strcmp(text, wanted), "%s: other results:\n%sthan alone:\n%s", w->how, text, wanted);
    text = text_of(run("%s%s ./trama info 2>/dev/null", launcher, w->how));
    for (int i = 0; i < 3 && w->told[i]; i++)
        ck_assert_msg(contains(text, w->told[i]), "%s: \"%s\" is not in\n%s", w->how, w->told[i], text);
}

/* Numbers of processors that this process may use, with commas: the first one, or the first half of them. */
static const char *processors(const char *how_many)
{
    static char list[512];
    const char *text =
        text_of(run("n=%s; awk '/^Cpus_allowed_list/ { print $2 }' /proc/self/status | tr , '\\n' | "
                    "while IFS=- read a b; do seq $a ${b:-$a}; done | head -n $n | paste -sd, | tr -d '\\n'",
                    how_many));
    ck_assert_uint_lt(strlen(text), sizeof list);
    memcpy(list, text, strlen(text) + 1);
    return list;
}
#define FIRST "1"
#define HALF "$((($(nproc) + 1) / 2))"

static bool has_open_mpi(void)
{
    return TRAMA_HAVE_MPI && contains(run("mpirun --version")->text, "Open MPI");
}

START_TEST(one_rank_computes_the_same_on_any_cores)
{
    static const way ways[] = {
        {"TRAMA_WORKERS=1", {"workers of this rank: 1 on ", "as TRAMA_WORKERS or config.workers says"}},
        {"STARPU_NCPU=1", {"workers of this rank: 1 on ", "as STARPU_NCPU says"}},
        {"STARPU_WORKERS_CPUID=0 TRAMA_WORKERS=1", {"bound as STARPU_WORKERS_CPUID"}},
        {"TRAMA_WORKERS=3 HWLOC_SYNTHETIC='package:1 core:2 pu:1'", {"3 on 2 of 2 cores", "unbound"}},
        {"HWLOC_SYNTHETIC='node:2 core:1 pu:2'",
         {"NUMA domains 2, cores 2, hardware threads 4", "2 on 2 of 2 cores, one for each", "place 1: rank 0"}},
    };
    char *wanted = results_alone();
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        expect_same(wanted, "", &ways[i]);
    free(wanted);
}
END_TEST

START_TEST(a_rank_keeps_to_the_cores_that_it_may_use)
{
    char *wanted = results_alone(), how[600], allowed[600];
    const char *first = processors(FIRST);
    snprintf(how, sizeof how, "taskset -c %s", first);
    snprintf(allowed, sizeof allowed, "this rank may use: %s\n", first);
    expect_same(wanted, "", &(way){how, {allowed, "1 on 1 of", "each bound to its own: processors "}});
    snprintf(how, sizeof how, "taskset -c %s", processors(HALF));
    expect_same(wanted, "", &(way){how, {"one for each, each bound to its own"}});
    free(wanted);
}
END_TEST

START_TEST(ranks_compute_the_same_however_they_are_bound)
{
    static const way ways[] = {
        {"2 --bind-to none", {"rank 0 of 2, 2 of them on this node", "with 1 other rank\n", "messages: StarPU-MPI's"}},
        {"2 --bind-to core:overload-allowed", {"rank 0 of 2", "1 on 1 of", "drives worker 0 as well, since"}},
        {"2 --bind-to socket", {"rank 0 of 2", "messages: StarPU-MPI's"}},
        {"3", {"rank 0 of 3", "place 2: rank 2"}},
        {"4 --oversubscribe", {"rank 0 of 4, 4 of them on this node", "with 3 other ranks\n", "place 3: rank 3"}},
        {"2 env HWLOC_SYNTHETIC='package:2 core:10 pu:2'",
         {"9 on 10 of 20 cores", "StarPU-MPI's thread has a core of its own: processor 18"}},
        {"2 env TRAMA_WORKERS=3 HWLOC_SYNTHETIC='package:2 core:2 pu:1'", {"3 on 2 of 4 cores", "unbound"}},
    };
    if (suite_skips(!has_open_mpi(), "launches of several ranks, there is no Open MPI"))
        return;
    char *wanted = results_alone(), how[600];
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i += suite_stride())
        expect_same(wanted, MPIRUN, &ways[i]);
    snprintf(how, sizeof how, "4 taskset -c %s", processors(FIRST));
    expect_same(wanted, MPIRUN,
                &(way){how,
                       {"with 3 other ranks\n", "bound to one that as many ranks share as any other",
                        "drives worker 0 as well, since cores are shared"}});
    free(wanted);
}
END_TEST

/* Each rank holds a lock as long as it lives. Open MPI itself leaves its segments and its session's folder. */
START_TEST(a_killed_mpirun_ends_its_ranks_and_leaves_nothing_of_trama)
{
    if (suite_skips(!has_open_mpi(), "launches of several ranks, there is no Open MPI"))
        return;
    text_of(run("cd %s && mkdir home shared && : >lock && : >out && cat >rank <<'END'\n"
                "exec 9<%s/lock; flock -s 9\n"
                "exec ./fashion_mnist --data %s --mesh dp=2 --hidden 17 --batch 10 --epochs 1000000\n"
                "END\n",
                scratch, scratch, scratch));
    char *left = strdup(text_of(
        run("export HOME=%s/home TMPDIR=%s/shared OMPI_MCA_btl_vader_backing_directory=%s/shared; " MPIRUN
            "2 sh %s/rank >%s/out 2>&1 & p=$!; until grep -q '^step' %s/out || ! kill -0 $p; do sleep 0.1; done; "
            "kill -KILL $p; flock %s/lock true; find %s/shared -type f | grep -v -e /vader_segment -e /ompi; true",
            scratch, scratch, scratch, scratch, scratch, scratch, scratch, scratch)));
    const char *said = text_of(run("cat %s/out", scratch));
    ck_assert_msg(contains(said, "step") && !*left, "left behind: %s; it said: %s", left, said);
    free(left);
}
END_TEST

TESTS(one_rank_computes_the_same_on_any_cores, a_rank_keeps_to_the_cores_that_it_may_use,
      ranks_compute_the_same_however_they_are_bound, a_killed_mpirun_ends_its_ranks_and_leaves_nothing_of_trama)
