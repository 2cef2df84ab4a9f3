/* SPDX-License-Identifier: Apache-2.0 */
/* Names of steps, from the op and its role. */
#include "step_name.h"

#include <stdio.h>
#include <string.h>

const trama_node *step_main_node(const plan *p, const trama_program *program, const plan_step *step)
{
    const trama_node *chosen = NULL;
    for (int i = 0; i < step->n_calls; i++) {
        const trama_node *node = program->nodes.at[p->calls.at[step->call + i].node];
        if (!node->op->pointwise)
            return node;
        if (!chosen || node->op->flops > chosen->op->flops)
            chosen = node;
    }
    return chosen;
}

int step_compute_name(const trama_node *node, char *name, size_t bytes)
{
    static const char *const forms[] = {[NODE_FORWARD] = "%.*s",
                                        [NODE_GRADIENT] = "%.*s.grad",
                                        [NODE_MERGE] = "merge.%.*s",
                                        [NODE_UPDATE] = "update.%.*s"};
    static const char own_gradient[] = "_grad";
    const char *op = node->op->name;
    size_t length = strlen(op), tail = sizeof own_gradient - 1;
    if (node->role == NODE_GRADIENT && length > tail && !strcmp(op + length - tail, own_gradient))
        length -= tail;
    return snprintf(name, bytes, forms[node->role], (int)length, op);
}

int step_joined_name(const char *label, int more, char *name, size_t bytes)
{
    const char *role = strstr(label, ".grad");
    const size_t length = role ? (size_t)(role - label) : strlen(label);
    return snprintf(name, bytes, "%.*s_and_%d%s", (int)length, label, more, label + length);
}

const char *step_movement_name(const plan_step *step)
{
    static const char *const names[] = {[STEP_COPY] = "reshard.copy",
                                        [STEP_REDUCE] = "reshard.sum",
                                        [STEP_FILL] = "reshard.fill",
                                        [STEP_ORDER] = "reshard.order"};
    static const char *const together[] = {[PLAN_ALL_GATHER] = "reshard.all_gather",
                                           [PLAN_ALL_TO_ALL] = "reshard.all_to_all",
                                           [PLAN_BROADCAST] = "reshard.broadcast",
                                           [PLAN_REDUCE_SCATTER] = "reshard.reduce_scatter",
                                           [PLAN_ALL_REDUCE] = "reshard.all_reduce"};
    if (step->kind == STEP_COLLECTIVE)
        return together[step->collective.form];
    if (plan_orders_arena(step))
        return "memory.order";
    return step->kind < STEP_COLLECTIVE ? names[step->kind] : NULL;
}
