/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of plans: which plan a key finds, and which plans go when a part has as many as it may keep. */
#include <check.h>

#include "plan_cache.h"
#include "suite.h"

enum { MOST_OF_TARGET = 8, MOST_OF_INPUT = 16 };

static const int first_part, second_part;

static plan_key key_of(plan_use use, const void *part, const int64_t *word)
{
    return (plan_key){use, part, word, sizeof *word};
}

/* Entered as executables do it; how many there are then. */
static int keep(plan_cache *c, plan_use use, const void *part, int64_t word)
{
    const plan_key key = key_of(use, part, &word);
    if (plan_cache_is_full(c, &key))
        plan_cache_shrink(c, &key);
    plan_cache_keep(c, &key, NULL, NULL, 0, NULL);
    return c->n;
}

static kept_plan *find(plan_cache *c, plan_use use, const void *part, int64_t word)
{
    const plan_key key = key_of(use, part, &word);
    return plan_cache_find(c, &key, NULL);
}

START_TEST(a_key_finds_its_plan_and_no_other)
{
    plan_cache c = {0};
    for (int i = 0; i < 1000; i++) /* the table grows several times */
        keep(&c, PLAN_READ, i % 2 ? &first_part : &second_part, i);
    for (int i = 0; i < 1000; i++) {
        const kept_plan *k = find(&c, PLAN_READ, i % 2 ? &first_part : &second_part, i);
        ck_assert(k && *(const int64_t *)k->key.bytes == i);
        ck_assert_ptr_null(find(&c, PLAN_READ, i % 2 ? &second_part : &first_part, i));
        ck_assert_ptr_null(find(&c, PLAN_MOVE, i % 2 ? &first_part : &second_part, i));
    }
    const int32_t half = 3;
    ck_assert_ptr_null(plan_cache_find(&c, &(plan_key){PLAN_READ, &first_part, &half, sizeof half}, NULL));
    plan_cache_free(&c);
    ck_assert_int_eq(c.n, 0);
}
END_TEST

START_TEST(a_full_part_loses_the_plans_that_were_not_used_lately)
{
    plan_cache c = {0};
    for (int i = 0; i < MOST_OF_TARGET; i++)
        keep(&c, PLAN_TARGET, &first_part, i);
    find(&c, PLAN_TARGET, &first_part, 0);
    keep(&c, PLAN_TARGET, &first_part, MOST_OF_TARGET);
    static const bool stays[] = {true, false, false, false, false, true, true, true, true};
    for (int i = 0; i <= MOST_OF_TARGET; i++)
        ck_assert_msg(!find(&c, PLAN_TARGET, &first_part, i) != stays[i], "plan %d", i);
    plan_cache_free(&c);
}
END_TEST

START_TEST(a_question_does_not_count_as_use)
{
    plan_cache c = {0};
    for (int i = 0; i < MOST_OF_TARGET; i++)
        keep(&c, PLAN_TARGET, &first_part, i);
    const int64_t oldest = 0;
    const plan_key key = key_of(PLAN_TARGET, &first_part, &oldest);
    ck_assert_ptr_nonnull(plan_cache_look(&c, &key));
    keep(&c, PLAN_TARGET, &first_part, MOST_OF_TARGET);
    ck_assert_ptr_null(plan_cache_look(&c, &key));
    plan_cache_free(&c);
}
END_TEST

START_TEST(each_part_has_a_limit_of_its_own)
{
    plan_cache c = {0};
    int n = 0;
    for (int i = 0; i < MOST_OF_INPUT; i++) {
        keep(&c, PLAN_INPUT, &first_part, i);
        n = keep(&c, PLAN_INPUT, &second_part, i);
    }
    ck_assert_int_eq(n, 2 * MOST_OF_INPUT);
    for (int i = 0; i < 5 * MOST_OF_INPUT; i++)
        ck_assert_int_le(keep(&c, PLAN_TARGET, &first_part, i), n + MOST_OF_TARGET);
    plan_cache_free(&c);
}
END_TEST

/* A reading holds the values of a run, whose plan holds its inputs: what is held stays, whatever was used since. */
START_TEST(a_held_plan_stays_until_its_holder_goes)
{
    plan_cache c = {0};
    instance input = {.holders = 2}; /* this test is the second holder, so that nothing is freed */
    const value_ref at = {&input, 0};
    const int64_t word = 1;
    const plan_key fed = key_of(PLAN_INPUT, &first_part, &word), run = key_of(PLAN_TARGET, &first_part, &word);
    kept_plan *k = plan_cache_keep(&c, &fed, NULL, NULL, 0, NULL);
    k->taken = true;
    plan_cache_keep(&c, &run, NULL, NULL, 1, &at);
    ck_assert_int_eq(input.holders, 3);
    plan_cache_drop(&c, plan_names, &input);
    ck_assert_int_eq(input.holders, 2);
    ck_assert_int_eq(c.n, 1);
    for (int i = 2; i < 5 * MOST_OF_INPUT; i++)
        keep(&c, PLAN_INPUT, &first_part, i);
    ck_assert_ptr_null(plan_cache_find(&c, &fed, NULL)); /* it is taken */
    k->taken = false;
    ck_assert_ptr_eq(plan_cache_find(&c, &fed, NULL), k);
    plan_cache_free(&c);
}
END_TEST

START_TEST(a_user_is_told_when_the_plan_that_it_used_last_goes)
{
    plan_cache c = {0};
    const int64_t words[] = {1, 2};
    const plan_key keys[] = {key_of(PLAN_TARGET, &first_part, &words[0]), key_of(PLAN_TARGET, &first_part, &words[1])};
    kept_plan *last = NULL, *made[2];
    for (int i = 0; i < 2; i++)
        made[i] = plan_cache_keep(&c, &keys[i], NULL, NULL, 0, NULL);
    for (int i = 0; i < 6; i++) {
        ck_assert_ptr_eq(plan_cache_find(&c, &keys[i / 2 % 2], &last), made[i / 2 % 2]);
        ck_assert_ptr_eq(last, made[i / 2 % 2]);
    }
    for (int64_t i = 10; i < 30; i++)
        keep(&c, PLAN_TARGET, &first_part, i);
    ck_assert_ptr_null(last);
    plan_cache_free(&c);
}
END_TEST

START_TEST(shapes_of_different_ranks_are_different_keys)
{
    shape_words a, b;
    plan_key one = plan_key_of_shape(PLAN_INPUT, &first_part, TRAMA_SHAPE(3), &a);
    plan_key two = plan_key_of_shape(PLAN_INPUT, &first_part, TRAMA_SHAPE(3, 1), &b);
    plan_cache c = {0};
    plan_cache_keep(&c, &one, NULL, NULL, 0, NULL);
    ck_assert_ptr_null(plan_cache_find(&c, &two, NULL));
    one = plan_key_of_shape(PLAN_INPUT, &first_part, TRAMA_SHAPE(3), &b);
    ck_assert_ptr_nonnull(plan_cache_find(&c, &one, NULL));
    plan_cache_free(&c);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        a_key_finds_its_plan_and_no_other,
        a_full_part_loses_the_plans_that_were_not_used_lately,
        a_question_does_not_count_as_use,
        each_part_has_a_limit_of_its_own,
        a_held_plan_stays_until_its_holder_goes,
        a_user_is_told_when_the_plan_that_it_used_last_goes,
        shapes_of_different_ranks_are_different_keys,
    };
    return suite_run("plan_cache", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
