/* SPDX-License-Identifier: Apache-2.0 */
/* TRAMA_VERIFY: before a target's plan is used, this rank makes the plans of all ranks and verifies them. */
#include "verify_plan.h"

#include "wrap.h"

/* Places leaf i in the layout of completion; or in the host's boxes, where it was fed from them without a copy. */
static void place_leaf(const trama_executable *e, const target_form *t, partition *q, int i)
{
    int leaf = t->leaves.at[i];
    const trama_wrapped *host = i < t->carried ? NULL : e->at[leaf].in->host;
    if (!host) {
        partition_input(q, leaf);
        return;
    }
    partition_user_boxes(q, leaf, &host->user_boxes);
    partition_inside(q, leaf, leaf, t->l->mesh[leaf], &t->l->value[leaf]);
    partition_prefer_last(q, leaf);
}

static plan *plan_of(const trama_executable *e, const target_form *t, const compiled_plan *of, int rank)
{
    plan_source source = planning_source(&e->planning, of, t->l, rank);
    partition *q = partition_begin(&source);
    for (int i = 0; i < t->leaves.n; i++)
        place_leaf(e, t, q, i);
    partition_run(q, t->computed, t->leader, t->kept);
    return partition_end(&q);
}

static bool move_alike(const plan *a, const plan *b)
{
    plan_totals x = plan_count(a), y = plan_count(b);
    return x.received == y.received && x.sent == y.sent && x.messages == y.messages;
}

trama_status verify_target(const trama_executable *e, const target_form *t, const compiled_plan *of)
{
    int n = e->planning.machine->n_ranks, rank = e->planning.rank;
    plan **plans = trama_alloc((size_t)n * sizeof(plan *));
    for (int r = 0; r < n; r++)
        plans[r] = plan_of(e, t, of, r);
    trama_status status = plan_verify((const plan *const *)plans, n, of->program);
    if (!status && !move_alike(plans[rank], of->plan))
        status = trama_fail(NOWHERE, TRAMA_E_SYSTEM, "verify: rank %d has two plans of '%s' that move different bytes",
                            rank, t->target->name);
    for (int r = 0; r < n; r++)
        plan_destroy(&plans[r]);
    free(plans);
    return status;
}
