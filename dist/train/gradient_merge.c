/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient accumulation: the user's request. The pass that makes it is pass/merge_gradients.c. */
#include "program.h"
#include "trama_ops.h"
#include "trama_optimizer.h"

static bool effect_has_gradients(const trama_value *effect)
{
    return effect->kind == VALUE_EFFECT && effect->update->raw.n > 0;
}

trama_target *trama_gradient_merge_at(trama_where where, trama_target *target, int64_t k, unsigned how)
{
    if (!target)
        return NULL;
    trama_program *p = target->program;
    bool any = false;
    for (int i = 0; i < target->values.n; i++)
        any |= effect_has_gradients(target->values.at[i]);
    if (p->session)
        return program_fail(p, where, TRAMA_E_UNSUPPORTED,
                            "gradient merge: an eager program has no targets that are run; record the program"),
               NULL;
    if (k < 1)
        return program_fail(p, where, TRAMA_E_ARGUMENT, "gradient merge: k is %lld; it takes micro-steps, 1 or more",
                            (long long)k);
    if (how & ~(unsigned)(TRAMA_MERGE_SUM | TRAMA_MERGE_SYNC_EACH))
        return program_fail(
            p, where, TRAMA_E_ARGUMENT,
            "gradient merge: gradients merge by TRAMA_MERGE_AVG or TRAMA_MERGE_SUM, and with TRAMA_MERGE_SYNC_EACH");
    if (!any)
        return program_fail(
            p, where, TRAMA_E_ARGUMENT,
            "gradient merge: target '%s' lists no result of trama_minimize, so there is nothing to merge",
            target->name);
    if (target->merge.k)
        return program_fail(p, where, TRAMA_E_ARGUMENT, "gradient merge: target '%s' merges already (%s:%d)",
                            target->name, target->merge.where.file, target->merge.where.line);
    for (int i = 0; i < p->targets.n; i++)
        for (int a = 0; p->targets.at[i] != target && a < p->targets.at[i]->values.n; a++)
            for (int b = 0; b < target->values.n; b++)
                if (p->targets.at[i]->values.at[a] == target->values.at[b] &&
                    effect_has_gradients(target->values.at[b]))
                    return program_fail(
                        p, where, TRAMA_E_ARGUMENT,
                        "gradient merge: target '%s' updates by the same trama_minimize as '%s'; minimize "
                        "once for each",
                        p->targets.at[i]->name, target->name);
    target->merge = (target_merge){.k = k, .how = how, .where = where};
    return target;
}

trama_value *trama_merged_gradient_at(trama_where where, trama_value *minimized, const trama_value *parameter)
{
    if (!minimized || !parameter)
        return NULL;
    trama_program *p = minimized->program;
    for (int i = 0; effect_has_gradients(minimized) && i < minimized->update->raw.n; i++) {
        if (minimized->update->trained.at[i] != parameter)
            continue;
        node_role outer = p->role;
        p->role = NODE_MERGE;
        trama_value *g = trama_stop_gradient_at(where, minimized->update->raw.at[i]);
        p->role = outer;
        if (g)
            g->gradient.of = parameter;
        if (g && !p->session)
            *ARRAY_PUSH(&p->merged) = (merged_gradient){g, minimized};
        return g;
    }
    return program_fail(p, where, TRAMA_E_ARGUMENT, "merged gradient: %s does not train %s", minimized->name,
                        parameter->name);
}
