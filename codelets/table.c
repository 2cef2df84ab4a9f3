/* SPDX-License-Identifier: Apache-2.0 */
/* From an op's name to its kernel; expands from ops.def. */
#include <string.h>

#include "kernel.h"
#include "loop.h"
#include "ops.h"

#define OP(name, ...) {#name, {cpu_##name}},
static const struct {
    const char *name;
    trama_kernel kernel;
} table[] = {
#include "ops.def"
};
#undef OP

const trama_kernel *kernel_of(const trama_op *op)
{
    if (op->kernel)
        return op->kernel;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (!strcmp(table[i].name, op->name))
            return &table[i].kernel;
    return NULL;
}

kernel_adder kernel_adder_of(const trama_op *op, trama_dtype dtype)
{
    return op == &trama_op_matmul && trama_dtype_is_float(dtype) ? matmul_add : NULL;
}

bool kernel_is_addition(const trama_call *call, double *factor)
{
    if (call->op != &trama_op_sgd || !trama_dtype_is_float(call->out[0].dtype))
        return false;
    *factor = -call->attributes->real[UPDATE_LR];
    return true;
}
