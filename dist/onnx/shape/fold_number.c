/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic on known tensors, element by element. An element that is only known when fed gives one of its kind. */
#include <math.h>
#include <string.h>

#include "onnx_ops.h"

/* ---- Numbers ---- */

static int64_t open_of(const number *x)
{
    return x[0].open || x[1].open ? OPEN_COMPUTED : 0;
}

static bool is_same_extent(const number *x)
{
    return x[0].open && x[0].open == x[1].open && x[0].open != OPEN_COMPUTED;
}

/* The same where a number that is known to be `neutral` leaves the other as it is: on the right, or on either side. */
static int64_t open_beside(const number *x, double neutral, bool either)
{
    if (!x[1].open && x[1].r == neutral)
        return x[0].open;
    return either && !x[0].open && x[0].r == neutral ? x[1].open : open_of(x);
}

static number result(const number *x, int64_t open, int64_t i, double r)
{
    return (number){.real = x->real, .open = open, .i = i, .r = x->real ? r : (double)i};
}

/* Integers wrap around. */
#define OF_INTEGERS(op) (int64_t)((uint64_t)x[0].i op(uint64_t) x[1].i)
number number_add(const number *x)
{
    return result(x, open_beside(x, 0, true), OF_INTEGERS(+), x[0].r + x[1].r);
}

/* An extent less itself is 0. */
number number_sub(const number *x)
{
    if (is_same_extent(x))
        return result(x, 0, 0, 0);
    return result(x, open_beside(x, 0, false), OF_INTEGERS(-), x[0].r - x[1].r);
}

/* An extent times a known integer is a multiple of it. */
number number_mul(const number *x)
{
    const number *open = x[0].open ? &x[0] : &x[1], *by = x[0].open ? &x[1] : &x[0];
    const int64_t scaled = open->open && !by->open && !x->real ? open_scaled(open->open, by->i, 1) : OPEN_COMPUTED;
    return result(x, scaled > 0 ? scaled : open_beside(x, 1, true), OF_INTEGERS(*), x[0].r * x[1].r);
}

/* Integers are divided as in C; by 0 they give 0, as no value is right. */
number number_div(const number *x)
{
    bool none = x[0].real || x[1].i == 0 || (x[0].i == INT64_MIN && x[1].i == -1);
    const int64_t scaled = x[0].open && !x[1].open && !x->real ? open_scaled(x[0].open, 1, x[1].i) : OPEN_COMPUTED;
    return result(x, scaled > 0 ? scaled : open_beside(x, 1, false), none ? 0 : x[0].i / x[1].i, x[0].r / x[1].r);
}

number number_max(const number *x)
{
    return result(x, open_of(x), max_i64(x[0].i, x[1].i), fmax(x[0].r, x[1].r));
}

number number_min(const number *x)
{
    return result(x, open_of(x), min_i64(x[0].i, x[1].i), fmin(x[0].r, x[1].r));
}

number number_neg(const number *x)
{
    return number_sub((number[]){{.real = x->real, .r = 0}, *x});
}

number number_abs(const number *x)
{
    return !x->open && x->r < 0 ? number_neg(x) : *x;
}

static number comparison(const number *x, bool integers, bool reals)
{
    bool holds = x->real ? reals : integers;
    return (number){.open = open_of(x), .i = holds, .r = holds};
}

number number_less(const number *x)
{
    return comparison(x, x[0].i < x[1].i, x[0].r < x[1].r);
}

number number_greater(const number *x)
{
    return number_less((number[]){x[1], x[0]});
}

number number_sqrt(const number *x)
{
    return result(x, x->open ? OPEN_COMPUTED : 0, x->i, sqrt(x->r));
}

number number_floor(const number *x)
{
    return result(x, x->open ? OPEN_COMPUTED : 0, x->i, floor(x->r));
}

number number_ceil(const number *x)
{
    return result(x, x->open ? OPEN_COMPUTED : 0, x->i, ceil(x->r));
}

number number_not(const number *x)
{
    return (number){.open = x->open ? OPEN_COMPUTED : 0, .i = !x->i, .r = !x->i};
}

/* An extent is never negative, and equal to itself; a number that is computed of some may be negative. */
number number_equal(const number *x)
{
    const bool differs = (x[0].open > 0 && !x[1].open && x[1].r < 0) || (x[1].open > 0 && !x[0].open && x[0].r < 0),
               same = is_same_extent(x),
               equal = same || (!differs && (x[0].real ? x[0].r == x[1].r : x[0].i == x[1].i));
    return (number){.open = differs || same ? 0 : open_of(x), .i = equal, .r = equal};
}

number number_where(const number *x)
{
    number chosen = x[0].i ? x[1] : x[2];
    chosen.open = x[0].open ? OPEN_COMPUTED : chosen.open;
    return chosen;
}

/* ---- Tensors ---- */

enum { MOST_FOLDED = 1 << 20 /* elements; larger results are left to the run */ };

/* The shape of all operands together, which broadcast. */
static bool broadcast_shape(onnx_node *n, trama_shape *shape)
{
    *shape = node_shape(n, 0);
    for (int i = 1; i < node_inputs(n); i++) {
        trama_shape other = node_shape(n, i), wide = shape->ndim > other.ndim ? *shape : other;
        for (int d = 1; d <= shape->ndim && d <= other.ndim; d++) {
            int64_t a = shape->dim[shape->ndim - d], b = other.dim[other.ndim - d];
            if (a != b && a != 1 && b != 1)
                return node_fail(n, TRAMA_E_SHAPE, "operands of the extents %lld and %lld do not fit", (long long)a,
                                 (long long)b);
            wide.dim[wide.ndim - d] = a == 1 ? b : a;
        }
        *shape = wide;
    }
    int64_t count = trama_shape_count(*shape);
    return count >= 0 && count <= MOST_FOLDED;
}

/* The index in a tensor of shape `in` of element i of a tensor of shape `out`. */
static int64_t broadcast_index(trama_shape in, trama_shape out, int64_t i)
{
    int64_t at = 0, stride = 1;
    for (int d = 1; d <= out.ndim; d++) {
        int64_t index = i % out.dim[out.ndim - d];
        i /= out.dim[out.ndim - d];
        if (d <= in.ndim && in.dim[in.ndim - d] != 1)
            at += index * stride;
        stride *= d <= in.ndim ? in.dim[in.ndim - d] : 1;
    }
    return at;
}

static number operand_at(onnx_node *n, int operand, trama_shape shape, int64_t i)
{
    const host_tensor *t = node_host(n, operand);
    return host_get(t, broadcast_index(t->shape, shape, i));
}

/* The op on numbers of which some may be extents. */
static number number_by(onnx_node *n, const number *x)
{
    const number y = n->op->number(x);
    if (y.open != OPEN_COMPUTED)
        return y;
    return n->op->number == number_add   ? onnx_sum_of(n->graph, x)
           : n->op->number == number_sub ? onnx_difference_of(n->graph, x)
                                         : y;
}

/* Whether an operand has extents: of many numbers the run computes the result, since no list of extents is as long. */
static bool has_open(onnx_node *n)
{
    bool has = false;
    for (int i = 0; i < node_inputs(n); i++)
        has |= node_host(n, i)->open != NULL;
    return has;
}

/* Ops of one to three operands; longer lists are taken two by two. */
ONNX_FOLD(fold_numbers)
{
    trama_shape shape;
    if (!broadcast_shape(n, &shape) || (has_open(n) && trama_shape_count(shape) > ONNX_LIST))
        return NULL;
    int count = node_inputs(n);
    trama_dtype dtype = n->op->typed == TYPED_BOOL ? TRAMA_BOOL : node_host(n, n->op->typed)->dtype;
    host_tensor *t = host_create(dtype, shape);
    for (int64_t i = 0; t && i < t->count; i++) {
        number x[3] = {operand_at(n, 0, shape, i)};
        for (int k = 1; k < count && k < 3; k++)
            x[k] = operand_at(n, k, shape, i);
        if (count == 1 && n->op->most_in > 1)
            x[1] = x[0];
        number y = number_by(n, x);
        for (int k = 2; k < count && n->op->most_in > 3; k++)
            y = number_by(n, (number[]){y, operand_at(n, k, shape, i)});
        host_set(t, i, y);
    }
    return t;
}

ONNX_FOLD(fold_copy)
{
    const host_tensor *from = node_host(n, 0);
    host_tensor *t = host_create(from->dtype, from->shape);
    if (!t)
        return node_fail(n, TRAMA_E_MEMORY, "there is no memory for %lld elements", (long long)from->count);
    if (from->count)
        memcpy(t->data, from->data, (size_t)from->count * trama_dtype_size(from->dtype));
    if (from->open) {
        t->open = trama_alloc((size_t)from->count * sizeof *t->open);
        memcpy(t->open, from->open, (size_t)from->count * sizeof *t->open);
    }
    return t;
}

/* Whether a float can be cast to the integers that numbers are. */
static bool castable(number x)
{
    return !x.real || fabs(x.r) < 9e18;
}

ONNX_FOLD(fold_cast)
{
    enum { ONNX_BOOL = 9 };
    const host_tensor *from = node_host(n, 0);
    int64_t to = attribute_int(n, "to", 0);
    trama_dtype dtype;
    const char *name;
    bool known = to >= 0 && to <= INT32_MAX && !host_dtype((int32_t)to, &dtype, &name);
    for (int64_t i = 0; known && i < from->count; i++)
        known = castable(host_get(from, i)) && (trama_dtype_is_float(dtype) || dtype == TRAMA_I64 || to == ONNX_BOOL ||
                                                fabs(host_get(from, i).r) < 0x1p31);
    host_tensor *t = known ? host_create(dtype, from->shape) : NULL;
    for (int64_t i = 0; t && i < from->count; i++) {
        number x = host_get(from, i);
        if (to == ONNX_BOOL)
            x = (number){.open = x.open ? OPEN_COMPUTED : 0, .i = x.r != 0, .r = x.r != 0};
        else if (x.open && trama_dtype_size(dtype) < 4)
            x.open = OPEN_COMPUTED; /* may be another number */
        else if (!trama_dtype_is_float(dtype) && x.real)
            x = (number){.open = x.open, .i = (int64_t)x.r, .r = trunc(x.r)};
        host_set(t, i, x);
    }
    return t;
}

/* Of all elements of a list of extents. */
ONNX_FOLD(fold_product)
{
    const host_tensor *from = node_host(n, 0);
    onnx_ints axes = node_list(n, "axes", 1);
    unsigned dims = node_dims(n, &axes, from->shape.ndim);
    if (from->shape.ndim > 1 || (axes.given && !dims && from->shape.ndim))
        return NULL;
    host_tensor *t =
        host_create(from->dtype, attribute_int(n, "keepdims", 1) && from->shape.ndim ? TRAMA_SHAPE(1) : TRAMA_SCALAR);
    number all = number_of(1);
    all.real = trama_dtype_is_float(from->dtype);
    for (int64_t i = 0; t && i < from->count; i++)
        all = number_mul((number[]){all, host_get(from, i)});
    if (t)
        host_set(t, 0, all);
    return t;
}

/* start, start + delta, .. below limit */
ONNX_FOLD(fold_range)
{
    number x[3];
    for (int i = 0; i < 3; i++) {
        const host_tensor *t = node_host(n, i);
        if (t->count != 1)
            return node_fail(n, TRAMA_E_SHAPE, "operand %d must be a number", i);
        x[i] = host_get(t, 0);
    }
    if (x[0].open || x[1].open || x[2].open)
        return NULL;
    double count = x[2].r == 0 ? 0 : ceil((x[1].r - x[0].r) / x[2].r);
    if (!(count <= MOST_FOLDED))
        return node_fail(n, TRAMA_E_UNSUPPORTED, "%g numbers; %d are the most", count, MOST_FOLDED);
    host_tensor *t = host_create(node_host(n, 0)->dtype, TRAMA_SHAPE((int64_t)fmax(count, 0)));
    for (int64_t i = 0; t && i < t->count; i++)
        host_set(t, i, result(x, false, x[0].i + i * x[2].i, x[0].r + (double)i * x[2].r));
    return t;
}
