/* SPDX-License-Identifier: Apache-2.0 */
/* The records that StarPU's tool makes of a run. */
#include <stdio.h>
#include <stdlib.h>

#include "rehearsed.h"
#include "trace_output.h"

/* Prints what a job depends on, by a function for each number; those of runs before the first are left out. */
static void each_need(const rehearsed *r, int rank, int run, int step,
                      void (*print)(FILE *out, int rank, long job, long need), FILE *out)
{
    const rehearsed_rank *of = &r->ranks[rank];
    for (int i = of->first[step]; i < of->first[step + 1]; i++) {
        const rehearsed_need *need = &of->needs[i];
        const int in = run - need->before;
        if (in >= 0) /* a step waits for a send until its data have left */
            print(out, rank, rehearsed_job(r, rank, run, step),
                  rehearsed_job(r, rank, in, need->step) + of->steps[need->step].sends);
    }
}

/* ---- Tasks and jobs ---- */

static void print_need(FILE *out, int rank, long job, long need)
{
    (void)job;
    fprintf(out, " %d_%ld", rank, need);
}

static void print_job(const rehearsed *r, int rank, int run, int step, FILE *out)
{
    fprintf(out, "JobId: %d_%ld\nDependsOn:", rank, rehearsed_job(r, rank, run, step));
    each_need(r, rank, run, step, print_need, out);
    fprintf(out, "\nTag: 0\nFootprint: 0\nMPIRank: %d\n", rank);
}

static void write_tasks(const rehearsed *r, FILE *out)
{
    for (int i = 0; i < r->n_tasks; i++) {
        const rehearsed_item *t = &r->tasks[i];
        fprintf(out, "Name: %s\nModel: trama\n", r->names[t->name]);
        print_job(r, t->rank, t->run, t->step, out);
        fprintf(out, "SubmitOrder: %ld\nPriority: %d\nSubmitTime: %.6f\n", rehearsed_order(r, t->rank, t->run, t->step),
                t->priority, t->submitted);
        if (t->worker >= 0)
            fprintf(out, "WorkerId: %d\nMemoryNode: 0\nStartTime: %.6f\nEndTime: %.6f\nGFlop: %.9f\n", t->worker,
                    t->begin, t->end, t->gflop);
        fprintf(out, "Iteration: %d -1\n\n", t->run);
    }
    for (int i = 0; i < r->n_messages; i++) {
        const rehearsed_item *m = &r->messages[i];
        const long sent = rehearsed_job(r, m->rank, m->run, m->step);
        print_job(r, m->rank, m->run, m->step, out);
        fprintf(out, "\nJobId: %d_%ld\nDependsOn: %d_%ld\nSubmitTime: %.6f\nTag: 0\nFootprint: 0\nMPIRank: %d\n\n",
                m->rank, sent + 1, m->rank, sent, m->end, m->rank);
        print_job(r, m->peer, m->run, m->received, out);
        putc('\n', out);
    }
}

/* ---- Messages ---- */

static void write_messages(const rehearsed *r, FILE *out)
{
    for (int i = 0; i < r->n_messages; i++) {
        const rehearsed_item *m = &r->messages[i];
        fprintf(out,
                "Src: %d\nDst: %d\nTag: %lld\nSendTime: %.9f\nRecvTime: %.9f\nSendHandle: %x\nRecvHandle: %x\n"
                "SendJobId: %d_%ld\nRecvJobId: %d_%ld\nSize: %lld\nPriority: %d\nType: PointToPoint\n\n",
                m->rank, m->peer, (long long)m->tag, m->begin, m->end, 1U + (unsigned)m->name, 1U + (unsigned)m->name,
                m->rank, rehearsed_job(r, m->rank, m->run, m->step), m->peer,
                rehearsed_job(r, m->peer, m->run, m->received), (long long)m->bytes, m->priority);
    }
}

/* A name may have any characters: those that would end the line become blanks. */
static void print_line(const char *name, FILE *out)
{
    for (; *name; name++)
        putc((unsigned char)*name < ' ' ? ' ' : *name, out);
}

/* A handle is 1 more than the number of the value's name, on all ranks. */
static void write_handles(const rehearsed *r, FILE *out)
{
    bool *sent = rehearsed_names_of(r, r->n_messages, r->messages);
    for (int rank = 0; rank < r->n_ranks; rank++)
        for (int i = 0; i < r->n_names; i++)
            if (sent[i]) {
                fprintf(out, "Handle: %x\nHomeNode: 0\nMPIRank: %d\nName: ", 1U + (unsigned)i, rank);
                print_line(r->names[i], out);
                fprintf(out, "\nSize: 0\nMPIOwner: %d\n\n", rank);
            }
    free(sent);
}

/* ---- The graph ---- */

static void print_edge(FILE *out, int rank, long job, long need)
{
    fprintf(out, "\t \"task_%d_%ld\"->\"task_%d_%ld\"\n", rank, need, rank, job);
}

static void write_graph(const rehearsed *r, FILE *out)
{
    fputs("digraph G {\n\tcolor=white\n\trankdir=LR;\n", out);
    for (int i = 0; i < r->n_tasks; i++) {
        const rehearsed_item *t = &r->tasks[i];
        fprintf(out, "\t \"task_%d_%ld\" [ style=filled, label=\"%s\", fillcolor=\"gray\" ]\n", t->rank,
                rehearsed_job(r, t->rank, t->run, t->step), r->names[t->name]);
        each_need(r, t->rank, t->run, t->step, print_edge, out);
    }
    for (int i = 0; i < r->n_messages; i++) {
        const rehearsed_item *m = &r->messages[i];
        const long sent = rehearsed_job(r, m->rank, m->run, m->step);
        each_need(r, m->rank, m->run, m->step, print_edge, out);
        print_edge(out, m->rank, sent + 1, sent);
        each_need(r, m->peer, m->run, m->received, print_edge, out);
        fprintf(out, "\t \"task_%d_%ld\"->\"task_%d_%ld\"\n", m->rank, sent, m->peer,
                rehearsed_job(r, m->peer, m->run, m->received));
    }
    fputs("}\n", out);
}

void rehearsed_write_records(const rehearsed *r, const char *folder)
{
    static const struct {
        const char *name;
        void (*write)(const rehearsed *r, FILE *out);
    } files[] = {{"tasks.rec", write_tasks},
                 {"comms.rec", write_messages},
                 {"data.rec", write_handles},
                 {"dag.dot", write_graph}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        FILE *out = trace_output_open(folder, files[i].name);
        files[i].write(r, out);
        trace_output_close(out, folder, files[i].name);
    }
}
