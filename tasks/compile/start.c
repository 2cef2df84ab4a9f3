/* SPDX-License-Identifier: Apache-2.0 */
/* trama_start and trama_stop: the context with the BLAS and the GPUs that its tasks use. */
#include <string.h>

#include "context.h"
#include "kernel.h"

static int list(context_gpu *gpus, int most, const char **why)
{
    gpu_card *cards = trama_alloc((size_t)most * sizeof *cards);
    int n = gpu_list(cards, most, why);
    for (int i = 0; i < n; i++) {
        gpus[i].device = cards[i].device;
        memcpy(gpus[i].kind, cards[i].kind, sizeof gpus[i].kind);
        memcpy(gpus[i].uuid, cards[i].uuid, sizeof gpus[i].uuid);
        memcpy(gpus[i].pci, cards[i].pci, sizeof gpus[i].pci);
    }
    free(cards);
    return n;
}

static const context_gpus the_gpus = {list, gpu_open, gpu_free_bytes, gpu_start, gpu_stop};

/* Refuses to start where OpenBLAS has no memory for its buffers: a product on a worker would wait for ever. Where
 * address space is limited, OpenBLAS takes them before tensors take the rest. */
static trama_status check_room(trama_context **context)
{
    const int workers = context_config(*context)->workers;
    trama_status status =
        context_agree(*context, "trama_start", context_check_room(blas_bytes(workers), "the buffers of OpenBLAS"));
    if (status)
        context_destroy(context);
    else if (context_has_limited_room())
        blas_reserve(workers);
    return status;
}

trama_status trama_start(const trama_config *config, trama_context **context)
{
    if (!context)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "trama_start: the context's address is NULL");
    *context = NULL;
    if (context_check(NOWHERE, "trama_start")) /* before OpenBLAS is called: in a child of fork a thread of the parent
                                                  may have held its locks */
        return TRAMA_E_ORDER;
    const char *advice = blas_start(!(config && config->keep_blas_kernels));
    text kind = {0};
    text_add(&kind, "cpu:%s", blas_kernel_name());
    trama_status status = context_create(config, kind.at, &the_gpus, context);
    free(kind.at);
    if (!status)
        status = check_room(context);
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
    if (!*context)
        blas_stop();
    return status;
}
