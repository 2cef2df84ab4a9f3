/* SPDX-License-Identifier: Apache-2.0 */
/* trama_start and trama_stop: the context, and the BLAS that its tasks use. */
#include "context.h"
#include "kernel.h"

trama_status trama_start(const trama_config *config, trama_context **context)
{
    if (!context)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "trama_start: the context's address is NULL");
    const char *advice = blas_start(!(config && config->keep_blas_kernels));
    text kind = {0};
    text_add(&kind, "cpu:%s", blas_kernel_name());
    trama_status status = context_create(config, kind.at, context);
    free(kind.at);
    if (status)
        blas_stop();
    else
        context_watch_rest(*context, blas_awake);
    if (!status && advice)
        context_log(*context, TRAMA_LOG_WARNING, "%s", advice);
    return status;
}

trama_status trama_stop(trama_context **context)
{
    if (!context || !*context)
        return TRAMA_OK;
    trama_status status = context_destroy(context);
    if (!status)
        blas_stop();
    return status;
}
