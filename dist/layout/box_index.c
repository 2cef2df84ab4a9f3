/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes sorted along the dim with the most different lower borders, so that a search visits the fewest candidates. */
#include "box_index.h"

#include <stdlib.h>

/* qsort passes no context, so each key has the dim. */
typedef struct sorted {
    int dim;
    indexed_box s;
} sorted;

static int compare_i64(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare(const void *a, const void *b)
{
    const sorted *s = a, *t = b;
    int order = s->s.b.ndim ? compare_i64(s->s.b.lo[s->dim], t->s.b.lo[s->dim]) : 0;
    order = order ? order : box_compare(&s->s.b, &t->s.b);
    const int keys[][2] = {{s->s.term, t->s.term}, {s->s.place, t->s.place}, {s->s.number, t->s.number}};
    return order ? order : COMPARE_KEYS(keys);
}

static int compare_borders(const void *a, const void *b)
{
    return compare_i64(*(const int64_t *)a, *(const int64_t *)b);
}

static int count_borders(const box_index *s, int dim, int64_t *borders)
{
    int n = 0;
    for (int i = 0; i < s->at.n; i++)
        borders[i] = s->at.at[i].b.lo[dim];
    qsort(borders, (size_t)s->at.n, sizeof *borders, compare_borders);
    for (int i = 0; i < s->at.n; i++)
        n += i == 0 || borders[i] != borders[i - 1];
    return n;
}

static int choose_dim(const box_index *s)
{
    int64_t *borders = trama_alloc((size_t)s->at.n * sizeof *borders);
    int best = 0, most = 0;
    for (int d = 0; d < s->at.at[0].b.ndim; d++) {
        int n = count_borders(s, d, borders);
        best = n > most ? d : best;
        most = n > most ? n : most;
    }
    free(borders);
    return best;
}

void box_index_sort(box_index *s)
{
    if (!s->at.n)
        return;
    s->dim = choose_dim(s);
    s->longest = 1;
    sorted *keys = trama_alloc((size_t)s->at.n * sizeof *keys);
    for (int i = 0; i < s->at.n; i++)
        keys[i] = (sorted){s->dim, s->at.at[i]};
    qsort(keys, (size_t)s->at.n, sizeof *keys, compare);
    for (int i = 0; i < s->at.n; i++) {
        s->at.at[i] = keys[i].s;
        s->longest = max_i64(s->longest, s->at.at[i].b.ndim ? s->at.at[i].b.n[s->dim] : 1);
    }
    free(keys);
}

void box_index_unite(box_index *s)
{
    int n = 0;
    for (int i = 0; i < s->at.n; i++)
        if (!n || s->at.at[n - 1].place != s->at.at[i].place || s->at.at[n - 1].term != s->at.at[i].term ||
            !box_equal(&s->at.at[n - 1].b, &s->at.at[i].b))
            s->at.at[n++] = s->at.at[i];
    s->at.n = n;
}

void box_index_free(box_index *s)
{
    ARRAY_FREE(&s->at);
}

/* The first box whose lower border is above `border`. */
static int first_behind(const box_index *s, int64_t border)
{
    int from = 0, to = s->at.n;
    while (from < to) {
        int middle = from + (to - from) / 2;
        if (s->at.at[middle].b.lo[s->dim] <= border)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

int box_index_next(const box_index *s, const box *b, int from)
{
    box common;
    if (b->ndim && from == 0)
        from = first_behind(s, b->lo[s->dim] - s->longest);
    for (int i = from; i < s->at.n; i++) {
        const box *other = &s->at.at[i].b;
        if (b->ndim && other->lo[s->dim] >= b->lo[s->dim] + b->n[s->dim])
            return -1;
        if (box_intersect(other, b, &common))
            return i;
    }
    return -1;
}

int box_index_equal(const box_index *s, int i)
{
    int n = 1;
    while (i + n < s->at.n && s->at.at[i].term == s->at.at[i + n].term && box_equal(&s->at.at[i].b, &s->at.at[i + n].b))
        n++;
    return n;
}

bool box_index_overlap(const box_index *s, int *one, int *other)
{
    for (int i = 0; i < s->at.n; i++)
        for (int k = box_index_next(s, &s->at.at[i].b, 0); k >= 0 && k < i;
             k = box_index_next(s, &s->at.at[i].b, k + 1)) {
            if (box_equal(&s->at.at[i].b, &s->at.at[k].b) && s->at.at[i].rank != s->at.at[k].rank)
                continue;
            *one = k;
            *other = i;
            return true;
        }
    return false;
}

int64_t box_index_count(const box_index *s)
{
    int64_t count = 0;
    for (int i = 0; i < s->at.n; i += box_index_equal(s, i))
        count += box_count(&s->at.at[i].b);
    return count;
}
