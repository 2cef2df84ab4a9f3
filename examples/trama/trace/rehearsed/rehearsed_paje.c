/* SPDX-License-Identifier: Apache-2.0 */
/* Paje's events: states of workers and of the thread for messages, links, and the counts of tasks that StarVZ draws.
 * Definitions, names of containers and columns are those of StarPU's tool, without the columns that paje_trim drops. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "must.h"
#include "rehearsed.h"
#include "trace_output.h"

/* ---- Definitions ---- */

static const char *const definitions[] = {
    "PajeDefineContainerType 1\n% Alias string\n% Type string\n% Name string",
    "PajeDefineEventType 2\n% Alias string\n% Type string\n% Name string\n% Color color",
    "PajeDefineStateType 3\n% Alias string\n% Type string\n% Name string",
    "PajeDefineVariableType 4\n% Alias string\n% Type string\n% Name string",
    "PajeDefineLinkType 5\n% Alias string\n% Type string\n% StartContainerType string\n% EndContainerType string\n"
    "% Name string",
    "PajeDefineEntityValue 6\n% Alias string\n% Type string\n% Name string\n% Color color",
    "PajeCreateContainer 7\n% Time date\n% Alias string\n% Type string\n% Container string\n% Name string",
    "PajeDestroyContainer 8\n% Time date\n% Name string\n% Type string",
    "PajeSetState 10\n% Time date\n% Container string\n% Type string\n% Value string",
    "PajeSetVariable 13\n% Time date\n% Container string\n% Type string\n% Value double",
    "PajeEndLink 19\n% Time date\n% Type string\n% Container string\n% Value string\n% EndContainer string\n% Key "
    "string",
    "PajeSetState 20\n% Time date\n% Container string\n% Type string\n% Value string\n% Size string\n% Params string\n"
    "% Footprint string\n% Tag string\n% JobId string\n% SubmitOrder string\n% GFlop string\n% X string\n% Y string\n"
    "% Iteration string\n% Subiteration string\n% NumaNodes string",
    "PajeStartLink 23\n% Time date\n% Type string\n% Container string\n% Value string\n% StartContainer string\n"
    "% Key string\n% Tag string\n% MPIType string\n% Priority string\n% Handle string",
};

static const char types[] = "1 MPIP 0 \"MPI Program\"\n"
                            "1 P MPIP \"Program\"\n"
                            "1 Mn P \"Memory Node\"\n"
                            "1 T Mn \"Thread\"\n"
                            "1 W T \"Worker\"\n"
                            "1 MPICt P \"MPI Communication Thread\"\n"
                            "1 Sc P \"Scheduler State\"\n"
                            "3 WS W \"Worker State\"\n"
                            "3 CtS MPICt \"Communication Thread State\"\n"
                            "4 nsubmitted Sc \"Number of Submitted Uncompleted Tasks\"\n"
                            "4 nready Sc \"Number of Ready Tasks\"\n"
                            "4 gf W \"GFlop/s\"\n"
                            "4 bwi_mpi MPICt \"Bandwidth In (MB/s)\"\n"
                            "4 bwo_mpi MPICt \"Bandwidth Out (MB/s)\"\n"
                            "5 MPIL MPIP MPICt MPICt \"MPI communication\"\n"
                            "6 I WS Idle \".9 .1 .0\"\n"
                            "6 P CtS Processing \"0 0 0\"\n"
                            "6 Sl CtS Sleeping \".9 .1 .0\"\n";

static void print_definitions(const rehearsed *r, FILE *out)
{
    for (size_t i = 0; i < sizeof definitions / sizeof *definitions; i++)
        fprintf(out, "%%EventDef %s\n%%EndEventDef\n", definitions[i]);
    fputs(types, out);
    bool *of_tasks = rehearsed_names_of(r, r->n_tasks, r->tasks);
    for (int i = 0; i < r->n_names; i++)
        if (of_tasks[i])
            fprintf(out, "6 \"%s\" WS \"%s\" \".0 .6 .5\"\n", r->names[i], r->names[i]);
    free(of_tasks);
}

/* ---- Containers ---- */

typedef struct paje_rank {
    int submitted, ready;      /* tasks, at a time */
    int flows;                 /* messages under way */
    double incoming, outgoing; /* MB/s */
} paje_rank;

static void print_containers(const rehearsed *r, FILE *out)
{
    fputs("7 0.0 MPIroot MPIP 0 root\n", out);
    for (int k = 0; k < r->n_ranks; k++) {
        fprintf(out, "7 0.0 %d_p P MPIroot %d_program\n7 0.0 %d_sched Sc %d_p %d_scheduler\n", k, k, k, k, k);
        fprintf(out, "7 0.0 %d_mpict MPICt %d_p %d_mpict\n10 0.0 %d_mpict CtS Sl\n", k, k, k, k);
        fprintf(out, "7 0.0 %d_mn0 Mn %d_p %d_MEMNODE0\n", k, k, k);
        for (int w = 0; w < r->ranks[k].n_workers; w++)
            fprintf(out, "7 0.0 %d_t%d T %d_mn0 %d_T%d\n7 0.0 %d_w%d W %d_t%d %d_%s%d\n10 0.0 %d_w%d WS I\n", k, w, k,
                    k, w, k, w, k, w, k, r->ranks[k].workers[w].gpu ? "CUDA" : "CPU", w, k, w);
    }
}

static void print_ends(const rehearsed *r, double last, FILE *out)
{
    for (int k = 0; k < r->n_ranks; k++) {
        for (int w = 0; w < r->ranks[k].n_workers; w++)
            fprintf(out, "8 %.9f %d_w%d W\n8 %.9f %d_t%d T\n", last, k, w, last, k, w);
        fprintf(out, "8 %.9f %d_mpict MPICt\n", last, k);
    }
}

/* ---- Events in the order of time ---- */

typedef enum change_kind { MESSAGE_ENDS, TASK_ENDS, SUBMITTED, READY, TASK_BEGINS, MESSAGE_BEGINS } change_kind;

typedef struct change {
    double time;
    change_kind kind;
    int item;
} change;

static int by_time(const void *first, const void *second)
{
    const change *a = first, *b = second;
    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    return a->kind != b->kind ? (int)a->kind - (int)b->kind : a->item - b->item;
}

static void set_count(FILE *out, double time, int rank, const char *name, int count)
{
    fprintf(out, "13 %.9f %d_sched %s %d\n", time, rank, name, count);
}

static void print_task(const rehearsed *r, paje_rank *of, const change *c, FILE *out)
{
    const rehearsed_item *t = &r->tasks[c->item];
    const double rate = t->end > t->begin ? t->gflop / ((t->end - t->begin) / 1e3) : 0;
    const char *name = r->names[t->name];
    switch (c->kind) {
    case SUBMITTED:
        set_count(out, c->time, t->rank, "nsubmitted", ++of->submitted);
        return;
    case READY:
        set_count(out, c->time, t->rank, "nready", ++of->ready);
        return;
    case TASK_BEGINS:
        set_count(out, c->time, t->rank, "nready", --of->ready);
        set_count(out, c->time, t->rank, "nsubmitted", --of->submitted);
        fprintf(out, "10 %.9f %d_w%d WS \"%s\"\n", c->time, t->rank, t->worker, name);
        fprintf(out, "20 %.9f %d_w%d WS \"%s\" 0 - 0 0 %d_%ld %d_%ld %.6f 0 0 %d -1 -\n", c->time, t->rank, t->worker,
                name, t->rank, rehearsed_job(r, t->rank, t->run, t->step), t->rank,
                rehearsed_order(r, t->rank, t->run, t->step), t->gflop, t->run);
        fprintf(out, "13 %.9f %d_w%d gf %.6f\n", c->time, t->rank, t->worker, rate);
        if (t->end > t->begin)
            return; /* the end of a task without length is none of the changes: it may not undo a later begin */
        __attribute__((fallthrough));
    default:
        fprintf(out, "10 %.9f %d_w%d WS I\n13 %.9f %d_w%d gf 0\n", c->time, t->rank, t->worker, c->time, t->rank,
                t->worker);
    }
}

/* A rank at one end of a message, which begins or ends: +1 or -1. */
static void change_end(paje_rank *of, int rank, const change *c, const char *way, double *rate, double by, FILE *out)
{
    const int flows = of->flows, sign = c->kind == MESSAGE_BEGINS ? 1 : -1;
    of->flows += sign;
    *rate = of->flows ? fmax(0, *rate + sign * by) : 0;
    if (!flows || !of->flows)
        fprintf(out, "10 %.9f %d_mpict CtS %s\n", c->time, rank, of->flows ? "P" : "Sl");
    fprintf(out, "13 %.9f %d_mpict %s %.6f\n", c->time, rank, way, *rate);
}

/* One without length moves nothing: its receiver reads the sender's memory. */
static void print_message(const rehearsed *r, paje_rank *ranks, const change *c, FILE *out)
{
    const rehearsed_item *m = &r->messages[c->item];
    const bool takes_time = m->end > m->begin;
    const double rate = takes_time ? (double)m->bytes / 1e6 / ((m->end - m->begin) / 1e3) : 0;
    paje_rank *from = &ranks[m->rank], *to = &ranks[m->peer];
    if (takes_time) {
        change_end(from, m->rank, c, "bwo_mpi", &from->outgoing, rate, out);
        change_end(to, m->peer, c, "bwi_mpi", &to->incoming, rate, out);
    }
    if (c->kind == MESSAGE_BEGINS)
        fprintf(out, "23 %.9f MPIL MPIroot %lld %d_mpict mpicom_%d %lld PointToPoint %d %x\n", c->time,
                (long long)m->bytes, m->rank, c->item, (long long)m->tag, m->priority, 1U + (unsigned)m->name);
    if (c->kind == MESSAGE_ENDS || !takes_time)
        fprintf(out, "19 %.9f MPIL MPIroot %lld %d_mpict mpicom_%d\n", c->time, (long long)m->bytes, m->peer, c->item);
}

static change *list_changes(const rehearsed *r, int *n)
{
    change *list = must_allocate(4 * r->n_tasks + 2 * r->n_messages, sizeof *list);
    *n = 0;
    for (int i = 0; i < r->n_tasks; i++) {
        const rehearsed_item *t = &r->tasks[i];
        if (t->worker < 0)
            continue;
        list[(*n)++] = (change){t->submitted, SUBMITTED, i};
        list[(*n)++] = (change){t->ready, READY, i};
        list[(*n)++] = (change){t->begin, TASK_BEGINS, i};
        if (t->end > t->begin)
            list[(*n)++] = (change){t->end, TASK_ENDS, i};
    }
    for (int i = 0; i < r->n_messages; i++) {
        const rehearsed_item *m = &r->messages[i];
        list[(*n)++] = (change){m->begin, MESSAGE_BEGINS, i};
        if (m->end > m->begin)
            list[(*n)++] = (change){m->end, MESSAGE_ENDS, i};
    }
    if (*n)
        qsort(list, (size_t)*n, sizeof *list, by_time);
    return list;
}

void rehearsed_write_paje(const rehearsed *r, const char *folder)
{
    FILE *out = trace_output_open(folder, "paje.trace");
    paje_rank *ranks = must_allocate(r->n_ranks, sizeof *ranks);
    int n;
    change *list = list_changes(r, &n);
    print_definitions(r, out);
    print_containers(r, out);
    for (int i = 0; i < n; i++)
        if (list[i].kind == MESSAGE_BEGINS || list[i].kind == MESSAGE_ENDS)
            print_message(r, ranks, &list[i], out);
        else
            print_task(r, &ranks[r->tasks[list[i].item].rank], &list[i], out);
    print_ends(r, n ? list[n - 1].time : 0, out);
    trace_output_close(out, folder, "paje.trace");
    free(list);
    free(ranks);
}
