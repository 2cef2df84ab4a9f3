/* SPDX-License-Identifier: Apache-2.0 */
/* Equal rules by the hash of their bytes. */
#include "rule_pool.h"

#include <stdlib.h>
#include <string.h>

struct pooled_rule {
    trama_rule rule; /* first, so that its address is that of the struct */
    uint64_t hash;
    int number, users;
};

static uint64_t hash_of_rule(const trama_rule *rule)
{
    return hash_bytes(HASH_START, rule, sizeof *rule);
}

/* Without the released ones. */
static void compact(rule_pool *pool)
{
    int n = 0;
    hash_table_clear(&pool->by_content);
    for (int i = 0; i < pool->rules.n; i++) {
        struct pooled_rule *r = pool->rules.at[i];
        if (!r)
            continue;
        r->number = n;
        pool->rules.at[n] = r;
        hash_table_add(&pool->by_content, r->hash, n++);
    }
    pool->rules.n = n;
    pool->n_released = 0;
}

const trama_rule *rule_pool_take(rule_pool *pool, const trama_rule *rule)
{
    const uint64_t hash = hash_of_rule(rule);
    for (int probe = 0, i; (i = hash_table_find(&pool->by_content, hash, &probe)) >= 0;) {
        struct pooled_rule *r = pool->rules.at[i];
        if (r && !memcmp(&r->rule, rule, sizeof *rule)) {
            r->users++;
            return &r->rule;
        }
    }
    if (2 * pool->n_released > pool->rules.n)
        compact(pool);
    struct pooled_rule *made = trama_alloc(sizeof *made);
    memcpy(&made->rule, rule, sizeof *rule);
    made->hash = hash;
    made->users = 1;
    *ARRAY_PUSH(&pool->rules) = made;
    made->number = pool->rules.n - 1;
    hash_table_add(&pool->by_content, hash, made->number);
    return &made->rule;
}

void rule_pool_release(rule_pool *pool, const trama_rule *rule)
{
    struct pooled_rule *r = (struct pooled_rule *)rule;
    if (!r || --r->users)
        return;
    pool->rules.at[r->number] = NULL;
    pool->n_released++;
    free(r);
}

void rule_pool_free(rule_pool *pool)
{
    for (int i = 0; i < pool->rules.n; i++)
        free(pool->rules.at[i]);
    ARRAY_FREE(&pool->rules);
    hash_table_free(&pool->by_content);
    pool->n_released = 0;
}

node_rules node_rules_new(int n_nodes)
{
    node_rules rules = {0};
    rules.of = trama_alloc((size_t)max_i64(1, n_nodes) * sizeof *rules.of);
    return rules;
}

void node_rules_free(node_rules *rules)
{
    free(rules->of);
    rule_pool_free(&rules->pool);
    rules->of = NULL;
}

void node_rules_set(node_rules *rules, int node, const trama_rule *own, const trama_rule *rule)
{
    rules->of[node] = memcmp(own, rule, sizeof *rule) ? rule_pool_take(&rules->pool, rule) : own;
}
