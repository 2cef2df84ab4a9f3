/* SPDX-License-Identifier: Apache-2.0 */
/* Builders of the calls in index_cases.def. Indices point into dims of at least 4 elements, with 0 to 3 or -3 to 3. */
#include "cases_inside.h"
#include "trama_array.h"

/* The block of the sizes, whose dim `axis` has at least 4 elements. */
static trama_shape full_block(int variant, int64_t axis)
{
    trama_shape shape = block(variant);
    shape.dim[axis] = shape.dim[axis] < 4 ? 4 : shape.dim[axis];
    return shape;
}

/* An index of ndim dims: 5, or 5 x 2. */
static trama_value *index_of(trama_program *p, int64_t ndim)
{
    trama_shape shapes[] = {TRAMA_SCALAR, TRAMA_SHAPE(5), TRAMA_SHAPE(5, 2)};
    return operand(p, TRAMA_I64, shapes[ndim]);
}

/* The shape with the dims of the index in the place of dim axis. */
static trama_shape part_of(trama_shape full, trama_shape index, int64_t axis)
{
    trama_shape shape = {0};
    for (int d = 0; d < full.ndim; d++)
        if (d != axis)
            shape.dim[shape.ndim++] = full.dim[d];
        else
            for (int i = 0; i < index.ndim; i++)
                shape.dim[shape.ndim++] = index.dim[i];
    return shape;
}

trama_value *gathered(trama_program *p, const op_case *c, int variant)
{
    trama_value *in[] = {operand(p, TRAMA_F64, full_block(variant, c->integer[0])), index_of(p, c->integer[1])};
    return apply(p, c, 2, in, &(trama_attributes){.integer = {c->integer[0]}});
}

trama_value *gathered_grad(trama_program *p, const op_case *c, int variant)
{
    trama_shape full = full_block(variant, c->integer[0]);
    trama_value *index = index_of(p, c->integer[1]);
    trama_value *in[] = {operand(p, TRAMA_F64, part_of(full, index->shape, c->integer[0])), index,
                         operand(p, TRAMA_F64, full)};
    return apply(p, c, 3, in, &(trama_attributes){.integer = {c->integer[0]}});
}

trama_value *scattered(trama_program *p, const op_case *c, int variant)
{
    trama_shape full = full_block(variant, c->integer[0]);
    trama_value *index = index_of(p, c->integer[1]);
    trama_value *in[] = {operand(p, TRAMA_F64, full), index,
                         operand(p, TRAMA_F64, part_of(full, index->shape, c->integer[0]))};
    return apply(p, c, 3, in, &(trama_attributes){.integer = {c->integer[0], c->integer[2]}});
}

/* The block with 3 elements along the axis. */
static trama_shape some_along(trama_shape full, int64_t axis)
{
    full.dim[axis] = 3;
    return full;
}

/* gather_along, or its gradient */
trama_value *gathered_along(trama_program *p, const op_case *c, int variant)
{
    const bool back = trama_op_find(c->op)->n_in == 3;
    trama_shape full = full_block(variant, c->integer[0]), some = some_along(full, c->integer[0]);
    trama_value *in[] = {operand(p, TRAMA_F64, back ? some : full), operand(p, TRAMA_I64, some),
                         back ? operand(p, TRAMA_F64, full) : NULL};
    return apply(p, c, back ? 3 : 2, in, &(trama_attributes){.integer = {c->integer[0]}});
}

trama_value *scattered_along(trama_program *p, const op_case *c, int variant)
{
    trama_shape full = full_block(variant, c->integer[0]), some = some_along(full, c->integer[0]);
    trama_value *in[] = {operand(p, TRAMA_F64, full), operand(p, TRAMA_I64, some), operand(p, TRAMA_F64, some)};
    return apply(p, c, 3, in, &(trama_attributes){.integer = {c->integer[0], c->integer[1]}});
}

trama_value *joined(trama_program *p, const op_case *c, int variant)
{
    trama_value *in[TRAMA_MAX_OPERANDS];
    for (int i = 0; i < c->integer[1]; i++) {
        trama_shape shape = c->integer[1] < 4 ? block(variant) : plane(variant);
        shape.dim[c->integer[0]] = i % 3 == 2 ? 1 : shape.dim[c->integer[0]] + i % 3;
        in[i] = operand(p, TRAMA_F64, shape);
    }
    return apply(p, c, (int)c->integer[1], in, &(trama_attributes){.integer = {c->integer[0]}});
}

trama_value *strided(trama_program *p, const op_case *c, int variant)
{
    trama_value *x = operand(p, TRAMA_F64, block(variant));
    return apply(p, c, 1, &x, &(trama_attributes){.integer = {c->integer[0], c->integer[1], c->integer[2]}});
}

trama_value *flipped(trama_program *p, const op_case *c, int variant)
{
    trama_value *x = operand(p, TRAMA_F64, block(variant));
    return apply(p, c, 1, &x, &(trama_attributes){.integer = {c->integer[0]}});
}
