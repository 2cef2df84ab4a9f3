/* SPDX-License-Identifier: Apache-2.0 */
/* A context of several ranks that Trama itself started: agreement, the machine table, repeated starts. */
#define _GNU_SOURCE /* cpu_set_t */
#include "harness.h"

#include <dlfcn.h>
#include <sched.h>

static const trama_config quiet = {.log = keep_quiet};

static void start_quietly(const char *kind)
{
    trama_status status = context_create(&quiet, kind, NULL, &ctx);
    ck_assert_msg(status == TRAMA_OK, "%s", trama_error());
}

START_TEST(it_starts_and_stops_as_often_as_one_likes)
{
    for (int i = 0; i < 3; i++) {
        start_quietly("cpu:test");
        ck_assert_int_ge(context_ranks(ctx), 2);
        stop();
    }
}
END_TEST

START_TEST(all_ranks_have_one_machine_table)
{
    start_quietly(getenv("OMPI_COMM_WORLD_RANK") && atoi(getenv("OMPI_COMM_WORLD_RANK")) == 1 ? "cpu:b" : "cpu:a");
    const machine *m = context_machine(ctx);
    int me = context_rank(ctx), ranks = context_ranks(ctx);
    size_t bytes = (size_t)m->n_places * sizeof *m->places;
    machine_place *all = malloc((size_t)ranks * bytes);
    ck_assert_int_eq(m->n_ranks, ranks);
    ck_assert_int_eq(context_gather(ctx, "test", m->places, bytes, all), TRAMA_OK);
    for (int r = 0; r < ranks; r++)
        ck_assert_mem_eq(all + r * m->n_places, m->places, bytes);
    free(all);
    for (int p = 0; p < m->n_places; p++) {
        ck_assert_int_ge(m->places[p].rank, p ? m->places[p - 1].rank : 0);
        ck_assert_int_eq(m->places[p].kind, m->places[p].rank == 1 ? 1 : 0);
        ck_assert_int_eq(m->places[p].path[0], 0);
        ck_assert_int_eq(m->places[p].path[3], m->places[p].rank);
    }
    ck_assert_int_eq(machine_first_place(m, me), context_first_place(ctx));
    stop();
}
END_TEST

START_TEST(ranks_of_one_machine_share_its_cores)
{
    start_quietly("cpu:test");
    const machine *m = context_machine(ctx);
    int cores = (int)sysconf(_SC_NPROCESSORS_ONLN), workers = 0;
    for (int p = 0; p < m->n_places; p++)
        workers += m->places[p].workers;
    ck_assert_int_le(workers, m->n_ranks > cores ? m->n_ranks : cores);
    stop();
}
END_TEST

/* Ranks that are alone on their cores, or share them evenly, leave the others' to their threads. */
START_TEST(the_calling_thread_stays_on_the_cores_of_its_rank)
{
    cpu_set_t hosts, bound, back, others;
    sched_getaffinity(0, sizeof hosts, &hosts);
    start_quietly("cpu:test");
    char *described = trama_context_describe(ctx);
    const bool shares = strstr(described, " other rank") && !strstr(described, "unbound");
    trama_text_free(&described);
    sched_getaffinity(0, sizeof bound, &bound);
    CPU_AND(&others, &bound, &hosts);
    ck_assert(CPU_EQUAL(&others, &bound));
    if (shares && context_ranks(ctx) == sysconf(_SC_NPROCESSORS_ONLN))
        ck_assert_int_lt(CPU_COUNT(&bound), CPU_COUNT(&hosts));
    else if (!shares)
        ck_assert(CPU_EQUAL(&bound, &hosts));
    stop();
    sched_getaffinity(0, sizeof back, &back);
    ck_assert(CPU_EQUAL(&back, &hosts));
}
END_TEST

START_TEST(a_binding_that_the_program_makes_later_stays)
{
    cpu_set_t hosts, bound, one, after;
    sched_getaffinity(0, sizeof hosts, &hosts);
    start_quietly("cpu:test");
    sched_getaffinity(0, sizeof bound, &bound);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        if (CPU_ISSET(cpu, &hosts) && !CPU_EQUAL(&one, &bound))
            break;
        one = bound; /* there is no other processor */
    }
    sched_setaffinity(0, sizeof one, &one);
    stop();
    sched_getaffinity(0, sizeof after, &after);
    sched_setaffinity(0, sizeof hosts, &hosts);
    ck_assert(CPU_EQUAL(&after, CPU_EQUAL(&one, &bound) ? &hosts : &one));
}
END_TEST

START_TEST(gathering_and_agreeing)
{
    start_quietly("cpu:test");
    int me = context_rank(ctx), ranks = context_ranks(ctx), all[64];
    ck_assert_int_eq(context_gather(ctx, "test", &me, sizeof me, all), TRAMA_OK);
    for (int r = 0; r < ranks; r++)
        ck_assert_int_eq(all[r], r);
    ck_assert_int_eq(context_call(ctx, TRAMA_HERE, "test", me == 1 ? "one()" : "other()"), TRAMA_OK);
    ck_assert_int_eq(context_agree(ctx, "test", TRAMA_OK), TRAMA_OK);
    trama_status mine = me == 1 ? trama_fail(NOWHERE, TRAMA_E_MEMORY, "the disk is full") : TRAMA_OK;
    ck_assert_int_eq(context_agree(ctx, "test", mine), TRAMA_E_MEMORY);
    ck_assert_ptr_nonnull(strstr(trama_error(), "the disk is full"));
    stop();
}
END_TEST

START_TEST(an_error_of_one_rank_is_every_ranks)
{
    int rank = getenv("OMPI_COMM_WORLD_RANK") ? atoi(getenv("OMPI_COMM_WORLD_RANK")) : 0;
    trama_config wrong = {.log = keep_quiet, .max_in_flight = rank == 1 ? -3 : 0};
    ck_assert_int_eq(context_create(&wrong, "cpu:test", NULL, &ctx), TRAMA_E_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(trama_error(), "config.max_in_flight is -3"));
    wrong.max_in_flight = 2 + rank;
    ck_assert_int_eq(context_create(&wrong, "cpu:test", NULL, &ctx), TRAMA_E_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(trama_error(), "different options"));
    start_quietly("cpu:test");
    stop();
}
END_TEST

START_TEST(a_wrong_variable_of_one_rank_is_every_ranks_error)
{
    static const char *const wrong[][2] = {{"STARPU_NCPU", "abc"}, {"STARPU_HOME", "/dev/null"}};
    int rank = getenv("OMPI_COMM_WORLD_RANK") ? atoi(getenv("OMPI_COMM_WORLD_RANK")) : 0;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char *before = getenv(wrong[i][0]) ? strdup(getenv(wrong[i][0])) : NULL;
        if (rank == 1)
            setenv(wrong[i][0], wrong[i][1], 1);
        ck_assert_int_ne(context_create(&quiet, "cpu:test", NULL, &ctx), TRAMA_OK);
        ck_assert_ptr_nonnull(strstr(trama_error(), wrong[i][0]));
        if (before)
            setenv(wrong[i][0], before, 1);
        else
            unsetenv(wrong[i][0]);
        free(before);
    }
    start_quietly("cpu:test");
    stop();
}
END_TEST

/* Open MPI yields in MPI_Test, where StarPU-MPI's thread holds the lock that each submission of a message needs: with
 * 32 ranks on 2 cores, the program threads hardly ever got it. Worker 0's idle hook yields instead, without the lock.
 */
START_TEST(mpi_does_not_yield_under_the_lock_of_messages)
{
    start_quietly("cpu:test");
    const bool *yields = dlsym(RTLD_DEFAULT, "opal_progress_yield_when_idle"); /* NULL: not Open MPI */
    ck_assert(!yields || !*yields);
    stop();
}
END_TEST

TESTS(it_starts_and_stops_as_often_as_one_likes, all_ranks_have_one_machine_table, ranks_of_one_machine_share_its_cores,
      the_calling_thread_stays_on_the_cores_of_its_rank, a_binding_that_the_program_makes_later_stays,
      gathering_and_agreeing, an_error_of_one_rank_is_every_ranks, a_wrong_variable_of_one_rank_is_every_ranks_error,
      mpi_does_not_yield_under_the_lock_of_messages)
