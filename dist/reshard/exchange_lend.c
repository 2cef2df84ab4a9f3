/* SPDX-License-Identifier: Apache-2.0 */
/* Shards lent to messages that lie in them: steps that do no work order the message behind the uses of the shard before
 * it, and the uses behind it after the message. */
#include "exchange.h"

plan_region message_view(exchange *x, int place, const plan_region *of)
{
    int view = partition_shard(x->q, SHARD_VIEW, x->value, place, &of->box, -1, 1);
    x->q->p->shards.at[view].within = of->shard;
    return (plan_region){view, of->box};
}

static void add_order(exchange *x, int phase, int place, const plan_region *region, step_access access,
                      const plan_region *view, step_access view_access)
{
    exchange_step *s = add_step(x, phase, STEP_ORDER, place);
    s->n = 2;
    s->operands[0] = (plan_operand){*region, access};
    s->operands[1] = (plan_operand){*view, view_access};
}

void lend_to_sends(exchange *x, int level, int place, const plan_region *region, const plan_region *view)
{
    add_order(x, level ? PACK_AGAIN : PACK, place, region, ACCESS_READ, view, ACCESS_WRITE);
    add_order(x, RETURN, place, region, ACCESS_READ, view, ACCESS_UPDATE);
}

void lend_to_receive(exchange *x, int level, int place, const plan_region *region, const plan_region *view)
{
    add_order(x, LEND, place, region, write_access(x->q->p, region), view, ACCESS_WRITE);
    add_order(x, level ? UNPACK_AGAIN : UNPACK, place, region, ACCESS_UPDATE, view, ACCESS_READ);
}
