/* SPDX-License-Identifier: Apache-2.0 */
/* The waits of a trace. A message ends in a job of StarPU's own, on which the tasks depend that use the data; it begins
 * after one that depends on the task that made them. Such jobs are followed until tasks and messages are left; of the
 * needs that meet in one of them, which may be thousands, the few go on that any figure or picture can need. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "must.h"
#include "records.h"
#include "trace_build.h"
#include "trace_read.h"

/* The needs that matter: those that were over last, latest first, and those that end the longest chain of tasks,
 * without and with the time of messages. -1: none. */
enum { LATEST = 4 };

typedef struct few {
    int latest[LATEST], longest[N_CHAINS];
} few;

typedef enum need_kind { NEED_TASK, NEED_MESSAGE, NEED_SEND, N_NEEDS } need_kind;

typedef enum job_state { UNSEEN, OPEN, DONE } job_state;

typedef struct walk {
    trace *t;
    trace_jobs *jobs;
    job_state *state;      /* [jobs] */
    few (*needs)[N_NEEDS]; /* [jobs] */
    int *sender;           /* [messages] the job after which each begins, -1 where unknown */
    int n_open, *open;     /* jobs that wait for others to be done */
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

/* ---- The few that matter ---- */

/* When it was over; NAN where the trace does not say. */
static double over(const walk *w, need_kind kind, int which)
{
    return kind == NEED_TASK      ? w->t->tasks[which].ended
           : kind == NEED_MESSAGE ? w->t->messages[which].arrived
                                  : w->t->messages[which].left;
}

/* Of the chain that it ends; a send is in none. */
static double length(const walk *w, need_kind kind, int which, int chain)
{
    if (kind == NEED_TASK)
        return w->t->tasks[which].chain[chain];
    const trace_message *m = &w->t->messages[which];
    double before = m->made_by >= 0 ? w->t->tasks[m->made_by].chain[chain] : 0;
    return kind == NEED_SEND ? 0 : before + (chain == CHAIN_WITH_MESSAGES ? m->arrived - m->sent : 0);
}

static bool has(const int *list, int n, int value)
{
    for (int i = 0; i < n; i++)
        if (list[i] == value)
            return true;
    return false;
}

static void take(const walk *w, few *f, need_kind kind, int which)
{
    for (int c = 0; c < N_CHAINS; c++)
        if (f->longest[c] < 0 || length(w, kind, which, c) > length(w, kind, f->longest[c], c))
            f->longest[c] = which;
    double time = over(w, kind, which);
    int at = LATEST;
    while (at > 0 && (f->latest[at - 1] < 0 || time > over(w, kind, f->latest[at - 1])))
        at--;
    if (at == LATEST || isnan(time) || has(f->latest, LATEST, which))
        return;
    memmove(&f->latest[at + 1], &f->latest[at], (size_t)(LATEST - 1 - at) * sizeof *f->latest);
    f->latest[at] = which;
}

static void take_all(const walk *w, few *f, need_kind kind, const few *from)
{
    for (int i = 0; i < N_CHAINS; i++)
        if (from->longest[i] >= 0)
            take(w, f, kind, from->longest[i]);
    for (int i = 0; i < LATEST && from->latest[i] >= 0; i++)
        take(w, f, kind, from->latest[i]);
}

/* As a list, each once, latest first. */
static int list_few(const few *f, int **list)
{
    int n = 0;
    *list = must_allocate(LATEST + N_CHAINS, sizeof **list);
    for (int i = 0; i < LATEST && f->latest[i] >= 0; i++)
        (*list)[n++] = f->latest[i];
    for (int i = 0; i < N_CHAINS; i++)
        if (f->longest[i] >= 0 && !has(*list, n, f->longest[i]))
            (*list)[n++] = f->longest[i];
    return n;
}

/* ---- Walking ---- */

/* Gathers the tasks and messages that j waited for, also through StarPU's own jobs; all jobs before j are done. */
static void gather(walk *w, int j)
{
    const trace_job *job = &w->jobs->jobs[j];
    few *needs = w->needs[j];
    for (int i = 0; i < job->n_needs; i++) {
        const trace_job *need = find_job(w->jobs, job->rank, job->needs[i]);
        if (!need)
            continue;
        few *its = w->needs[need - w->jobs->jobs];
        if (need->task >= 0) {
            take(w, &needs[NEED_TASK], NEED_TASK, need->task);
            continue;
        }
        take_all(w, &needs[NEED_SEND], NEED_SEND, &its[NEED_SEND]);
        if (need->received >= 0) {
            take(w, &needs[NEED_MESSAGE], NEED_MESSAGE, need->received);
            continue;
        }
        take_all(w, &needs[NEED_TASK], NEED_TASK, &its[NEED_TASK]);
        take_all(w, &needs[NEED_MESSAGE], NEED_MESSAGE, &its[NEED_MESSAGE]);
    }
}

/* A message that j, StarPU's own, waited for until it had left: it had, when j was submitted. */
static void take_send(walk *w, int j)
{
    const trace_job *job = &w->jobs->jobs[j];
    for (int i = 0; i < job->n_needs; i++) {
        const trace_job *need = find_job(w->jobs, job->rank, job->needs[i]);
        if (!need || need->sent < 0)
            continue;
        if (!isnan(job->submitted))
            w->t->messages[need->sent].left = job->submitted;
        take(w, &w->needs[j][NEED_SEND], NEED_SEND, need->sent);
        return;
    }
}

static void finish_task(walk *w, int j)
{
    trace_task *task = &w->t->tasks[w->jobs->jobs[j].task];
    few *needs = w->needs[j];
    task->n_needs = list_few(&needs[NEED_TASK], &task->needs);
    task->n_messages = list_few(&needs[NEED_MESSAGE], &task->messages);
    task->n_sends = list_few(&needs[NEED_SEND], &task->sends);
    for (int c = 0; c < N_CHAINS; c++) {
        double longest = 0;
        if (needs[NEED_TASK].longest[c] >= 0)
            longest = length(w, NEED_TASK, needs[NEED_TASK].longest[c], c);
        if (needs[NEED_MESSAGE].longest[c] >= 0)
            longest = fmax(longest, length(w, NEED_MESSAGE, needs[NEED_MESSAGE].longest[c], c));
        double own = task->ended - task->began;
        task->chain[c] = longest + (isnan(own) ? 0 : own);
    }
}

static void finish(walk *w, int j)
{
    const trace_job *job = &w->jobs->jobs[j];
    if (job->received < 0)
        gather(w, j); /* readers of a received buffer need the message only */
    if (job->task >= 0)
        finish_task(w, j);
    else
        take_send(w, j);
    if (job->sent >= 0) { /* made by the last task, should there be several */
        const few *tasks = &w->needs[j][NEED_TASK];
        w->t->messages[job->sent].made_by = tasks->latest[0] >= 0 ? tasks->latest[0] : tasks->longest[0];
    }
    w->state[j] = DONE;
}

static void open_job(walk *w, int j)
{
    if (j < 0 || w->state[j] != UNSEEN)
        return;
    w->open = trace_grow(w->open, w->n_open, sizeof *w->open);
    w->open[w->n_open++] = j;
}

/* Each job is done after those that it depends on, over messages too; without recursion, as chains are long. */
static void walk_to(walk *w, int last)
{
    for (open_job(w, last); w->n_open > 0;) {
        int j = w->open[w->n_open - 1];
        const trace_job *job = &w->jobs->jobs[j];
        if (w->state[j] != UNSEEN) {
            w->n_open--;
            if (w->state[j] == OPEN)
                finish(w, j);
            continue;
        }
        w->state[j] = OPEN;
        for (int i = 0; i < job->n_needs; i++) {
            const trace_job *need = find_job(w->jobs, job->rank, job->needs[i]);
            open_job(w, need ? (int)(need - w->jobs->jobs) : -1);
        }
        open_job(w, job->received >= 0 ? w->sender[job->received] : -1);
    }
}

/* ---- Content of messages ---- */

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
    walk w = {.t = t, .jobs = jobs};
    w.state = must_allocate(jobs->n, sizeof *w.state);
    w.needs = must_allocate(jobs->n, sizeof *w.needs);
    w.sender = must_allocate(t->n_messages, sizeof *w.sender);
    memset(w.needs, -1, (size_t)jobs->n * sizeof *w.needs);
    memset(w.sender, -1, (size_t)t->n_messages * sizeof *w.sender);
    for (int i = 0; i < jobs->n; i++)
        if (jobs->jobs[i].sent >= 0)
            w.sender[jobs->jobs[i].sent] = i;
    for (int i = 0; i < jobs->n; i++)
        walk_to(&w, i);
    free(w.state);
    free(w.needs);
    free(w.sender);
    free(w.open);
}
