/* SPDX-License-Identifier: Apache-2.0 */
#include "intervals.h"

void intervals_add(intervals *list, int group, int64_t lo, int64_t hi, int what)
{
    *ARRAY_PUSH(list) = (interval){.group = group, .what = what, .lo = lo, .hi = hi};
}

static int compare_intervals(const void *a, const void *b)
{
    const interval *x = a, *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return (x->lo > y->lo) - (x->lo < y->lo);
}

void intervals_sort(intervals *list)
{
    if (list->n)
        qsort(list->at, (size_t)list->n, sizeof *list->at, compare_intervals);
    for (int i = 0; i < list->n; i++) {
        interval *at = &list->at[i];
        at->reach = i && at[-1].group == at->group ? max_i64(at[-1].reach, at->hi) : at->hi;
    }
}

/* The index of the last interval that comes before (group, hi) in order. It may be of an earlier group; -1: none. */
int intervals_begin(const intervals *list, int group, int64_t hi)
{
    int low = 0, high = list->n;
    while (low < high) {
        int middle = low + (high - low) / 2;
        const interval *at = &list->at[middle];
        if (at->group < group || (at->group == group && at->lo < hi))
            low = middle + 1;
        else
            high = middle;
    }
    return low - 1;
}

int intervals_next(const intervals *list, int group, int64_t lo, int from)
{
    for (int i = from; i >= 0 && list->at[i].group == group && list->at[i].reach > lo; i--)
        if (list->at[i].hi > lo)
            return i;
    return -1;
}
