/* SPDX-License-Identifier: Apache-2.0 */
/* The table from the name of an op to its kernel; it expands from ops.def. */
#include <math.h>
#include <string.h>

#include "kernel.h"
#include "loop.h"
#include "ops.h"

#if TRAMA_HAVE_CUDA
#define OP(name, ...) void cuda_##name(const trama_call *call, const gpu *g);
#define PRODUCT(name, ...)                                                                                             \
    OP(name, )                                                                                                         \
    void cuda_##name##_add(const trama_call *call, kernel_addition how, const gpu *g);                                 \
    bool cuda_##name##_then(const trama_call *call, int n_more, const trama_call *more, const gpu *g);
#include "ops.def"
/* schedule has no GPU kernel: its factor may be a function of the user's. */
void cuda_schedule(const trama_call *call, const gpu *g) __attribute__((weak));
#define CUDA(name) cuda_##name
#else
#define CUDA(name) NULL
#endif

#define OP(name, ...) {#name, {.cpu = cpu_##name, .cuda = CUDA(name)}},
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

static trama_status run_own(const trama_call *call, const char **message)
{
    own_op_forget_message();
    trama_status status = call->op->own(call);
    for (int o = 0; status && o < call->n_out; o++)
        if (!(call->op->updates >> o & 1))
            kernel_fill(&call->out[o], NAN);
    *message = status ? own_op_message(status) : NULL;
    return status;
}

trama_status kernel_run(const trama_kernel *kernel, const trama_call *call, const char **message)
{
    if (call->op->own)
        return run_own(call, message);
    kernel->cpu(call);
    return TRAMA_OK;
}

kernel_addition kernel_addition_now(const trama_call *call)
{
    return call->op->addition == TRAMA_ADDITION_OPERANDS ? accumulate_how(call)
                                                         : (kernel_addition){1, -call->attributes->real[0]};
}
