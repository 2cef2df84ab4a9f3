/* SPDX-License-Identifier: Apache-2.0 */
/* Rules that nodes share: equal ones lie once, as long as a node has them. */
#include <string.h>

#include "program.h"
#include "suite.h"
#include "trama_ops.h"

static trama_rule numbered(int64_t extent)
{
    trama_rule rule;
    memset(&rule, 0, sizeof rule);
    rule.n_factors = 1;
    rule.factor[0].extent = extent;
    return rule;
}

START_TEST(equal_rules_lie_once)
{
    rule_pool pool = {0};
    const trama_rule one = numbered(1), other = numbered(2), again = numbered(1);
    const trama_rule *a = rule_pool_take(&pool, &one), *b = rule_pool_take(&pool, &other);
    ck_assert_ptr_ne(a, &one);
    ck_assert_ptr_ne(a, b);
    ck_assert_ptr_eq(rule_pool_take(&pool, &again), a);
    rule_pool_release(&pool, a); /* taken twice: it stays */
    ck_assert_int_eq(a->factor[0].extent, 1);
    ck_assert_ptr_eq(rule_pool_take(&pool, &one), a);
    rule_pool_free(&pool);
}
END_TEST

/* As a loop in eager mode does, whose ops have other extents each time. */
START_TEST(a_pool_does_not_grow_by_rules_that_are_gone)
{
    rule_pool pool = {0};
    const trama_rule first = numbered(-5), *kept = rule_pool_take(&pool, &first);
    for (int i = 0; i < 10000; i++) {
        const trama_rule rule = numbered(i);
        rule_pool_release(&pool, rule_pool_take(&pool, &rule));
    }
    ck_assert_int_le(pool.rules.n, 16);
    ck_assert_int_le(pool.by_content.n, 16);
    ck_assert_ptr_eq(rule_pool_take(&pool, &first), kept);
    rule_pool_release(&pool, NULL);
    rule_pool_free(&pool);
}
END_TEST

START_TEST(layers_of_a_program_share_their_rules)
{
    trama_program *p = trama_program_create();
    trama_value *x = trama_input(p, "x", TRAMA_F32, TRAMA_SHAPE(8, 8));
    for (int i = 0; i < 100; i++)
        x = trama_relu(trama_matmul(x, x));
    ck_assert_int_eq(p->nodes.n, 200);
    ck_assert_int_eq(p->rules.rules.n, 2);
    trama_program *copy = program_copy(p);
    ck_assert_int_eq(copy->rules.rules.n, 2);
    trama_program_destroy(&p);
    ck_assert_int_eq(copy->nodes.at[199]->rule->n_in, 1);
    trama_program_destroy(&copy);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {equal_rules_lie_once, a_pool_does_not_grow_by_rules_that_are_gone,
                            layers_of_a_program_share_their_rules};
    return suite_run("rule_pool", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
