/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of scatters, as PyTorch's scatter and scatter_reduce with include_self have them. They are made of gathers
 * and scatters, so that they have gradients too. */
#include "families.h"
#include "trama_array.h"
#include "trama_complex.h"

/* The op whose gradients are asked for: index, dim, and whether the index is one of elements (along). */
typedef struct scattering {
    trama_where where;
    trama_value *index;
    int dim;
    bool along;
} scattering;

static trama_value *at_index(const scattering *s, trama_value *x)
{
    return s->along ? trama_gather_along_at(s->where, x, s->index, s->dim)
                    : trama_gather_at(s->where, x, s->index, s->dim);
}

static trama_value *joined(const scattering *s, trama_value *x, trama_value *u, trama_scatter_how how)
{
    return s->along ? trama_scatter_along_at(s->where, x, s->index, u, s->dim, how)
                    : trama_scatter_at(s->where, x, s->index, u, s->dim, how);
}

/* One number in the shape of x, which may be known only when fed. */
static trama_value *filled_like(trama_where where, trama_value *x, double number)
{
    trama_value *never = x ? trama_scalar(x->program, TRAMA_BOOL, 0) : NULL;
    return trama_select_at(where, never, x, scalar_like(where, x, number));
}

/* Elements that are set give their gradient to u. Of several with one index each gets it, though the last alone is
 * there; PyTorch's scatter does the same. */
static void set_gradient(const scattering *s, const trama_node *node, trama_value *g, trama_value **d_in)
{
    d_in[2] = at_index(s, g);
    d_in[0] = joined(s, g, filled_like(s->where, node->in[2], 0), TRAMA_SCATTER_SET);
}

/* The product of all factors of a result but the element of u itself: by division where no other factor is 0 alone. */
static trama_value *products_of_others(const scattering *s, trama_value *x, trama_value *u, trama_value *g,
                                       trama_value *product)
{
    trama_where where = s->where;
    trama_value *one = scalar_like(where, u, 1), *is_zero = trama_equal_at(where, u, scalar_like(where, u, 0));
    trama_value *zeros =
        at_index(s, joined(s, filled_like(where, x, 0), trama_cast_at(where, is_zero, u->dtype), TRAMA_SCATTER_ADD));
    trama_value *alone = trama_logical_and_at(where, is_zero, trama_equal_at(where, zeros, one));
    trama_value *without = joined(s, x, trama_select_at(where, alone, one, u), TRAMA_SCATTER_MULTIPLY);
    trama_value *quotient =
        trama_div_at(where, at_index(s, trama_mul_at(where, g, product)), trama_select_at(where, is_zero, one, u));
    return trama_select_at(where, alone, at_index(s, trama_mul_at(where, g, without)), quotient);
}

static void multiply_gradient(const scattering *s, const trama_node *node, trama_value *g, trama_value **d_in)
{
    trama_value *x = trama_conj_at(s->where, node->in[0]), *u = trama_conj_at(s->where, node->in[2]);
    if (node_wants(node, 0))
        d_in[0] = trama_mul_at(s->where, g, joined(s, filled_like(s->where, x, 1), u, TRAMA_SCATTER_MULTIPLY));
    if (node_wants(node, 2))
        d_in[2] = products_of_others(s, x, u, g, trama_conj_at(s->where, node->out[0]));
}

/* All elements that are the extreme share its gradient. */
static void extreme_gradient(const scattering *s, const trama_node *node, trama_value *g, trama_value **d_in)
{
    trama_where where = s->where;
    trama_value *x = node->in[0], *u = node->in[2], *extreme = node->out[0], *zero = scalar_like(where, x, 0);
    trama_value *of_x = trama_equal_at(where, x, extreme), *of_u = trama_equal_at(where, u, at_index(s, extreme));
    trama_value *n =
        joined(s, trama_cast_at(where, of_x, x->dtype), trama_cast_at(where, of_u, x->dtype), TRAMA_SCATTER_ADD);
    trama_value *share = trama_div_at(where, g, n);
    if (node_wants(node, 0))
        d_in[0] = trama_select_at(where, of_x, share, zero);
    if (node_wants(node, 2))
        d_in[2] = trama_select_at(where, of_u, at_index(s, share), zero);
}

static void derive(const trama_node *node, bool along, trama_value *g, trama_value **d_in)
{
    const scattering s = {node->where, node->in[1], (int)node->attributes->integer[INDEX_AXIS], along};
    switch ((trama_scatter_how)node->attributes->integer[SCATTER_HOW]) {
    case TRAMA_SCATTER_MULTIPLY:
        multiply_gradient(&s, node, g, d_in);
        break;
    case TRAMA_SCATTER_MAX:
    case TRAMA_SCATTER_MIN:
        extreme_gradient(&s, node, g, d_in);
        break;
    default:
        set_gradient(&s, node, g, d_in);
    }
}

void scatter_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    derive(node, false, d_out[0], d_in);
}

void scatter_along_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    derive(node, true, d_out[0], d_in);
}
