/* SPDX-License-Identifier: Apache-2.0 */
/* Loans: StarPU hands a handle to a post in order with the tasks, the post tells the other rank or waits for it, and
 * gives the handle back. */
#include "loan.h"

#include <assert.h>

#include "node_memory.h"
#include "state.h"

enum { CELL = 64, CELLS = 64 }; /* bytes of a cell, a cache line; cells that are made at a time */

typedef _Atomic(uint64_t) counter;

struct loan {
    trama_context *context;
    size_t bytes;
    int64_t at; /* of the own cell */
    counter *own;
    const counter *other;
    uint64_t tells, awaits; /* counts of the last posts */
};

/* A use of the handle that is under way. */
typedef struct loan_post {
    loan *of;
    starpu_data_handle_t handle;
    message_record *record;
    fence *fence;           /* of a return, which has no record */
    uint64_t tells, awaits; /* 0: nothing */
    struct loan_post *next;
} loan_post;

/* ---- Cells ---- */

/* Cells keep their counts, since the other end of an ended loan may still look for the last one. */
static int64_t take_cell(trama_context *c)
{
    size_t taken;
    const char *made = c->loans.cells.n ? NULL : node_memory_take(c->node_memory, CELL * CELLS, &taken);
    for (int i = CELLS - 1; i >= 0 && made; i--)
        *ARRAY_PUSH(&c->loans.cells) = node_memory_at(c->node_memory, made + i * CELL);
    return c->loans.cells.n ? c->loans.cells.at[--c->loans.cells.n] : -1;
}

loan *loan_make(trama_context *c, size_t bytes)
{
    const int64_t at = take_cell(c);
    if (at < 0)
        return NULL;
    loan *l = trama_alloc(sizeof *l);
    *l = (loan){.context = c, .bytes = bytes, .at = at, .own = node_memory_of(c->node_memory, c->comm.rank, at)};
    l->tells = atomic_load(l->own);
    return l;
}

void loan_end(loan **l)
{
    if (!*l)
        return;
    assert(atomic_load((*l)->own) == (*l)->tells);
    *ARRAY_PUSH(&(*l)->context->loans.cells) = (*l)->at;
    free(*l);
    *l = NULL;
}

loan_cell loan_here(const loan *l)
{
    return (loan_cell){l->at, l->tells};
}

void loan_meet(loan *l, int rank, loan_cell there)
{
    l->other = node_memory_of(l->context->node_memory, rank, there.at);
    l->awaits = there.count;
}

/* ---- Posts ---- */

static bool may_end(const loan_post *p)
{
    return !p->awaits || atomic_load_explicit(p->of->other, memory_order_acquire) >= p->awaits;
}

static void end_post(loan_post *p)
{
    starpu_data_release_on_node(p->handle, STARPU_ACQUIRE_NO_NODE);
    message_record *record = p->record;
    fence *f = p->fence;
    free(p);
    if (record)
        message_close(record);
    else
        fence_signal(f);
}

/* StarPU has handed over the handle. */
static void go_on(void *arg)
{
    loan_post *p = arg;
    trama_context *c = p->of->context;
    if (p->tells)
        atomic_store_explicit(p->of->own, p->tells, memory_order_release);
    if (may_end(p)) {
        end_post(p);
        return;
    }
    pthread_mutex_lock(&c->loans.lock);
    p->next = c->loans.waiting;
    c->loans.waiting = p;
    atomic_fetch_add(&c->loans.n, 1);
    pthread_mutex_unlock(&c->loans.lock);
}

/* Takes those that may end from the list. */
static loan_post *find_ended(trama_context *c)
{
    loan_post *ended = NULL;
    for (loan_post **at = &c->loans.waiting; *at;) {
        loan_post *p = *at;
        if (!may_end(p)) {
            at = &p->next;
            continue;
        }
        *at = p->next;
        p->next = ended;
        ended = p;
        atomic_fetch_sub(&c->loans.n, 1);
    }
    return ended;
}

void loans_look(trama_context *c)
{
    if (!atomic_load_explicit(&c->loans.n, memory_order_relaxed) || pthread_mutex_trylock(&c->loans.lock))
        return;
    loan_post *ended = find_ended(c);
    pthread_mutex_unlock(&c->loans.lock);
    while (ended) {
        loan_post *p = ended;
        ended = p->next;
        end_post(p);
    }
}

static void post(loan_post values, enum starpu_data_access_mode mode)
{
    loan_post *p = trama_alloc(sizeof *p);
    *p = values;
    starpu_data_acquire_on_node_cb(p->handle, STARPU_ACQUIRE_NO_NODE, mode, go_on, p);
}

void loan_give(trama_context *c, loan *l, starpu_data_handle_t handle, envelope m, fence *f)
{
    message_record *r = message_open(c, &m, l->bytes, false, false, f);
    post((loan_post){.of = l, .handle = handle, .record = r, .tells = ++l->tells, .awaits = ++l->awaits}, STARPU_R);
}

void loan_take(trama_context *c, loan *l, starpu_data_handle_t handle, envelope m, fence *f)
{
    message_record *r = message_open(c, &m, l->bytes, true, true, f);
    post((loan_post){.of = l, .handle = handle, .record = r, .awaits = ++l->awaits}, STARPU_RW);
}

void loan_return(loan *l, starpu_data_handle_t handle, fence *f)
{
    fence_add(f, 1);
    post((loan_post){.of = l, .handle = handle, .fence = f, .tells = ++l->tells}, STARPU_RW);
}

/* ---- The context ---- */

static unsigned look(void *arg)
{
    loans_look(arg);
    return 1;
}

void loans_start(trama_context *c)
{
    pthread_mutex_init(&c->loans.lock, NULL);
    c->loans.hook = c->node_memory ? starpu_idle_hook_register(look, c) : -1;
}

void loans_stop(trama_context *c)
{
    assert(!c->loans.waiting);
    if (c->loans.hook >= 0)
        starpu_idle_hook_deregister(c->loans.hook);
    ARRAY_FREE(&c->loans.cells);
    pthread_mutex_destroy(&c->loans.lock);
}
