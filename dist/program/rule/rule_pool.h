/* SPDX-License-Identifier: Apache-2.0 */
/* Rules that many nodes share: equal ones lie in memory once, since a factor table has 4 KiB and most ops of a large
 * program repeat the ops of its first layer. */
#ifndef RULE_POOL_H
#define RULE_POOL_H

#include "base.h"
#include "hash_table.h"
#include "rule.h"

typedef struct rule_pool {
    ARRAY(struct pooled_rule *) rules; /* NULL: released */
    hash_table by_content;             /* numbers of rules; entries of released ones stay until most are such */
    int n_released;
} rule_pool;

/* The pool's rule that is equal to `rule`, whose padding is zero. It stays until it was released as often as it was
 * taken, or the pool is freed. */
const trama_rule *rule_pool_take(rule_pool *pool, const trama_rule *rule);
void rule_pool_release(rule_pool *pool, const trama_rule *rule);
void rule_pool_free(rule_pool *pool);

/* Rules of a program's nodes with known extents. */
typedef struct node_rules {
    const trama_rule **of; /* [node id]; of nodes that run: the node's own rule, or one of the pool */
    rule_pool pool;
} node_rules;

node_rules node_rules_new(int n_nodes);
void node_rules_free(node_rules *rules);

/* Sets the rule of a node: its own one where `rule` is equal to it. */
void node_rules_set(node_rules *rules, int node, const trama_rule *own, const trama_rule *rule);

#endif
