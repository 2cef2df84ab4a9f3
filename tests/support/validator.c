/* SPDX-License-Identifier: Apache-2.0 */
/* Trials of built-in ops. */
#include "validator.h"

#include <string.h>

#include "reference.h"

static void values(void *arg, const trama_node *node, int operand, uint64_t seed, int64_t n, double *at)
{
    const op_case *c = arg;
    dense d = dense_of_domain(TRAMA_SHAPE(n), c->domains[operand], case_classes(node), seed);
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

int operands_at_once(const trial *t)
{
    const int many = 1000, n = t->node->op->n_in;
    double sets[TRAMA_MAX_OPERANDS + 1] = {1}, all = 1; /* combinations in which so many are */
    int most = 0;
    for (int i = 0; i < n; i++) {
        layout_list list = {0};
        trial_layouts(t->mesh, t->node->in[i], true, &list);
        for (int k = i; k >= 0 && !is_alike(t, i); k--)
            sets[k + 1] += sets[k] * (list.n - 1);
        ARRAY_FREE(&list);
    }
    while (most < n && (most < 2 || all + sets[most + 1] <= many))
        all += sets[++most];
    return most;
}
