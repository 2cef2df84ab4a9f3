/* SPDX-License-Identifier: Apache-2.0 */
/* Layers that other ops compute: dropout, gated units, rotary embedding. */
#include <math.h>

#include "families.h"
#include "trama_array.h"
#include "trama_composed.h"
#include "trama_network.h"

trama_value *trama_dropout_at(trama_where where, trama_value *x, double probability, uint64_t seed, uint32_t stream)
{
    if (!x)
        return NULL;
    if (!(probability >= 0 && probability < 1))
        return program_fail(x->program, where, TRAMA_E_ARGUMENT,
                            "dropout of %s: probability %g; it is 0 or more, below 1", x->name, probability);
    if (trama_shape_count(x->shape) < 0)
        return program_fail(x->program, where, TRAMA_E_SHAPE, "dropout of %s: a dim is only known when fed", x->name);
    if (probability == 0)
        return x;
    trama_value *u = trama_uniform_at(where, x->program, TRAMA_F32, x->shape, 0, 1, seed, stream);
    trama_value *kept = pattern_for(where, trama_greater_equal_at(where, u, scalar_like(where, u, probability)), x);
    return trama_select_at(where, kept, trama_scale_at(where, x, 1 / (1 - probability)), scalar_like(where, x, 0));
}

/* ---- Gated units ---- */

typedef trama_value *unary(trama_where where, trama_value *x);

/* The halves of dim: the gate of one times the other. */
static trama_value *gated(trama_where where, const char *name, trama_value *x, int dim, unary *gate, int of)
{
    if (!x || !is_real(where, name, x))
        return NULL;
    const int at = dim < 0 ? dim + x->shape.ndim : dim;
    if (at < 0 || at >= x->shape.ndim || x->shape.dim[at] == TRAMA_ANY || x->shape.dim[at] % 2)
        return program_fail(x->program, where, TRAMA_E_SHAPE, "%s of %s: dim %d is not there, or has no even extent",
                            name, x->name, dim);
    trama_value *half[] = {trama_part_at(where, x, at, 2, 0), trama_part_at(where, x, at, 2, 1)};
    return trama_mul_at(where, gate(where, half[of]), half[1 - of]);
}

trama_value *trama_glu_at(trama_where where, trama_value *x, int dim)
{
    return gated(where, "glu", x, dim, trama_sigmoid_at, 1);
}

trama_value *trama_swiglu_at(trama_where where, trama_value *x, int dim)
{
    return gated(where, "swiglu", x, dim, trama_silu_at, 0);
}

trama_value *trama_geglu_at(trama_where where, trama_value *x, int dim)
{
    return gated(where, "geglu", x, dim, trama_gelu_at, 0);
}

/* ---- Rotary embedding ---- */

/* The angles of all positions, [n, d / 2]. */
static trama_value *angles(trama_where where, const trama_value *x, double base, int64_t first)
{
    const int64_t n = x->shape.dim[x->shape.ndim - 2], d = x->shape.dim[x->shape.ndim - 1];
    trama_value *exponent =
        trama_arange_at(where, x->program, TRAMA_F64, d / 2, 0, -2 * log(base) / (double)(d ? d : 1));
    trama_value *position = trama_arange_at(where, x->program, TRAMA_F64, n, (double)first, 1);
    return trama_outer_at(where, position, trama_exp_at(where, exponent));
}

trama_value *trama_rotary_at(trama_where where, trama_value *x, double base, int64_t first, bool interleaved)
{
    if (!x)
        return NULL;
    const int last = x->shape.ndim - 1;
    const int64_t d = last < 1 || x->shape.dim[last - 1] == TRAMA_ANY ? 1 : x->shape.dim[last];
    if (d == TRAMA_ANY || d % 2 || !(base > 0))
        return program_fail(x->program, where, TRAMA_E_SHAPE,
                            "rotary of %s: it needs 2 dims of known extents, the last one even, and a base above 0",
                            x->name);
    trama_value *turn = angles(where, x, base, first);
    trama_value *cosine = pattern_for(where, trama_cast_at(where, trama_cos_at(where, turn), x->dtype), x);
    trama_value *sine = pattern_for(where, trama_cast_at(where, trama_sin_at(where, turn), x->dtype), x);
    trama_value *a = interleaved ? trama_slice_by_at(where, x, last, 0, d / 2, 2) : trama_part_at(where, x, last, 2, 0);
    trama_value *b =
        interleaved ? trama_slice_by_at(where, x, last, d > 1, d / 2, 2) : trama_part_at(where, x, last, 2, 1);
    trama_value *turned[] = {
        trama_sub_at(where, trama_mul_at(where, a, cosine), trama_mul_at(where, b, sine)),
        trama_add_at(where, trama_mul_at(where, a, sine), trama_mul_at(where, b, cosine)),
    };
    if (!interleaved)
        return trama_concat_at(where, last, 2, turned);
    return trama_flatten_at(where, trama_stack_at(where, last + 1, 2, turned), last, last + 1);
}
