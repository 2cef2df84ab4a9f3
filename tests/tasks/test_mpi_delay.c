/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that take longer cost little where there is something else to do: each request of MPI that completes is
 * held back by 1 ms (support/delay.h), and what work grows by is compared with the sum of these delays.
 * On a machine that others use times are noisy, so runs with and without delays take turns, medians count, and a
 * measure that fails is repeated. */
#include "context.h"
#include "delay.h"
#include "micro_batches.h"
#include "network.h"

enum { DELAY = 1000 /* us */, ROUNDS = 7, ATTEMPTS = 8 };

typedef struct work {
    trama_executable *e;
    const trama_target *target;
    int runs; /* of the target, in a turn */
} work;

typedef struct growth {
    double seconds; /* of a run, without delays */
    double more;    /* seconds of a run, with delays */
    double delays;  /* their sum, of a run on this rank */
    double envelopes, data;
} growth;

static int compare_numbers(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, compare_numbers);
    return x[n / 2];
}

static double most_of_all_ranks(double mine)
{
    double *all = malloc((size_t)n_ranks * sizeof *all), most = mine;
    must(context_gather(ctx, "most_of_all_ranks", &mine, sizeof mine, all));
    for (int r = 0; r < n_ranks; r++)
        most = fmax(most, all[r]);
    free(all);
    return most;
}

/* Seconds of a run, of the slowest rank; what this rank waited for is added up. */
static double turn(const work *w, int64_t delay_us, delay_counts *requests)
{
    most_of_all_ranks(0); /* begin together */
    delay_set(delay_us);
    delay_counts before = delay_count();
    double begin = seconds();
    for (int i = 0; i < w->runs; i++)
        must(trama_run(w->e, w->target));
    must(trama_wait(w->e));
    double taken = seconds() - begin;
    delay_counts after = delay_count();
    requests->envelopes += after.envelopes - before.envelopes;
    requests->data += after.data - before.data;
    delay_set(0);
    return most_of_all_ranks(taken) / w->runs;
}

static growth measure(const work *w)
{
    double plain[ROUNDS], more[ROUNDS], taken[2], runs = ROUNDS * w->runs;
    delay_counts requests[2] = {{0}}, ignored = {0};
    turn(w, 0, &ignored); /* warm up */
    for (int i = 0; i < ROUNDS; i++) {
        for (int k = 0; k < 2; k++) {
            int delayed = (i + k) % 2;
            taken[delayed] = turn(w, delayed ? DELAY : 0, &requests[delayed]);
        }
        plain[i] = taken[0];
        more[i] = taken[1] - taken[0];
    }
    growth g = {.envelopes = (double)requests[1].envelopes / runs, .data = (double)requests[1].data / runs};
    g.seconds = median(plain, ROUNDS);
    g.more = median(more, ROUNDS);
    g.delays = 1e-6 * DELAY * (g.envelopes + g.data);
    return g;
}

static void tell(const char *what, const growth *g)
{
    printf("%s, rank %d: %.2f ms a run; %.1f envelopes and %.1f messages a run, each held back by %g ms: +%.2f ms, "
           "%.1f%% of %.1f ms\n",
           what, my_rank, 1e3 * g->seconds, g->envelopes, g->data, 1e-3 * DELAY, 1e3 * g->more,
           100 * g->more / g->delays, 1e3 * g->delays);
    fflush(stdout);
}

/* Whether what a run grows by, beside the sum of its delays, lies between these; the same answer on all ranks. */
static bool grows(const char *what, const work *w, double from, double to)
{
    growth g = measure(w);
    demand(g.envelopes > 0 && g.data > 0, "%s: no request passes through delay.c", what);
    tell(what, &g);
    bool wrong = g.more < from * g.delays || g.more > to * g.delays;
    return most_of_all_ranks(wrong) == 0;
}

static void demand_growth(const char *what, const work *w, double from, double to)
{
    for (int i = 0; i < ATTEMPTS; i++)
        if (grows(what, w, from, to))
            return;
    demand(false, "%s: in none of %d measures a run grows by %g to %g of the sum of its delays", what, ATTEMPTS, from,
           to);
}

static void demand_growth_of_micro_batches(const char *what, micro_batches *m, int runs, double from, double to)
{
    start();
    micro_batches_make(m, "mp=2");
    work w = {.e = compile(m->program), .target = m->forward, .runs = runs};
    demand_growth(what, &w, from, to);
    must(trama_executable_destroy(&w.e));
    micro_batches_free(m);
    stop();
}

/* Each block waits for an envelope and then for its message: two of the three requests of a rank. */
START_TEST(a_lone_chain_waits_for_its_delayed_messages)
{
    micro_batches m = {.n = 1, .blocks = 16, .batch = 8, .width = 32};
    demand_growth_of_micro_batches("lone chain", &m, 1, 0.5, 1.5);
}
END_TEST

START_TEST(a_chain_of_blocks_with_other_micro_batches_hides_delays)
{
    micro_batches m = {.n = 6, .blocks = 3, .batch = 128, .width = 1024};
    demand_growth_of_micro_batches("micro-batches", &m, 4, -INFINITY, 0.2);
}
END_TEST

START_TEST(a_data_parallel_step_hides_delays)
{
    static const int sizes[] = {784, 1024, 1024, 1024, 10};
    start();
    for (int adamw = 0; adamw < 2; adamw++) {
        network net = network_new("dp=2", TRAMA_F32, adamw, 4, sizes);
        samples s = samples_new(&net, 512, 0);
        net.e = compile(net.program);
        network_feed(&net, &s);
        demand_growth(adamw ? "adamw" : "sgd", &(work){.e = net.e, .target = net.train, .runs = 6}, -INFINITY, 0.2);
        samples_free(&s);
        network_free(&net);
    }
    stop();
}
END_TEST

int main(void)
{
    const TTest *tests[] = {a_lone_chain_waits_for_its_delayed_messages,
                            a_chain_of_blocks_with_other_micro_batches_hides_delays, a_data_parallel_step_hides_delays};
    if (!TRAMA_HAVE_MPI || SANITIZED) {
        fprintf(stderr, "skipped: times say nothing under a sanitizer, and there are no messages without MPI\n");
        return 77;
    }
    return run_tests(__FILE__, tests, (int)(sizeof tests / sizeof *tests));
}
