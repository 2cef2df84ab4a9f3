/* SPDX-License-Identifier: Apache-2.0 */
/* Failed kernels. */
#include "faults.h"

#include <stdio.h>

#include "base.h"

void faults_note(void *arg, trama_where where, const trama_op *op, trama_status status, const char *message)
{
    faults *f = arg;
    if (atomic_exchange(&f->claimed, true))
        return;
    snprintf(f->message, sizeof f->message, "%s:%d: the kernel of %s failed on rank %d: %s",
             where.file ? where.file : "?", where.line, op->name, context_rank(f->context),
             message && *message ? message : trama_status_text(status));
    f->status = op->own ? TRAMA_E_KERNEL : status;
    atomic_store(&f->told, true);
    context_log(f->context, TRAMA_LOG_ERROR, "%s", f->message);
}

trama_status faults_status(const faults *f)
{
    return atomic_load(&f->told) ? trama_fail(NOWHERE, f->status, "%s", f->message) : TRAMA_OK;
}
