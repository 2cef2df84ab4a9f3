/* SPDX-License-Identifier: Apache-2.0 */
/* Builders of the calls in attention_cases.def. */
#include "cases_inside.h"

/* Of the sizes, the first is the number of groups, or of heads in one group; n is 6 in the generic sizes, which differs
 * from all. */
static int64_t queries(int variant)
{
    static const int64_t n[N_VARIANTS] = {6, 9, 2, 3, 4, 1, 8, 1};
    return n[variant];
}

/* q, k, v and the mask. integer: heads of a group, 0: three in one group that all share; causal; 1: a mask with all
 * dims, 2: one for each key. */
static int operands(trama_program *p, const op_case *c, int variant, trama_value **in)
{
    const int64_t *size = sizes[variant], per_group = c->integer[0] ? c->integer[0] : 1;
    const int64_t groups = c->integer[0] ? size[0] : 1, heads = c->integer[0] ? groups * per_group : size[0];
    const int64_t n = queries(variant), m = size[1], d = 4, e = 3;
    int count = 0;
    in[count++] = operand(p, TRAMA_F64, TRAMA_SHAPE(heads, n, d));
    in[count++] = operand(p, TRAMA_F64, TRAMA_SHAPE(groups, m, d));
    in[count++] = operand(p, TRAMA_F64, TRAMA_SHAPE(groups, m, e));
    if (c->integer[2])
        in[count++] = c->integer[2] == 1 ? operand(p, TRAMA_F64, TRAMA_SHAPE(heads, n, m))
                                         : operand(p, TRAMA_BOOL, TRAMA_SHAPE(m));
    return count;
}

static trama_value *attention_call(trama_program *p, const op_case *c, int n, trama_value *const *in)
{
    return apply(p, c, n, in, &(trama_attributes){.integer = {c->integer[1]}, .real = {c->real}});
}

trama_value *attended(trama_program *p, const op_case *c, int variant)
{
    trama_value *in[4];
    int n = operands(p, c, variant, in);
    return attention_call(p, c, n, in);
}

trama_value *attention_derived(trama_program *p, const op_case *c, int variant)
{
    trama_value *in[7];
    int n = operands(p, c, variant, in);
    const trama_shape rows = trama_shape_of(2, in[0]->shape.dim);
    in[n++] = operand(p, TRAMA_F64, rows);
    in[n++] = operand(p, TRAMA_F64, rows);
    in[n++] = operand(p, TRAMA_F64, TRAMA_SHAPE(rows.dim[0], rows.dim[1], 3));
    return attention_call(p, c, n, in);
}
