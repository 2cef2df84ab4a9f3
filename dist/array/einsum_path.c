/* SPDX-License-Identifier: Apache-2.0 */
/* Of at most 5 terms the order with the fewest multiplications, by trying all; of more opt_einsum's greedy one. */
#include "einsum_path.h"

#include <math.h>
#include <string.h>

enum { MOST_TRIED = 5 };

typedef struct path {
    label_set result;
    const int64_t *extent;
} path;

static double points(const path *s, label_set labels)
{
    double count = 1;
    for (int label = 0; label < LABELS; label++)
        if (labels >> label & 1)
            count *= s->extent[label] == TRAMA_ANY ? 1024 : (double)s->extent[label];
    return count;
}

label_set einsum_kept(int n, const label_set *terms, label_set result, label_pair p)
{
    label_set kept = result;
    for (int i = 0; i < n; i++)
        kept |= i == p.a || i == p.b ? 0 : terms[i];
    return kept;
}

/* The next pair in the order (0, 1), (0, 2), .. (n - 2, n - 1). */
static void advance(int n, label_pair *p)
{
    if (++p->b == n)
        p->b = ++p->a + 1;
}

/* The terms with the product in the place of a and without b. */
static void join(const path *s, int n, label_set *terms, label_pair p)
{
    terms[p.a] = (terms[p.a] | terms[p.b]) & einsum_kept(n, terms, s->result, p);
    for (int i = p.b; i + 1 < n; i++)
        terms[i] = terms[i + 1];
}

/* The least number of multiplications of all orders, and the first pair of that order. */
static double best_order(const path *s, int n, const label_set *terms, label_pair *first)
{
    double least = n > 1 ? INFINITY : 0;
    *first = (label_pair){0, 1};
    for (label_pair p = {0, 1}; p.a < n - 1; advance(n, &p)) {
        label_set left[MOST_TRIED];
        label_pair later;
        memcpy(left, terms, (size_t)n * sizeof *terms);
        join(s, n, left, p);
        const double cost = points(s, terms[p.a] | terms[p.b]) + best_order(s, n - 1, left, &later);
        if (cost < least) {
            least = cost;
            *first = p;
        }
    }
    return least;
}

/* The pair whose product is smallest, compared with its operands. */
static label_pair greedy_pair(const path *s, int n, const label_set *terms)
{
    label_pair best = {0, 1};
    double least = INFINITY;
    for (label_pair p = {0, 1}; p.a < n - 1; advance(n, &p)) {
        const label_set product = (terms[p.a] | terms[p.b]) & einsum_kept(n, terms, s->result, p);
        const double cost = points(s, product) - points(s, terms[p.a]) - points(s, terms[p.b]);
        if (cost < least) {
            least = cost;
            best = p;
        }
    }
    return best;
}

label_pair einsum_next_pair(int n, const label_set *terms, label_set result, const int64_t *extent)
{
    const path s = {result, extent};
    label_pair first;
    if (n > MOST_TRIED)
        return greedy_pair(&s, n, terms);
    best_order(&s, n, terms, &first);
    return first;
}
