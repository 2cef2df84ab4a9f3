/* SPDX-License-Identifier: Apache-2.0 */
/* From an op's name to its kernel; expands from ops.def. */
#include <string.h>

#include "kernel.h"
#include "loop.h"

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
