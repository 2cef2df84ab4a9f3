/* SPDX-License-Identifier: Apache-2.0 */
/* What waited for what. A message ends in a job of StarPU's own, on which the tasks depend that use the data; it begins
 * after one that depends on the task that made them. Such jobs are followed until tasks and messages are left. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "must.h"
#include "records.h"
#include "trace_build.h"
#include "trace_read.h"

typedef struct walk {
    trace *t;
    trace_jobs *jobs;
    int *seen, stamp;  /* by job: the walk that came by last */
    int n_open, *open; /* jobs still to look at */
} walk;

static trace_job *find_job(const trace_jobs *jobs, int rank, long number)
{
    for (int low = 0, high = jobs->n; low < high;) {
        int middle = low + (high - low) / 2;
        trace_job *j = &jobs->jobs[middle];
        if (j->rank == rank && j->number == number)
            return j;
        if (j->rank < rank || (j->rank == rank && j->number < number))
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* "1_42"; NULL where it is none of the trace. */
static trace_job *job_of(const trace_jobs *jobs, const char *text)
{
    int rank;
    long number;
    return text && sscanf(text, "%d_%ld", &rank, &number) == 2 ? find_job(jobs, rank, number) : NULL;
}

static void append(int **list, int *n, int value)
{
    *list = trace_grow(*list, *n, sizeof **list);
    (*list)[(*n)++] = value;
}

/* ---- Walking back ---- */

/* The jobs that j waited for, if they have not been met in this walk. */
static void open_needs(walk *w, const trace_job *j)
{
    for (int i = 0; i < j->n_needs; i++) {
        const trace_job *need = find_job(w->jobs, j->rank, j->needs[i]);
        if (!need || w->seen[need - w->jobs->jobs] == w->stamp)
            continue;
        w->seen[need - w->jobs->jobs] = w->stamp;
        w->open = trace_grow(w->open, w->n_open, sizeof *w->open);
        w->open[w->n_open++] = (int)(need - w->jobs->jobs);
    }
}

/* Whether the list has it, which is short. */
static bool has(const int *list, int n, int value)
{
    for (int i = 0; i < n; i++)
        if (list[i] == value)
            return true;
    return false;
}

/* A message that j, StarPU's own, waited for until it had left. */
static int sent_before(const walk *w, const trace_job *j)
{
    for (int i = 0; i < j->n_needs; i++) {
        const trace_job *need = find_job(w->jobs, j->rank, j->needs[i]);
        if (need && need->sent >= 0)
            return need->sent;
    }
    return -1;
}

/* Fills needs, messages and sends of a task as of the job. */
static void walk_back(walk *w, const trace_job *from, trace_task *task)
{
    w->stamp++;
    w->n_open = 0;
    for (open_needs(w, from); w->n_open > 0;) {
        const trace_job *j = &w->jobs->jobs[w->open[--w->n_open]];
        int sent = j->task < 0 ? sent_before(w, j) : -1;
        if (sent >= 0) {
            if (!has(task->sends, task->n_sends, sent))
                append(&task->sends, &task->n_sends, sent);
            if (!isnan(j->submitted))
                w->t->messages[sent].left = j->submitted; /* it was, once the message had left */
        }
        if (j->task >= 0)
            append(&task->needs, &task->n_needs, j->task);
        else if (j->received >= 0 && !has(task->messages, task->n_messages, j->received))
            append(&task->messages, &task->n_messages, j->received);
        else if (j->received < 0)
            open_needs(w, j);
    }
}

/* The task that made what is sent after a job: the last of them, should there be several. */
static int maker_of(walk *w, const trace_job *from)
{
    trace_task all = {.n_needs = 0};
    int last = -1;
    walk_back(w, from, &all);
    for (int i = 0; i < all.n_needs; i++)
        if (last < 0 || w->t->tasks[all.needs[i]].ended > w->t->tasks[last].ended)
            last = all.needs[i];
    free(all.needs);
    free(all.messages);
    free(all.sends);
    return last;
}

/* ---- What the messages carry ---- */

typedef struct handle {
    int rank;
    unsigned long address;
    char *name;
} handle;

typedef struct handles {
    int n;
    handle *list;
} handles;

static int by_address(const void *first, const void *second)
{
    const handle *a = first, *b = second;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return (a->address > b->address) - (a->address < b->address);
}

static handles read_handles(const char *folder)
{
    char *path = trace_text("%s/data.rec", folder);
    handles h = {.n = 0};
    records *r = records_open(path);
    while (r && records_next(r)) {
        const char *address = records_text(r, "Handle"), *name = records_text(r, "Name");
        if (!address || !name || !*name)
            continue;
        h.list = trace_grow(h.list, h.n, sizeof *h.list);
        h.list[h.n++] = (handle){.rank = (int)records_integer(r, "MPIRank", 0),
                                 .address = strtoul(address, NULL, 16),
                                 .name = trace_text("%s", name)};
    }
    records_close(&r);
    free(path);
    if (h.n)
        qsort(h.list, (size_t)h.n, sizeof *h.list, by_address);
    return h;
}

static const char *handle_name(const handles *h, int rank, const char *address)
{
    const handle wanted = {.rank = rank, .address = address ? strtoul(address, NULL, 16) : 0};
    const handle *found = h->n ? bsearch(&wanted, h->list, (size_t)h->n, sizeof wanted, by_address) : NULL;
    return found ? found->name : "";
}

/* ---- Messages ---- */

/* Where the jobs of a message are, until the messages are in order. */
typedef struct ends {
    trace_message message;
    trace_job *sent, *received;
} ends;

static int by_sent(const void *first, const void *second)
{
    const ends *a = first, *b = second;
    if (a->message.sent != b->message.sent)
        return a->message.sent < b->message.sent ? -1 : 1;
    return (a->message.from > b->message.from) - (a->message.from < b->message.from);
}

static ends message_of(const records *r, const trace_jobs *jobs, const handles *names)
{
    trace_message m = {.from = (int)records_integer(r, "Src", -1),
                       .to = (int)records_integer(r, "Dst", -1),
                       .sent = records_number(r, "SendTime", NAN),
                       .arrived = records_number(r, "RecvTime", NAN),
                       .left = NAN,
                       .bytes = records_integer(r, "Size", 0),
                       .made_by = -1};
    const char *name = handle_name(names, m.from, records_text(r, "SendHandle"));
    m.text = (char *)(*name ? name : handle_name(names, m.to, records_text(r, "RecvHandle")));
    return (ends){.message = m,
                  .sent = job_of(jobs, records_text(r, "SendJobId")),
                  .received = job_of(jobs, records_text(r, "RecvJobId"))};
}

/* Those of a rank with itself are Trama's own. The jobs know theirs afterwards. */
static void read_messages(const char *folder, trace_jobs *jobs, trace *t)
{
    char *path = trace_text("%s/comms.rec", folder);
    handles names = read_handles(folder);
    records *r = records_open(path);
    ends *list = NULL;
    int n = 0, early = 0;
    double most = 0;
    while (r && records_next(r)) {
        ends e = message_of(r, jobs, &names);
        trace_message *m = &e.message;
        if (m->from == m->to || m->from < 0 || m->from >= t->n_ranks || m->to < 0 || m->to >= t->n_ranks ||
            isnan(m->sent) || isnan(m->arrived))
            continue;
        early += m->arrived < m->sent;
        most = fmax(most, m->sent - m->arrived);
        m->arrived = fmax(m->arrived, m->sent);
        m->text = trace_text("%s", m->text);
        list = trace_grow(list, n, sizeof *list);
        list[n++] = e;
    }
    if (n)
        qsort(list, (size_t)n, sizeof *list, by_sent);
    t->messages = must_allocate(n, sizeof *t->messages);
    t->n_messages = n;
    for (int i = 0; i < n; i++) {
        t->messages[i] = list[i].message;
        if (list[i].sent)
            list[i].sent->sent = i;
        if (list[i].received)
            list[i].received->received = i;
    }
    if (early)
        trace_note(t,
                   "%d of %d messages arrived up to %.3f ms before they were sent: so far the ranks' clocks are apart",
                   early, n, most);
    records_close(&r);
    for (int i = 0; i < names.n; i++)
        free(names.list[i].name);
    free(names.list);
    free(list);
    free(path);
}

void trace_link(const char *folder, trace_jobs *jobs, trace *t)
{
    read_messages(folder, jobs, t);
    walk w = {.t = t, .jobs = jobs, .seen = must_allocate(jobs->n, sizeof *w.seen)};
    for (int i = 0; i < jobs->n; i++) {
        const trace_job *j = &jobs->jobs[i];
        if (j->task >= 0)
            walk_back(&w, j, &t->tasks[j->task]);
        if (j->sent >= 0)
            t->messages[j->sent].made_by = maker_of(&w, j);
    }
    free(w.seen);
    free(w.open);
}
