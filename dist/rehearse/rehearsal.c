/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of a rehearsal, from the plans and from the simulation that ended; and their text. */
#include "rehearsal.h"

#include <math.h>
#include <string.h>

#include "sized.h"

#define REPORT SIZED(trama_rehearsal_report, link_seconds)

trama_rehearsal *rehearsal_new(const trama_rehearsal_options *o)
{
    trama_rehearsal *r = trama_alloc(sizeof *r);
    r->report = (trama_rehearsal_report){.ranks = o->ranks, .runs = o->plan_only ? 0 : o->runs, .hidden = 1};
    r->memory = trama_alloc((size_t)o->ranks * sizeof *r->memory);
    return r;
}

void trama_rehearsal_destroy(trama_rehearsal **rehearsal)
{
    if (!rehearsal || !*rehearsal)
        return;
    for (int i = 0; i < (*rehearsal)->path.n; i++)
        free((*rehearsal)->path.at[i].name);
    ARRAY_FREE(&(*rehearsal)->path);
    free((*rehearsal)->memory);
    free(*rehearsal);
    *rehearsal = NULL;
}

void rehearsal_count(trama_rehearsal *r, int rank, const plan *p, const step_graph *g, int in_flight)
{
    trama_rehearsal_report *to = &r->report;
    to->steps += p->steps.n;
    for (int i = 0; i < p->steps.n; i++)
        to->messages += p->steps.at[i].kind == STEP_SEND || (!to->runs && p->steps.at[i].kind == STEP_RECEIVE);
    to->bytes += plan_count(p).sent;
    r->memory[rank] = g->memory + (in_flight - 1) * g->inputs;
    if (r->memory[rank] > to->memory) {
        to->memory = r->memory[rank];
        to->memory_rank = rank;
        to->buffers = g->buffers;
        to->live = g->live;
    }
}

/* ---- The critical path ---- */

static path_entry *entry_of(trama_rehearsal *r, const char *name)
{
    int i = 0;
    while (i < r->path.n && strcmp(r->path.at[i].name, name))
        i++;
    if (i == r->path.n)
        *ARRAY_PUSH(&r->path) = (path_entry){.name = trama_text_copy(name)};
    return &r->path.at[i];
}

static void add_to_path(trama_rehearsal *r, const char *name, double seconds)
{
    entry_of(r, name)->seconds += seconds;
    r->path_seconds += seconds;
}

/* The tasks of a run on all ranks. */
static void add_tasks(trama_rehearsal *r, const simulated *s)
{
    path_entry *of = trama_alloc((size_t)(s->names->at.n + 1) * sizeof *of);
    for (int rank = 0; rank < s->n_ranks; rank++)
        for (int i = 0; i < s->graph[rank].n; i++) {
            const graph_step *step = &s->graph[rank].steps[i];
            if (step->message >= 0 || step->kind == STEP_ORDER)
                continue;
            of[step->name].tasks++;
            of[step->name].busy += step->seconds;
        }
    for (int n = 0; n < s->names->at.n; n++)
        if (of[n].tasks) {
            path_entry *e = entry_of(r, s->names->at.at[n]);
            e->tasks += of[n].tasks;
            e->busy += of[n].busy;
        }
    free(of);
}

static int64_t last_step(const simulated *s)
{
    int64_t last = 0;
    for (int64_t i = 1; i < s->n_steps; i++)
        last = s->finish[i] > s->finish[last] ? i : last;
    return last;
}

static int longer(const void *x, const void *y)
{
    const path_entry *a = x, *b = y;
    const double by = a->seconds != b->seconds ? b->seconds - a->seconds : b->busy - a->busy;
    return by != 0 ? (by > 0 ? 1 : -1) : strcmp(a->name, b->name);
}

/* From the step that ended last to its cause, to the cause of that, until a cause is no step of the run. */
static void find_path(trama_rehearsal *r, const simulated *s)
{
    for (int64_t i = s->n_steps ? last_step(s) : -1, next; i >= 0; i = next) {
        const int rank = simulated_rank(s, i);
        const graph_step *of = &s->graph[rank].steps[i - s->ranks[rank].first];
        next = s->cause[i];
        const bool submitted = next == SIM_SUBMISSION;
        const double begin = submitted   ? simulated_submission(s, rank, s->runs - 1, i)
                             : next >= 0 ? s->finish[next]
                                         : s->finish[-2 - next];
        const double passed = fmax(0, s->finish[i] - begin);
        if (of->kind != STEP_ORDER)
            add_to_path(r, s->names->at.at[of->name], next < SIM_SUBMISSION ? fmin(passed, of->seconds) : passed);
        if (submitted && s->runs == 1 && begin > 0)
            add_to_path(r, "submission", begin);
    }
    const int n = r->report.path = r->path.n;
    add_tasks(r, s);
    if (n)
        qsort(r->path.at, (size_t)n, sizeof *r->path.at, longer);
    if (r->path.n > n)
        qsort(r->path.at + n, (size_t)(r->path.n - n), sizeof *r->path.at, longer);
}

/* ---- Times ---- */

/* The last run ends sooner than those before it, among whose last steps the first ones of the next run are. */
static double seconds_of_run(const simulated *s)
{
    const int intervals = s->runs > 2 ? s->runs - 2 : s->runs - 1;
    return intervals ? (s->run_ends[intervals] - s->run_ends[0]) / intervals : s->run_ends[0];
}

void rehearsal_take(trama_rehearsal *r, const simulated *s)
{
    trama_rehearsal_report *to = &r->report;
    double moving = 0, exposed = 0, workers = 0, busy = 0;
    const double last = s->run_ends[s->runs - 1];
    to->seconds = last;
    to->step_seconds = seconds_of_run(s);
    for (int i = 0; i < s->workers.n; i++)
        workers += s->workers.at[i].place >= 0;
    for (int i = 0; i < s->n_ranks; i++) {
        moving += s->ranks[i].moving;
        exposed += s->ranks[i].exposed;
        busy += s->ranks[i].busy;
        to->work_seconds = fmax(to->work_seconds, s->ranks[i].work / machine_workers(s->m, i) / s->runs);
    }
    to->link_seconds = network_least(s->net) / s->runs;
    to->idle = last > 0 ? fmax(0, 1 - busy / (workers * last)) : 0;
    to->hidden = moving > 0 ? 1 - exposed / moving : 1;
    find_path(r, s);
}

/* ---- Questions ---- */

trama_status trama_rehearsal_read(const trama_rehearsal *rehearsal, trama_rehearsal_report *report)
{
    if (!rehearsal || !report)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "trama_rehearsal_read: the %s is NULL",
                          rehearsal ? "report" : "rehearsal");
    return sized_write(NOWHERE, "trama_rehearsal_read", REPORT, &rehearsal->report, report);
}

int64_t trama_rehearsal_memory(const trama_rehearsal *rehearsal, int rank)
{
    return rehearsal && rank >= 0 && rank < rehearsal->report.ranks ? rehearsal->memory[rank] : 0;
}

double trama_rehearsal_path(const trama_rehearsal *rehearsal, int i, const char **name)
{
    const bool there = rehearsal && i >= 0 && i < rehearsal->report.path;
    if (name)
        *name = there ? rehearsal->path.at[i].name : NULL;
    return there ? rehearsal->path.at[i].seconds : 0;
}

static void add_memory(const trama_rehearsal *r, text *out)
{
    const trama_rehearsal_report *f = &r->report;
    int64_t least = r->memory[f->memory_rank], all = 0;
    int known = 0;
    for (int i = 0; i < f->ranks; i++) {
        all += r->memory[i];
        known += r->memory[i] > 0;
        least = r->memory[i] && r->memory[i] < least ? r->memory[i] : least;
    }
    text_add(
        out,
        "memory: %.6g MB on rank %d, of which the plan's buffers are %.6g MB and %.6g MB of these are needed at a time",
        (double)f->memory / 1e6, f->memory_rank, (double)f->buffers / 1e6, (double)f->live / 1e6);
    if (known > 1)
        text_add(out, "; least %.6g MB, mean %.6g MB a rank", (double)least / 1e6, (double)all / known / 1e6);
    text_add(out, "\n");
}

trama_status trama_rehearsal_text(const trama_rehearsal *rehearsal, char **out)
{
    if (!rehearsal || !out)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "trama_rehearsal_text: the %s is NULL",
                          rehearsal ? "text's address" : "rehearsal");
    const trama_rehearsal_report *f = &rehearsal->report;
    text t = {0};
    text_add(&t, f->runs ? "%d ranks, %d runs\n" : "%d ranks, planned\n", f->ranks, f->runs);
    if (f->runs) {
        text_add(&t, "time of a run: %.6g ms\n", 1e3 * f->step_seconds);
        text_add(&t, "least time of a run: %.6g ms for the tasks of one rank, %.6g ms for the bytes of one link\n",
                 1e3 * f->work_seconds, 1e3 * f->link_seconds);
        text_add(&t, "workers idle: %.1f %%\n", 100 * f->idle);
        text_add(&t, "communication hidden behind tasks: %.1f %%\n", 100 * f->hidden);
    }
    text_add(&t, "steps: %lld; messages: %lld, of %.6g MB\n", (long long)f->steps, (long long)f->messages,
             (double)f->bytes / 1e6);
    add_memory(rehearsal, &t);
    if (f->runs)
        text_add(&t, "critical path: %.6g ms, and tasks of all ranks\n", 1e3 * rehearsal->path_seconds);
    for (int i = 0; i < rehearsal->path.n; i++) {
        const path_entry *e = &rehearsal->path.at[i];
        text_add(&t, "  %5.1f %%  %10.6g ms  %6lld tasks of %9.4g ms  %s\n",
                 100 * e->seconds / fmax(rehearsal->path_seconds, 1e-300), 1e3 * e->seconds, (long long)e->tasks,
                 e->tasks ? 1e3 * e->busy / (double)e->tasks : 0, e->name);
    }
    return text_give(&t, "trama_rehearsal_text", out);
}
