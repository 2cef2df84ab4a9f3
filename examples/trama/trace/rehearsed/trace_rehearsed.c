/* SPDX-License-Identifier: Apache-2.0 */
/* Gathers a rehearsal, and has it written as StarPU's tool writes a run, so that the rest of trama trace reads it. */
#define _GNU_SOURCE /* tdestroy */
#include "trace_rehearsed.h"

#include <errno.h>
#include <math.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "must.h"
#include "rehearsed.h"
#include "trace_build.h"
#include "trace_output.h"
#include "trace_read.h"
#include "trace_show.h"

enum { MOST_EVENTS = 4000000 };

rehearsed *rehearsed_new(int ranks, int runs)
{
    rehearsed *r = must_allocate(1, sizeof *r);
    r->n_ranks = ranks;
    r->runs = runs > 0 ? runs : 1;
    r->ranks = must_allocate(ranks, sizeof *r->ranks);
    return r;
}

void rehearsed_free(rehearsed *r)
{
    for (int i = 0; r && i < r->n_ranks; i++) {
        free(r->ranks[i].steps);
        free(r->ranks[i].edges);
        free(r->ranks[i].first);
        free(r->ranks[i].needs);
        free(r->ranks[i].workers);
    }
    if (r) {
        tdestroy(r->name_tree, free);
        for (int i = 0; i < r->n_names; i++)
            free(r->names[i]);
        void *owned[] = {r->ranks, r->tasks, r->messages, r->names};
        for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
            free(owned[i]);
    }
    free(r);
}

/* ---- Steps ---- */

static void add_edge(rehearsed_rank *of, int from, int to, bool before)
{
    of->edges = trace_grow(of->edges, of->n_edges, sizeof *of->edges);
    of->edges[of->n_edges++] = (rehearsed_edge){to, {from, before}};
}

void rehearsed_take_step(rehearsed *r, const trama_rehearsed_step *s)
{
    rehearsed_rank *of = &r->ranks[s->rank];
    r->expected += s->peer < 0 || s->sends ? r->runs : 0;
    if (r->expected > MOST_EVENTS)
        fail("--trace: the rehearsal has more than %d tasks and messages: take fewer ranks, steps or layers",
             MOST_EVENTS);
    of->steps = trace_grow(of->steps, of->n_steps, sizeof *of->steps);
    of->steps[of->n_steps++] = (rehearsed_step){(short)s->place, s->sends, s->gpu};
    for (int i = 0; i < s->n_next; i++)
        add_edge(of, s->step, s->next[i], false);
    for (int i = 0; i < s->n_again; i++)
        add_edge(of, s->step, s->again[i], true);
}

/* Sorts the edges by the steps that wait. */
static void find_needs(rehearsed_rank *of)
{
    of->first = must_allocate(of->n_steps + 2, sizeof *of->first);
    of->needs = must_allocate(of->n_edges, sizeof *of->needs);
    int *at = of->first + 1;
    for (int i = 0; i < of->n_edges; i++)
        at[of->edges[i].to + 1]++;
    for (int i = 0; i < of->n_steps; i++)
        at[i + 1] += at[i];
    for (int i = 0; i < of->n_edges; i++)
        of->needs[at[of->edges[i].to]++] = of->edges[i].need;
    free(of->edges);
    of->edges = NULL;
}

/* ---- Tasks and messages ---- */

typedef struct numbered_name {
    char *name;
    int number;
} numbered_name;

static int by_name(const void *first, const void *second)
{
    return strcmp(((const numbered_name *)first)->name, ((const numbered_name *)second)->name);
}

static int name_number(rehearsed *r, const char *name)
{
    const numbered_name wanted = {(char *)name, 0};
    numbered_name **found = tfind(&wanted, &r->name_tree, by_name);
    if (found)
        return (*found)->number;
    numbered_name *new = must_allocate(1, sizeof *new);
    *new = (numbered_name){trace_text("%s", name), r->n_names};
    if (!tsearch(new, &r->name_tree, by_name))
        fail("no memory for %d names", r->n_names + 1);
    r->names = trace_grow(r->names, r->n_names, sizeof *r->names);
    r->names[r->n_names] = new->name;
    return r->n_names++;
}

bool *rehearsed_names_of(const rehearsed *r, int n, const rehearsed_item *items)
{
    bool *have = must_allocate(r->n_names + 1, sizeof *have);
    for (int i = 0; i < n; i++)
        have[items[i].name] = true;
    return have;
}

static void note_worker(rehearsed_rank *of, int worker, const rehearsed_step *task)
{
    while (of->n_workers <= worker) {
        of->workers = trace_grow(of->workers, of->n_workers, sizeof *of->workers);
        of->workers[of->n_workers++] = (rehearsed_worker){-1, false};
    }
    of->workers[worker] = (rehearsed_worker){task->place, task->gpu};
}

void rehearsed_take_event(rehearsed *r, const trama_rehearsed *e)
{
    const bool task = e->peer < 0;
    if (e->worker >= 0)
        note_worker(&r->ranks[e->rank], e->worker, &r->ranks[e->rank].steps[e->step]);
    rehearsed_item **list = task ? &r->tasks : &r->messages;
    int *n = task ? &r->n_tasks : &r->n_messages;
    *list = trace_grow(*list, *n, sizeof **list);
    (*list)[(*n)++] = (rehearsed_item){.rank = e->rank,
                                       .worker = e->worker,
                                       .peer = e->peer,
                                       .run = e->run,
                                       .step = e->step,
                                       .received = e->received,
                                       .priority = e->priority,
                                       .name = name_number(r, e->name),
                                       .submitted = 1e3 * e->submitted,
                                       .begin = 1e3 * e->begin,
                                       .end = 1e3 * e->end,
                                       .gflop = e->flops / 1e9,
                                       .bytes = e->bytes,
                                       .tag = e->tag};
}

/* ---- When tasks were ready ---- */

/* [ranks][order] ends in ms; of both ends of a message that of its last byte. */
static double **find_ends(const rehearsed *r)
{
    double **ends = must_allocate(r->n_ranks, sizeof *ends);
    for (int k = 0; k < r->n_ranks; k++)
        ends[k] = must_allocate(r->runs * r->ranks[k].n_steps + 1, sizeof **ends);
    for (int i = 0; i < r->n_tasks; i++) {
        const rehearsed_item *t = &r->tasks[i];
        ends[t->rank][rehearsed_order(r, t->rank, t->run, t->step)] = t->end;
    }
    for (int i = 0; i < r->n_messages; i++) {
        const rehearsed_item *m = &r->messages[i];
        ends[m->rank][rehearsed_order(r, m->rank, m->run, m->step)] = m->end;
        ends[m->peer][rehearsed_order(r, m->peer, m->run, m->received)] = m->end;
    }
    return ends;
}

static void find_ready(rehearsed *r)
{
    double **ends = find_ends(r);
    for (int i = 0; i < r->n_tasks; i++) {
        rehearsed_item *t = &r->tasks[i];
        const rehearsed_rank *of = &r->ranks[t->rank];
        t->ready = t->submitted;
        for (int k = of->first[t->step]; k < of->first[t->step + 1]; k++) {
            const int in = t->run - of->needs[k].before;
            if (in >= 0)
                t->ready = fmax(t->ready, ends[t->rank][rehearsed_order(r, t->rank, in, of->needs[k].step)]);
        }
        t->ready = fmin(t->ready, t->begin);
    }
    for (int k = 0; k < r->n_ranks; k++)
        free(ends[k]);
    free(ends);
}

/* ---- Showing it ---- */

typedef struct showing {
    rehearsed *r;
    trace_request how;
} showing;

static int show(const char *scratch, void *closure)
{
    const showing *s = closure;
    trace t = {.program = trace_text("trama rehearse"), .n_ranks = s->r->n_ranks, .n_read = s->r->n_ranks};
    rehearsed_write_records(s->r, scratch);
    rehearsed_write_paje(s->r, scratch);
    for (int k = 0; k < s->r->n_ranks; k++)
        for (int w = 0; w < s->r->ranks[k].n_workers; w++)
            if (s->r->ranks[k].workers[w].place >= 0)
                trace_add_worker(&t, k, w, s->r->ranks[k].workers[w].place);
    trace_read(scratch, -1, &t);
    trace_show(&t, &s->how, scratch);
    trace_destroy(&t);
    return EXIT_SUCCESS;
}

void rehearsed_show(rehearsed *r, const char *folder, bool no_starvz)
{
    if (!r->n_tasks)
        fail("--trace: there is nothing to show, since no task was simulated");
    while (!r->ranks[r->n_ranks - 1].n_steps)
        r->n_ranks--; /* several processes may share a rank */
    for (int k = 0; k < r->n_ranks; k++)
        find_needs(&r->ranks[k]);
    find_ready(r);
    if (mkdir(folder, 0777) && errno != EEXIST)
        fail("%s: the folder cannot be made: %s", folder, strerror(errno));
    showing s = {r, {.out = folder, .longest = 10, .no_starvz = no_starvz, .picture = {-1, -1}}};
    if (trace_output_work(folder, show, &s))
        exit(EXIT_FAILURE);
}
