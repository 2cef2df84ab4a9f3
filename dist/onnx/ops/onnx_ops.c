/* SPDX-License-Identifier: Apache-2.0 */
/* The table of ops, expanded from onnx_ops.def, and its look-up. */
#include "onnx_ops.h"
#include "trama_composed.h"

#include <string.h>

static const onnx_op ops[] = {
#define ONNX(name, since, until, n_in, most_in, n_out, attributes, ...)                                                \
    {"", #name, since, until, n_in, most_in, n_out, attributes, __VA_ARGS__},
#include "onnx_ops.def"
};

bool onnx_domain_is_default(const char *domain)
{
    return !domain || !*domain || !strcmp(domain, "ai.onnx");
}

const onnx_op *onnx_op_find(const char *domain, const char *name, int opset, bool *others)
{
    *others = false;
    for (size_t i = 0; onnx_domain_is_default(domain) && i < sizeof ops / sizeof *ops; i++)
        if (!strcmp(ops[i].name, name)) {
            if (ops[i].since <= opset && opset <= ops[i].until)
                return &ops[i];
            *others = true;
        }
    return NULL;
}
