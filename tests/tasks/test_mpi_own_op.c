/* SPDX-License-Identifier: Apache-2.0 */
/* Ops of one's own over ranks: as plain loops, and kernels that fail on one rank only. */
#include "own_ops.h"

START_TEST(own_ops_give_what_plain_loops_give_over_ranks)
{
    start_with(&(trama_config){.check_calls = true, .verify = true});
    own_programs(false);
    own_programs(true);
    stop();
}
END_TEST

/* x is split over two processes; the second half is on the last rank of those that have one. */
static const char *spread(void)
{
    return n_ranks == 2 ? "2" : "4";
}

static void demand_told(const picky *f, trama_status status, int failed)
{
    char rank[400];
    snprintf(rank, sizeof rank, "%s%d: 13 is no number to work with", f->place, failed);
    demand(status == TRAMA_E_KERNEL && strstr(trama_error(), rank), "%s: \"%s\" does not say \"%s\"",
           trama_status_text(status), trama_error(), rank);
}

START_TEST(all_ranks_learn_of_a_failure_where_they_read_together)
{
    picky f;
    double y[N_PICKY], sum;
    trama_reading *reading = NULL;
    start();
    int last = n_ranks - 1;
    stop();
    for (int at = 0; at < N_PICKY; at += N_PICKY - 1) {
        int failed = at ? last : 0;
        picky_begin(&f, spread(), picky_cpu);
        for (int i = 0; i < 5; i++) /* runs go on, and nobody waits for a rank that has left */
            must(picky_run(&f, i == 2 ? at : -1));
        trama_status status = trama_wait(f.e);
        if (my_rank == failed)
            demand_told(&f, status, failed);
        else
            demand(!status, "rank %d: %s", my_rank, trama_error());
        demand(f.log.lines == (my_rank == failed), "rank %d logs %d lines: %s", my_rank, f.log.lines, f.log.last);
        must(trama_read_start(f.e, f.y, &reading));
        status = trama_read_wait(&reading, y, sizeof y);
        if (my_rank == failed)
            demand_told(&f, status, failed);
        else
            demand(!status && y[3] == 3, "rank %d: %s", my_rank, trama_error());
        demand_told(&f, trama_read(f.e, f.sum, &sum, sizeof sum), failed);
        demand_told(&f, picky_run(&f, -1), failed);
        demand_told(&f, trama_run(f.e, f.t), failed);
        demand_told(&f, trama_read(f.e, f.y, NULL, 0), failed);
        demand_told(&f, trama_read_start(f.e, f.y, &reading), failed);
        must(trama_executable_destroy(&f.e));
        demand(f.log.lines == (my_rank == failed), "rank %d logs %d lines: %s", my_rank, f.log.lines, f.log.last);
        picky_end(&f);
    }
}
END_TEST

START_TEST(all_ranks_learn_of_a_failure_where_they_destroy_the_executable)
{
    picky f;
    picky_begin(&f, spread(), picky_cpu);
    must(picky_run(&f, 0));
    demand_told(&f, trama_executable_destroy(&f.e), 0);
    demand(!f.e, "it is not destroyed");
    picky_end(&f);
}
END_TEST

TESTS(own_ops_give_what_plain_loops_give_over_ranks, all_ranks_learn_of_a_failure_where_they_read_together,
      all_ranks_learn_of_a_failure_where_they_destroy_the_executable)
