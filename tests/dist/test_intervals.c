/* SPDX-License-Identifier: Apache-2.0 */
/* Intervals by group, against a loop over all of them. */
#include <check.h>
#include <string.h>

#include "intervals.h"
#include "suite.h"

enum { MOST = 60, GROUPS = 4, LONG = 24, CASES = 400 };

static bool meets(const interval *i, int group, int64_t lo, int64_t hi)
{
    return i->group == group && i->lo < hi && i->hi > lo;
}

static int drawn(uint64_t *state, int below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (int)((*state >> 33) % (uint64_t)below);
}

/* Short and long ones, empty ones too. */
static void draw_intervals(uint64_t *state, intervals *list)
{
    const int n = drawn(state, MOST);
    for (int i = 0; i < n; i++) {
        const int lo = drawn(state, LONG);
        intervals_add(list, drawn(state, GROUPS), lo, lo + drawn(state, drawn(state, 4) ? 4 : LONG), i);
    }
}

START_TEST(those_that_meet_an_interval_are_found_once_each)
{
    uint64_t state = 7;
    for (int c = 0; c < CASES; c++) {
        intervals list = {0};
        interval all[MOST];
        draw_intervals(&state, &list);
        if (list.n)
            memcpy(all, list.at, (size_t)list.n * sizeof *all); /* before they are sorted */
        intervals_sort(&list);
        for (int group = -1; group <= GROUPS; group++)
            for (int lo = -1; lo < LONG + 2; lo++)
                for (int hi = lo; hi < LONG + 4; hi += 3) {
                    int found[MOST] = {0};
                    for (int i = intervals_begin(&list, group, hi); (i = intervals_next(&list, group, lo, i)) >= 0; i--)
                        found[list.at[i].what]++;
                    bool right = true;
                    for (int i = 0; i < list.n; i++)
                        right &= found[i] == meets(&all[i], group, lo, hi);
                    ck_assert_msg(right, "case %d: group %d, %d to %d", c, group, lo, hi);
                }
        ARRAY_FREE(&list);
    }
}
END_TEST

int main(void)
{
    const TTest *tests[] = {those_that_meet_an_interval_are_found_once_each};
    return suite_run("intervals", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
