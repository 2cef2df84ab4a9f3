/* SPDX-License-Identifier: Apache-2.0 */
/* Trials of built-in ops. */
#include "validator.h"

#include <string.h>

#include "reference.h"

static void values(void *arg, const trama_node *node, int operand, uint64_t seed, int64_t n, double *at)
{
    const op_case *c = arg;
    dense d = dense_of_domain(node->in[operand]->shape, c->domains[operand], case_classes(node), seed);
    memcpy(at, d.at, (size_t)n * sizeof *at);
    dense_free(&d);
}

static bool run(void *arg, const trama_call *call)
{
    (void)arg;
    return reference_try(call);
}

trial trial_of(const op_case *c, const trama_node *node, const trama_rule *rule, const trama_mesh *mesh, uint64_t seed)
{
    return (trial){.name = c->name,
                   .node = node,
                   .rule = rule,
                   .mesh = mesh,
                   .seed = seed,
                   .tolerance = 1e-9,
                   .values = values,
                   .run = run,
                   .arg = (void *)c};
}
