/* SPDX-License-Identifier: Apache-2.0 */
/* The steps that a rehearsal tells of, against its simulation and its report. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mlp.h"
#include "suite.h"
#include "trama_rehearsal.h"

static const char four_nodes[] = "kind n\n cores 2\n core f32 1Gflop/s\n core memory 1GB/s\n task 2us\n message 3us\n"
                                 "switch s\nnodes 4 n in s 1GB/s 2us\n";
static const int sizes[] = {7, 13, 11, 3};

enum { RANKS = 4, RUNS = 3, MOST = 1000 };

typedef struct told {
    bool sends, receives;
    int n_next, n_again, peer, place, worker;
    int64_t tag, bytes;
    double seconds, flops;
    char name[64];
    int *next; /* of both kinds */
} told;

typedef struct watch {
    int n[RANKS], seen;
    told steps[RANKS][MOST];
    double ready[RUNS][RANKS][MOST]; /* the end of the last step that it waits for */
} watch;

static void take_step(void *closure, const trama_rehearsed_step *s)
{
    watch *w = closure;
    ck_assert(s->rank >= 0 && s->rank < RANKS && s->step == w->n[s->rank] && s->step < MOST);
    told *t = &w->steps[s->rank][w->n[s->rank]++];
    *t = (told){.sends = s->sends,
                .receives = s->peer >= 0 && !s->sends,
                .n_next = s->n_next,
                .n_again = s->n_again,
                .peer = s->peer,
                .place = s->place,
                .worker = s->worker,
                .tag = s->tag,
                .bytes = s->bytes,
                .seconds = s->seconds,
                .flops = s->flops,
                .next = calloc((size_t)(s->n_next + s->n_again + 1), sizeof(int))};
    snprintf(t->name, sizeof t->name, "%s", s->name);
    for (int i = 0; i < s->n_next; i++) {
        ck_assert_int_gt(s->next[i], s->step);
        t->next[i] = s->next[i];
    }
    for (int i = 0; i < s->n_again; i++)
        t->next[s->n_next + i] = s->again[i];
}

static void end_step(watch *w, int rank, int step, int run, double at)
{
    const told *t = &w->steps[rank][step];
    for (int i = 0; i < t->n_next + t->n_again; i++) {
        const int in = run + (i >= t->n_next);
        if (in < RUNS)
            w->ready[in][rank][t->next[i]] = fmax(at, w->ready[in][rank][t->next[i]]);
    }
}

static void take_event(void *closure, const trama_rehearsed *e)
{
    watch *w = closure;
    const told *t = &w->steps[e->rank][e->step];
    ck_assert_double_ge(e->begin, w->ready[e->run][e->rank][e->step] - 1e-12);
    ck_assert(e->submitted >= 0 && e->submitted <= e->begin + 1e-12);
    end_step(w, e->rank, e->step, e->run, e->end);
    w->seen++;
    if (e->peer < 0) {
        ck_assert(t->peer < 0 && e->received < 0);
        ck_assert_str_eq(t->name, e->name);
        ck_assert(e->flops == t->flops && (t->worker < 0 || t->worker == e->worker));
        ck_assert_double_ge(e->end - e->begin, t->seconds - 1e-12);
        return;
    }
    const told *other = &w->steps[e->peer][e->received];
    ck_assert(t->sends && t->peer == e->peer && t->tag == e->tag && t->bytes == e->bytes);
    ck_assert(other->receives && other->peer == e->rank && other->tag == e->tag && other->bytes == e->bytes);
    ck_assert_double_eq_tol(t->seconds, 3e-6, 1e-12);
    end_step(w, e->peer, e->received, e->run, e->end);
}

static void free_steps(watch *w)
{
    for (int rank = 0; rank < RANKS; rank++)
        for (int i = 0; i < w->n[rank]; i++)
            free(w->steps[rank][i].next);
    free(w);
}

static trama_rehearsal_report rehearse(const trama_target *t, trama_rehearsal_options o, watch *w)
{
    trama_cluster *c = NULL;
    trama_rehearsal *r = NULL;
    trama_rehearsal_report f = {.size = sizeof f};
    o.size = sizeof o;
    o.any = 10;
    o.step = take_step;
    o.closure = w;
    ck_assert(!trama_cluster_create(four_nodes, &c));
    ck_assert_msg(!trama_rehearse(t, c, &o, &r), "%s", trama_error());
    ck_assert(!trama_rehearsal_read(r, &f));
    trama_rehearsal_destroy(&r);
    trama_cluster_destroy(&c);
    return f;
}

static void check_order(const char *mesh)
{
    mlp m = mlp_new(mesh, 3, sizes, "adamw");
    watch *w = calloc(1, sizeof *w);
    ck_assert_ptr_nonnull(w);
    const trama_rehearsal_report f = rehearse(m.train, (trama_rehearsal_options){.runs = RUNS, .event = take_event}, w);
    int steps = 0, edges = 0, again = 0, sends = 0;
    for (int rank = 0; rank < RANKS; rank++) {
        steps += w->n[rank];
        for (int i = 0; i < w->n[rank]; i++) {
            edges += w->steps[rank][i].n_next;
            again += w->steps[rank][i].n_again;
            sends += w->steps[rank][i].sends;
        }
    }
    ck_assert(steps == f.steps && sends == f.messages && edges > 0 && again > 0);
    ck_assert_int_eq(w->seen, RUNS * (f.steps - f.messages));
    free_steps(w);
    mlp_free(&m);
}

START_TEST(no_step_begins_before_those_that_it_waits_for_have_ended)
{
    check_order("dp=4");
    check_order("dp=2,mp=2");
    check_order("mp=4");
}
END_TEST

START_TEST(a_rank_that_is_planned_alone_tells_of_its_own_steps)
{
    mlp m = mlp_new("dp=4", 3, sizes, "sgd");
    watch *w = calloc(1, sizeof *w);
    ck_assert_ptr_nonnull(w);
    const trama_rehearsal_report f = rehearse(m.train, (trama_rehearsal_options){.plan_only = true, .rank = 2}, w);
    ck_assert(w->n[2] == f.steps && f.steps > 0 && !w->n[0] && !w->n[1] && !w->n[3]);
    for (int i = 0; i < w->n[2]; i++)
        ck_assert_int_eq(w->steps[2][i].n_again, 0);
    free_steps(w);
    mlp_free(&m);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {no_step_begins_before_those_that_it_waits_for_have_ended,
                                  a_rank_that_is_planned_alone_tells_of_its_own_steps};
    return suite_run("steps of rehearsals", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
