/* SPDX-License-Identifier: Apache-2.0 */
/* Traces made by hand, for the tests of what looks at traces. */
#ifndef TRACE_MODELS_H
#define TRACE_MODELS_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../examples/trama/trace/read/trace_model.h"

enum { MOST_LINKS = 4 };

typedef struct model {
    trace t;
    int (*needs)[MOST_LINKS], (*messages)[MOST_LINKS];
} model;

static inline void *zeroed(int n, size_t size)
{
    void *memory = calloc((size_t)n + 1, size);
    ck_assert_ptr_nonnull(memory);
    return memory;
}

/* So many workers on each rank; names end with NULL; roles go round. */
static inline model model_new(int n_ranks, int per_rank, int most_tasks, int most_messages, const char *const *names)
{
    model m = {.t = {.program = strdup("prog"), .n_ranks = n_ranks}};
    m.t.workers = zeroed(n_ranks * per_rank, sizeof *m.t.workers);
    m.t.tasks = zeroed(most_tasks, sizeof *m.t.tasks);
    m.t.messages = zeroed(most_messages, sizeof *m.t.messages);
    m.t.missing = zeroed(2, sizeof *m.t.missing);
    m.t.names = zeroed(10, sizeof *m.t.names);
    m.needs = zeroed(most_tasks, sizeof *m.needs);
    m.messages = zeroed(most_tasks, sizeof *m.messages);
    for (int i = 0; i < n_ranks * per_rank; i++) {
        char text[40];
        snprintf(text, sizeof text, "rank %d, worker %d", i / per_rank, i % per_rank);
        m.t.workers[m.t.n_workers++] = (trace_worker){i / per_rank, i % per_rank, 0, strdup(text)};
    }
    for (; names[m.t.n_names]; m.t.n_names++) {
        trace_name *name = &m.t.names[m.t.n_names];
        name->text = strdup(names[m.t.n_names]);
        name->role = (trace_role)(m.t.n_names % N_ROLES);
        snprintf(name->color, sizeof name->color, "#%02x5080", (unsigned)(m.t.n_names * 20) & 255u);
    }
    return m;
}

static inline void model_free(model *m)
{
    for (int i = 0; i < m->t.n_workers; i++)
        free(m->t.workers[i].text);
    for (int i = 0; i < m->t.n_names; i++)
        free(m->t.names[i].text);
    void *all[] = {m->t.program, m->t.workers, m->t.tasks, m->t.messages,
                   m->t.missing, m->t.names,   m->needs,   m->messages};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

static inline trace_task *add_task(model *m, int name, int worker, double began, double ended, long step)
{
    int i = m->t.n_tasks++;
    trace_task *task = &m->t.tasks[i];
    *task = (trace_task){.name = name,
                         .worker = worker,
                         .rank = worker < 0 ? 0 : m->t.workers[worker].rank,
                         .job = 100 + i,
                         .submitted = 0,
                         .began = began,
                         .ended = ended,
                         .gflop = 0.5,
                         .priority = 3,
                         .step = step,
                         .micro_step = -1,
                         .needs = m->needs[i],
                         .messages = m->messages[i]};
    if (ended > m->t.ended)
        m->t.ended = ended;
    return task;
}

static inline int add_message(model *m, int from, int to, double sent, double arrived, int made_by)
{
    m->t.messages[m->t.n_messages] = (trace_message){.from = from,
                                                     .to = to,
                                                     .sent = sent,
                                                     .arrived = arrived,
                                                     .left = NAN,
                                                     .bytes = 4096,
                                                     .text = (char *)"w1",
                                                     .made_by = made_by};
    return m->t.n_messages++;
}

static const char *const plain_names[] = {"matmul", "matmul.grad", "adam", NULL};

/* Two ranks of two workers; two steps that overlap; rank 1 waits for a message of rank 0. */
static inline model two_by_two(void)
{
    model m = model_new(2, 2, 8, 3, plain_names);
    add_task(&m, 0, 0, 1.0, 2.0, 4);
    add_task(&m, 0, 1, 1.25, 3.0, 4);
    add_task(&m, 1, 2, 1.5, 2.75, 4);
    add_task(&m, 1, 0, 2.0, 3.5, 4);
    add_task(&m, 2, 2, 4.0, 5.0, 5);
    add_task(&m, 2, 3, 4.1234567, 4.3, 5);
    add_task(&m, 2, 0, 3.75, 9.0, 5);
    int message = add_message(&m, 0, 1, 3.5, 3.9, 3);
    add_message(&m, 0, 1, 3.6, 4.5, 3);
    add_message(&m, 1, 0, 2.75, 3.625, 2);
    m.t.tasks[4].messages[m.t.tasks[4].n_messages++] = message;
    m.t.tasks[4].needs[m.t.tasks[4].n_needs++] = 2;
    m.t.tasks[6].needs[m.t.tasks[6].n_needs++] = 3;
    m.t.tasks[6].needs[m.t.tasks[6].n_needs++] = 1;
    m.t.tasks[6].micro_step = 1;
    return m;
}

#endif
