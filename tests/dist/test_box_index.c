/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of the boxes that hosts state: overlaps, copies, and the number of elements. */
#include <check.h>

#include "stating.h"
#include "suite.h"

START_TEST(overlaps_are_found_and_copies_are_none)
{
    machine *m = machine_uniform(3, 1);
    int one, other;
    for (int third = 0; third < 3; third++) {
        box_index s = {0};
        state_box(&s, m, 0, &(box){2, {0, 0}, {3, 4}});
        state_box(&s, m, 1, &(box){2, {3, 0}, {2, 4}});
        box added[] = {{2, {3, 0}, {2, 4}}, {2, {2, 3}, {1, 1}}, {2, {3, 0}, {2, 4}}};
        state_box(&s, m, third == 2 ? 1 : 2, &added[third]);
        box_index_sort(&s);
        ck_assert_int_eq(box_index_overlap(&s, &one, &other), third > 0);
        if (third == 0)
            ck_assert_int_eq(box_index_count(&s), 20);
        box_index_free(&s);
    }
    machine_destroy(&m);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        overlaps_are_found_and_copies_are_none,
    };
    return suite_run("box_index", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
