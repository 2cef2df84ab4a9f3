/* SPDX-License-Identifier: Apache-2.0 */
/* Collective calls of the context: small exchanges between all ranks, and agreement on success. */
#include <stdio.h>
#include <string.h>

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

trama_status context_barrier(trama_context *c, const char *what)
{
    char mine = 0, *all = trama_alloc((size_t)c->comm.ranks);
    trama_status status = context_gather(c, what, &mine, 1, all);
    free(all);
    return status;
}

trama_status context_all_equal(trama_context *c, const char *what, uint64_t hash)
{
    uint64_t *all = trama_alloc((size_t)c->comm.ranks * sizeof *all);
    trama_status status = context_gather(c, what, &hash, sizeof hash, all);
    for (int r = 1; r < c->comm.ranks && !status; r++)
        if (all[r] != all[0])
            status = trama_fail(
                NOWHERE, TRAMA_E_ORDER,
                "%s: rank %d does not call it as rank 0 does (another order of calls, or other arguments)", what, r);
    free(all);
    return status;
}

typedef struct verdict {
    int status;
    char message[508];
} verdict;

static trama_status first_failure(const verdict *all, int n_ranks, int own)
{
    for (int r = 0; r < n_ranks; r++)
        if (all[r].status && r == own)
            return (trama_status)all[r].status; /* the thread's message stands */
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
