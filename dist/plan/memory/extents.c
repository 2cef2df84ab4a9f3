/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of an arena by tenant. */
#include "extents.h"

#include <string.h>

/* The first extent that ends behind a byte. */
static int find_at(const extents *list, int64_t at)
{
    int lo = 0, hi = list->n;
    while (lo < hi) {
        const int middle = (lo + hi) / 2;
        if (list->at[middle].to <= at)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

void extents_give(extents *list, extent e)
{
    const int at = find_at(list, e.from), old = list->n;
    int n = 0, m = 0;
    while (at + n < old && list->at[at + n].from < e.to)
        n++;
    extent parts[3]; /* e, and what the first and the last of n others have before and behind it */
    if (n && list->at[at].from < e.from)
        parts[m++] = (extent){list->at[at].from, e.from, list->at[at].tenant};
    parts[m++] = e;
    if (n && list->at[at + n - 1].to > e.to)
        parts[m++] = (extent){e.to, list->at[at + n - 1].to, list->at[at + n - 1].tenant};
    for (int i = n; i < m; i++)
        *ARRAY_PUSH(list) = e;
    memmove(&list->at[at + m], &list->at[at + n], (size_t)(old - at - n) * sizeof *list->at);
    memcpy(&list->at[at], parts, (size_t)m * sizeof *parts);
    list->n = old - n + m;
}

void extents_fill(extents *list, extent e)
{
    for (int64_t from = e.from, to; from < e.to; from = to) {
        const int at = find_at(list, from);
        const extent *next = at < list->n ? &list->at[at] : NULL;
        const bool taken = next && next->from <= from;
        to = next ? min_i64(e.to, taken ? next->to : next->from) : e.to;
        if (!taken)
            extents_give(list, (extent){from, to, e.tenant});
    }
}

void extents_find(const extents *list, extent e, tenant_list *found)
{
    for (int i = find_at(list, e.from); i < list->n && list->at[i].from < e.to; i++) {
        bool known = list->at[i].tenant == e.tenant;
        for (int k = 0; k < found->n && !known; k++)
            known = found->at[k] == list->at[i].tenant;
        if (!known)
            *ARRAY_PUSH(found) = list->at[i].tenant;
    }
}
