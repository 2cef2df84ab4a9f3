/* SPDX-License-Identifier: Apache-2.0 */
/* The sparse table of bytes between processes. */
#include <string.h>

#include "map_traffic.h"

enum { PACK_FROM = 1 << 16 }; /* entries */

process_traffic *traffic_new(int n)
{
    process_traffic *traffic = trama_alloc(sizeof *traffic);
    traffic->n = n;
    return traffic;
}

void traffic_destroy(process_traffic **traffic)
{
    if (!*traffic)
        return;
    ARRAY_FREE(&(*traffic)->pairs);
    free(*traffic);
    *traffic = NULL;
}

void traffic_add(process_traffic *traffic, int one, int other, int64_t bytes)
{
    if (one == other || bytes <= 0 || one < 0 || other < 0 || one >= traffic->n || other >= traffic->n)
        return;
    if (traffic->pairs.n >= PACK_FROM && traffic->pairs.n / 2 >= traffic->packed)
        traffic_pack(traffic);
    *ARRAY_PUSH(&traffic->pairs) =
        (traffic_pair){one < other ? one : other, one < other ? other : one, min_i64(bytes, TRAFFIC_MOST)};
}

static int compare_others(const void *a, const void *b)
{
    const traffic_pair *p = a, *q = b;
    return (p->other > q->other) - (p->other < q->other);
}

/* Sorts the entries of one process and merges them to `to`; returns their number. */
static int pack_row(traffic_pair *row, int n, traffic_pair *to)
{
    int made = 0;
    if (n)
        qsort(row, (size_t)n, sizeof *row, compare_others);
    for (int i = 0; i < n; i++) {
        if (made && to[made - 1].other == row[i].other)
            to[made - 1].bytes = min_i64(to[made - 1].bytes + row[i].bytes, TRAFFIC_MOST);
        else
            to[made++] = row[i];
    }
    return made;
}

void traffic_pack(process_traffic *traffic)
{
    int n = traffic->pairs.n, made = 0;
    int *first = trama_alloc(((size_t)traffic->n + 2) * sizeof *first);
    traffic_pair *rows = trama_alloc((size_t)n * sizeof *rows);
    for (int i = 0; i < n; i++)
        first[traffic->pairs.at[i].one + 2]++;
    for (int p = 0; p < traffic->n; p++)
        first[p + 2] += first[p + 1];
    for (int i = 0; i < n; i++)
        rows[first[traffic->pairs.at[i].one + 1]++] = traffic->pairs.at[i];
    for (int p = 0; p < traffic->n; p++)
        made += pack_row(rows + first[p], first[p + 1] - first[p], traffic->pairs.at + made);
    traffic->pairs.n = traffic->packed = made;
    free(first);
    free(rows);
}

int64_t traffic_total(const process_traffic *traffic)
{
    int64_t total = 0;
    for (int i = 0; i < traffic->pairs.n; i++)
        total = min_i64(total + traffic->pairs.at[i].bytes, TRAFFIC_MOST);
    return total;
}
