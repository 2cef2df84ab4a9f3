/* SPDX-License-Identifier: Apache-2.0 */
/* The table from the name of an op to its kernel; it expands from ops.def. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernel.h"
#include "loop.h"
#include "ops.h"
#include "scratch.h"

#if TRAMA_HAVE_CUDA
#define OP(name, ...) void cuda_##name(const trama_call *call, const gpu *g);
#define HOST(name, ...)
#define PRODUCT(name, ...)                                                                                             \
    OP(name, )                                                                                                         \
    void cuda_##name##_add(const trama_call *call, kernel_addition how, const gpu *g);                                 \
    int cuda_##name##_then(const trama_call *call, int n_more, const trama_call *more, const unsigned *inner,          \
                           const gpu *g);
#include "ops.def"
#define CUDA(name) cuda_##name
#else
#define CUDA(name) NULL
#endif

#define OP(name, ...) {#name, {.cpu = cpu_##name, .cuda = CUDA(name)}},
#define HOST(name, ...) {#name, {.cpu = cpu_##name}},
#define PRODUCT(name, ...) {#name, {cpu_##name, CUDA(name), cpu_##name##_add, CUDA(name##_add), CUDA(name##_then)}},
static const struct {
    const char *name;
    trama_kernel kernel;
} table[] = {
#include "ops.def"
};

const trama_kernel *kernel_of(const trama_op *op)
{
    for (size_t i = 0; !op->own && i < sizeof table / sizeof table[0]; i++)
        if (!strcmp(table[i].name, op->name))
            return &table[i].kernel;
    return NULL;
}

/* Results that a failed kernel has not made; updated states stay as they are. */
static void poison(const trama_call *call)
{
    for (int o = 0; o < call->n_out; o++)
        if (!(call->op->updates >> o & 1))
            kernel_fill(&call->out[o], NAN);
}

static trama_status run_own(const trama_call *call, const char **message)
{
    own_op_forget_message();
    trama_status status = call->op->own(call);
    if (status)
        poison(call);
    *message = status ? own_op_message(status) : NULL;
    return status;
}

static trama_status check_scratch(const char **message)
{
    static _Thread_local char text[80];
    const size_t bytes = scratch_refused();
    snprintf(text, sizeof text, "the system refuses it %zu bytes of memory", bytes);
    *message = bytes ? text : NULL;
    return bytes ? TRAMA_E_MEMORY : TRAMA_OK;
}

trama_status kernel_run(const trama_kernel *kernel, const trama_call *call, const char **message)
{
    if (call->op->own)
        return run_own(call, message);
    kernel->cpu(call);
    trama_status status = check_scratch(message);
    if (status)
        poison(call);
    return status;
}

trama_status kernel_add(const trama_kernel *kernel, const trama_call *call, kernel_addition how, const char **message)
{
    kernel->cpu_add(call, how);
    return check_scratch(message);
}

kernel_addition kernel_addition_now(const trama_call *call)
{
    return call->op->addition == TRAMA_ADDITION_OPERANDS ? accumulate_how(call)
                                                         : (kernel_addition){1, -call->attributes->real[0]};
}
