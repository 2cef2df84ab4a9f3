/* SPDX-License-Identifier: Apache-2.0 */
/* Collective calls of the context: small exchanges between all ranks, comparison of calls, agreement on success. */
#include <stdio.h>
#include <string.h>

#include "hash.h"
#include "state.h"

typedef struct late_call {
    const trama_context *context;
    const char *what;
} late_call;

static void report_late(void *data, int waited)
{
    const late_call *call = data;
    context_log(call->context, TRAMA_LOG_WARNING, "rank %d: %s waits since %d s for ranks that have not called it",
                call->context->comm.rank, call->what, waited);
}

trama_status context_gather(trama_context *c, const char *what, const void *mine, size_t bytes, void *all)
{
    late_call call = {c, what};
    return comm_gather(&c->comm, mine, bytes, all, (comm_patience){c->config.watchdog, report_late, &call});
}

trama_status context_swap(trama_context *c, const char *what, int rank, const void *mine, void *theirs, size_t bytes)
{
    late_call call = {c, what};
    return comm_swap(&c->comm, rank, mine, theirs, bytes, (comm_patience){c->config.watchdog, report_late, &call});
}

trama_status context_barrier(trama_context *c, const char *what)
{
    char mine = 0, *all = trama_alloc((size_t)c->comm.ranks);
    trama_status status = context_gather(c, what, &mine, 1, all);
    free(all);
    return status;
}

/* ---- Comparison of calls ---- */

static trama_status refuse_disorder(const trama_context *c)
{
    return trama_fail(NOWHERE, TRAMA_E_ORDER, "%s", c->calls.disorder);
}

trama_status context_disagree(trama_context *c, const char *message)
{
    if (!c->calls.disorder)
        c->calls.disorder = trama_text_copy(message);
    return refuse_disorder(c);
}

bool context_compares(const trama_context *c)
{
    return c->config.check_calls && c->comm.ranks > 1 && !c->calls.disorder;
}

/* A rank's call, and its source line; where the call has none, the line of the call before it. */
typedef struct call_card {
    char words[240], place[220];
} call_card;

static void remember_place(trama_context *c, trama_where where)
{
    if (where.file)
        snprintf(c->calls.last, sizeof c->calls.last, "%s:%d", where.file, where.line);
}

static call_card card_of(const trama_context *c, trama_where where, const char *words)
{
    call_card card;
    memset(&card, 0, sizeof card);
    snprintf(card.words, sizeof card.words, "%s", words);
    snprintf(card.place, sizeof card.place, "%s%s",
             !*c->calls.last ? ""
             : where.file   ? " at "
                            : " after ",
             c->calls.last);
    return card;
}

/* The message names rank 0 and the first rank that differs: it is the same on all ranks. */
static trama_status report_calls(trama_context *c, const call_card *all, int other)
{
    text t = {0};
    text_add(
        &t,
        "the ranks make different calls: rank 0 %s%s, rank %d %s%s. All ranks make the same calls in the same order; "
        "after this, end the context with trama_stop",
        all[0].words, all[0].place, other, all[other].words, all[other].place);
    trama_status status = context_disagree(c, t.at);
    free(t.at);
    return status;
}

trama_status context_find_other(trama_context *c, const char *what, uint64_t hash, int *other)
{
    uint64_t *all = trama_alloc((size_t)c->comm.ranks * sizeof *all);
    trama_status status = context_gather(c, what, &hash, sizeof hash, all);
    *other = 0;
    for (int r = 1; r < c->comm.ranks && !*other && !status; r++)
        *other = all[r] != all[0] ? r : 0;
    free(all);
    return status;
}

trama_status context_call(trama_context *c, trama_where where, const char *what, const char *words)
{
    if (c->calls.disorder)
        return refuse_disorder(c);
    if (!context_compares(c))
        return TRAMA_OK;
    remember_place(c, where);
    int other = 0;
    trama_status status = context_find_other(c, what, hash_text(HASH_START, words), &other);
    if (!other)
        return status;
    call_card mine = card_of(c, where, words), *all = trama_alloc((size_t)c->comm.ranks * sizeof *all);
    status = context_gather(c, what, &mine, sizeof mine, all);
    if (!status)
        status = report_calls(c, all, other);
    free(all);
    return status;
}

/* ---- Agreement on success ---- */

typedef struct verdict {
    int status;
    char message[508];
} verdict;

static trama_status first_failure(const verdict *all, int n_ranks, int own)
{
    for (int r = 0; r < n_ranks; r++)
        if (all[r].status && r == own)
            return (trama_status)all[r].status; /* this thread's trama_error() has the message */
        else if (all[r].status)
            return trama_fail(NOWHERE, (trama_status)all[r].status, "rank %d: %s", r, all[r].message);
    return TRAMA_OK;
}

trama_status context_agree(trama_context *c, const char *what, trama_status mine)
{
    verdict own = {.status = mine};
    if (c->comm.ranks == 1)
        return mine;
    if (mine)
        snprintf(own.message, sizeof own.message, "%s", trama_error());
    int *all_status = trama_alloc((size_t)c->comm.ranks * sizeof *all_status), failed = 0;
    trama_status status = context_gather(c, what, &own.status, sizeof own.status, all_status);
    for (int r = 0; r < c->comm.ranks; r++)
        failed |= all_status[r];
    free(all_status);
    if (status || !failed)
        return status;
    verdict *all = trama_alloc((size_t)c->comm.ranks * sizeof *all);
    status = context_gather(c, what, &own, sizeof own, all);
    status = status ? status : first_failure(all, c->comm.ranks, c->comm.rank);
    free(all);
    return status;
}
