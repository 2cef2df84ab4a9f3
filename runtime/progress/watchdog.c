/* SPDX-License-Identifier: Apache-2.0 */
/* The report of a wait in which nothing has ended for config.watchdog seconds. */
#include "gpus.h"
#include "state.h"

#define SECOND INT64_C(1000000000) /* of runtime_now() */

enum { PERIODS_TO_STARVE = 3 };

/* The GPUs would wait for ever, and other ranks may wait for them, so the job must end. */
static _Noreturn void end_job(trama_context *c, const char *what, const char *waits_for, const char *why)
{
    fatal("rank %d: %s waits for %s: %s", c->comm.rank, what, waits_for, why);
}

void watchdog_report(trama_context *c, const char *what, int64_t waited)
{
    text lines = {0}, memory = {0};
    const char *why = NULL;
    if (gpu_groups_failed(c, &why))
        end_job(c, what, "GPUs that cannot exchange any more: NCCL reports", why);
    message_missing(c, 5, &lines);
    bool starve = gpus_starve(c, &memory);
    char *missing = text_take(&lines), *gpus = text_take(&memory);
    bool messages = missing && *missing;
    if (starve && !messages && waited >= PERIODS_TO_STARVE * SECOND * c->config.watchdog)
        end_job(c, what, "memory of a GPU that others have taken", gpus);
    context_log(c, TRAMA_LOG_WARNING,
                "rank %d: %s waits for %ld tasks and messages; nothing has ended for %lld s%s%s%s%s", c->comm.rank,
                what, atomic_load(&c->fences.under_way), (long long)(waited / SECOND), gpus && *gpus ? "; " : "",
                gpus ? gpus : "", messages ? "; the oldest messages in flight:\n" : ", and no message is in flight",
                messages ? missing : "");
    free(missing);
    free(gpus);
}
