/* SPDX-License-Identifier: Apache-2.0 */
/* A step that only orders others runs on no worker: the thread that ends the last step before it ends it, too, and in
 * the same call those behind it that wait for nothing else. So a chain of such steps takes stack, 1.8 KB a step in
 * StarPU. One of LONGEST_CHAIN of them runs on a worker, where the next chain begins. */
#include "planner.h"

enum { LONGEST_CHAIN = 32 };

/* The length of the chain that ends with the step; chains: those that end with the last users of each tile. */
static int chain_before(const plan *p, const plan_tile_numbers *tiles, const plan_step *s, const int *chains)
{
    int longest = 0;
    for (int k = 0; k < s->n_operands; k++) {
        const plan_range r = plan_tiles_used(p, tiles, plan_step_operand(p, s, k));
        for (int t = r.first; t <= r.last; t++)
            longest = (int)max_i64(longest, chains[t]);
    }
    return longest;
}

static void end_chains(const plan *p, const plan_tile_numbers *tiles, const plan_step *s, int length, int *chains)
{
    for (int k = 0; k < s->n_operands; k++) {
        const plan_operand *o = plan_step_operand(p, s, k);
        const plan_range r = plan_tiles_used(p, tiles, o);
        for (int t = r.first; t <= r.last; t++)
            chains[t] = o->access == ACCESS_READ ? (int)max_i64(length, chains[t]) : length;
    }
}

void bound_order_chains(plan *p)
{
    plan_tile_numbers tiles = plan_number_tiles(p);
    int *chains = trama_alloc((size_t)max_i64(1, tiles.n) * sizeof *chains);
    for (int i = 0; i < p->steps.n; i++) {
        plan_step *s = &p->steps.at[i];
        int length = 0;
        if (s->kind == STEP_ORDER) {
            length = chain_before(p, &tiles, s, chains) + 1;
            s->on_worker = length == LONGEST_CHAIN;
            length = s->on_worker ? 0 : length;
        }
        end_chains(p, &tiles, s, length, chains);
    }
    free(chains);
    free(tiles.first);
}
