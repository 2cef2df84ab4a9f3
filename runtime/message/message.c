/* SPDX-License-Identifier: Apache-2.0 */
/* Messages: detached StarPU-MPI requests. Each has a pooled record in a list ordered by age, for the watchdog. */
#include "message.h"

#include <assert.h>

#include "state.h"

#if TRAMA_HAVE_MPI
#include <starpu_mpi.h>
#endif

struct message_record {
    message_record *older, *newer; /* older also links idle records */
    trama_context *context;
    fence *fence;
    atomic_long *of_call;
    const char *label;
    int64_t step, since;
    size_t bytes;
    int rank;
    bool receive;
};

void message_start(trama_context *c)
{
    pthread_mutex_init(&c->message.lock, NULL);
    c->message.oldest = c->message.newest = c->message.idle = NULL;
    c->message.counters = (context_counters){0};
    for (int i = 0; i < MESSAGE_CALLS; i++)
        atomic_store(&c->message.of_call[i], 0);
}

void message_stop(trama_context *c)
{
    assert(!c->message.oldest);
    while (c->message.idle) {
        message_record *r = c->message.idle;
        c->message.idle = r->older;
        free(r);
    }
    pthread_mutex_destroy(&c->message.lock);
}

context_counters context_count(const trama_context *c)
{
    trama_context *writable = (trama_context *)c; /* the lock, not the context */
    pthread_mutex_lock(&writable->message.lock);
    context_counters counters = c->message.counters;
    pthread_mutex_unlock(&writable->message.lock);
    return counters;
}

/* All work in flight is of earlier calls, which every rank makes before this one, so the wait ends. */
void message_begin_call(trama_context *c, int64_t call)
{
    if (atomic_load(&c->message.of_call[call % MESSAGE_CALLS]))
        fence_wait_all(c, "a run, for the messages of an earlier one,");
}

void message_missing(trama_context *c, int most, text *out)
{
    int64_t now = runtime_now();
    pthread_mutex_lock(&c->message.lock);
    for (message_record *r = c->message.oldest; r && most > 0; r = r->newer, most--)
        text_add(out, "  %s of %s %s rank %d, step %lld, %zu bytes, since %lld s\n", r->receive ? "receive" : "send",
                 r->label ? r->label : "?", r->receive ? "from" : "to", r->rank, (long long)r->step, r->bytes,
                 (long long)((now - r->since) / 1000000000));
    pthread_mutex_unlock(&c->message.lock);
}

/* Adds a record with these values to the list. */
static message_record *add_record(trama_context *c, message_record values, bool borrowed)
{
    pthread_mutex_lock(&c->message.lock);
    message_record *r = c->message.idle;
    if (r)
        c->message.idle = r->older;
    else
        r = trama_alloc(sizeof *r);
    *r = values;
    r->older = c->message.newest;
    if (c->message.newest)
        c->message.newest->newer = r;
    else
        c->message.oldest = r;
    c->message.newest = r;
    context_counters *n = &c->message.counters;
    ++*(r->receive ? &n->messages_received : &n->messages_sent);
    *(r->receive ? &n->bytes_received : &n->bytes_sent) += (int64_t)r->bytes;
    n->messages_borrowed += borrowed;
    pthread_mutex_unlock(&c->message.lock);
    return r;
}

message_record *message_open(trama_context *c, const envelope *m, size_t bytes, bool receive, bool borrowed, fence *f)
{
    assert(m->rank >= 0 && m->rank < c->comm.ranks && m->rank != c->comm.rank);
    assert(atomic_load(&c->rest.depth) > 0);
    atomic_long *of_call = &c->message.of_call[(m->tag >> MESSAGE_TAG_BITS) % MESSAGE_CALLS];
    fence_add(f, 1);
    atomic_fetch_add(of_call, 1);
    const message_record r = {.context = c,
                              .fence = f,
                              .of_call = of_call,
                              .label = m->label,
                              .step = m->step,
                              .since = runtime_now(),
                              .bytes = bytes,
                              .rank = m->rank,
                              .receive = receive};
    return add_record(c, r, borrowed);
}

void message_close(void *record)
{
    message_record *r = record;
    trama_context *c = r->context;
    fence *f = r->fence;
    atomic_fetch_sub(r->of_call, 1);
    pthread_mutex_lock(&c->message.lock);
    *(r->older ? &r->older->newer : &c->message.oldest) = r->newer;
    *(r->newer ? &r->newer->older : &c->message.newest) = r->older;
    r->older = c->message.idle;
    c->message.idle = r;
    pthread_mutex_unlock(&c->message.lock);
    fence_signal(f);
}

#if TRAMA_HAVE_MPI

enum { LARGE_MESSAGE = 1 << 20 };

/* StarPU's traces match messages by receiver and tag alone, so the sender is part of the tag. */
static int64_t tag_on_the_wire(int sender, int64_t tag)
{
    const int64_t tags = (int64_t)MESSAGE_CALLS << MESSAGE_TAG_BITS;
    assert(tag >= 0 && tag < MESSAGE_TAG_LIMIT);
    return sender * tags + tag % tags;
}

static message_record *open_of_handle(trama_context *c, starpu_data_handle_t handle, const envelope *m, bool receive,
                                      fence *f)
{
    assert(starpu_data_get_size(handle) <= INT32_MAX);
    return message_open(c, m, starpu_data_get_size(handle), receive, false, f);
}

void message_send(trama_context *c, starpu_data_handle_t handle, envelope m, fence *f)
{
    message_record *r = open_of_handle(c, handle, &m, false, f);
    bool waits = m.rendezvous && r->bytes > LARGE_MESSAGE;
    (waits ? starpu_mpi_issend_detached_prio : starpu_mpi_isend_detached_prio)(
        handle, m.rank, tag_on_the_wire(c->comm.rank, m.tag), m.priority, c->comm.handle, message_close, r);
}

void message_receive(trama_context *c, starpu_data_handle_t handle, envelope m, fence *f)
{
    message_record *r = open_of_handle(c, handle, &m, true, f);
    starpu_mpi_irecv_detached_prio(handle, m.rank, tag_on_the_wire(m.rank, m.tag), m.priority, c->comm.handle,
                                   message_close, r);
}

#else

void message_send(trama_context *c, starpu_data_handle_t handle, envelope m, fence *f)
{
    (void)c, (void)handle, (void)m, (void)f;
    assert(!"there is no other rank without MPI");
}

void message_receive(trama_context *c, starpu_data_handle_t handle, envelope m, fence *f)
{
    message_send(c, handle, m, f);
}

#endif
