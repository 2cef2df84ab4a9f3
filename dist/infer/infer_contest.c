/* SPDX-License-Identifier: Apache-2.0 */
/* Axes that the tensors of one op claim for different factors. It lists the ways to assign them and prefers none:
 * infer.c counts the bytes of each. */
#include "infer_inside.h"

enum { MOST_ASSIGNMENTS = 64 };

static unsigned claimed_factors(const inference *q, int axis)
{
    unsigned factors = 0;
    for (int f = 0; f < q->rule->n_factors; f++)
        for (int t = 0; t < q->n_tensors && infer_computes(q, f); t++) {
            int axes[TRAMA_MAX_AXES], n = 0;
            if (infer_uses(q, t))
                n = infer_claim(q->rule, q->mesh, t, q->given[t], f, axes);
            for (int i = 0; i < n; i++)
                factors |= (unsigned)(axes[i] == axis) << f;
        }
    return factors;
}

contest infer_contest(const inference *q)
{
    contest c = {0};
    int assignments = 1;
    for (int a = 0; a < q->mesh->ndim; a++) {
        const unsigned factors = claimed_factors(q, a);
        const int n = __builtin_popcount(factors);
        if (n < 2 || assignments * n > MOST_ASSIGNMENTS)
            continue;
        assignments *= n;
        c.axis[c.n] = a;
        c.factors[c.n++] = factors;
    }
    return c;
}

bool infer_assign(inference *q, const contest *c, int i)
{
    for (int k = 0; k < c->n; k++) {
        unsigned left = c->factors[k];
        const int n = __builtin_popcount(left);
        for (int skip = i % n; skip > 0; skip--)
            left &= left - 1;
        q->only[c->axis[k]] = (signed char)(1 + __builtin_ctz(left));
        i /= n;
    }
    return c->n && i == 0;
}
