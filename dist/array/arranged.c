/* SPDX-License-Identifier: Apache-2.0 */
/* Builders that arrange elements anew by slices, joins and reshapes. */
#include "families.h"
#include "trama_array.h"
#include "trama_composed.h"

/* dim from 0 on, of a known extent; -1 after an error on the program. */
static int known_dim(trama_where where, const char *name, const trama_value *x, int dim)
{
    const int at = dim < 0 ? dim + x->shape.ndim : dim;
    if (at >= 0 && at < x->shape.ndim && x->shape.dim[at] != TRAMA_ANY)
        return at;
    program_fail(x->program, where, TRAMA_E_SHAPE, "%s of %s: dim %d is %s", name, x->name, dim,
                 at >= 0 && at < x->shape.ndim ? "only known when fed" : "not there");
    return -1;
}

trama_value *trama_roll_at(trama_where where, trama_value *x, int dim, int64_t by)
{
    if (!x || (dim = known_dim(where, "roll", x, dim)) < 0)
        return NULL;
    const int64_t n = x->shape.dim[dim], cut = n ? ((by % n) + n) % n : 0;
    if (!cut)
        return x;
    return trama_concat_at(
        where, dim, 2,
        (trama_value *[]){trama_slice_at(where, x, dim, n - cut, cut), trama_slice_at(where, x, dim, 0, n - cut)});
}

/* ---- Repetition ---- */

/* x of as many dims as the result; like, of which the shape alone is read, has one byte an element. Beside dims that
 * are only known when fed a pattern of the repeated dims takes its place. */
trama_value *trama_broadcast_to_at(trama_where where, trama_value *x, trama_shape shape)
{
    trama_attributes a = {.integer = {[REDUCE_KEEP_DIM] = 1}};
    if (!x)
        return NULL;
    trama_shape wide = {.ndim = shape.ndim};
    const int more = shape.ndim - x->shape.ndim;
    bool fits = more >= 0 && shape.ndim <= TRAMA_MAX_NDIM;
    trama_shape pattern = shape;
    for (int d = 0; fits && d < shape.ndim; d++) {
        wide.dim[d] = d < more ? 1 : x->shape.dim[d - more];
        fits = wide.dim[d] == shape.dim[d] || (wide.dim[d] == 1 && shape.dim[d] >= 0);
        a.integer[REDUCE_AXES] |= (int64_t)(wide.dim[d] != shape.dim[d]) << d;
        pattern.dim[d] = wide.dim[d] == shape.dim[d] ? 1 : shape.dim[d];
    }
    if (!fits) {
        text t = {0};
        value_text(&t, x);
        text_add(&t, " to ");
        shape_text(&t, shape);
        program_fail(x->program, where, TRAMA_E_SHAPE,
                     "broadcast of %s: dims align at the right, and known extents of 1 are repeated", t.at);
        free(t.at);
        return NULL;
    }
    x = more ? trama_reshape_at(where, x, wide) : x;
    if (!a.integer[REDUCE_AXES] || !x)
        return x;
    if (trama_shape_count(shape) == TRAMA_ANY)
        return trama_select_at(where, trama_fill_at(where, x->program, TRAMA_BOOL, pattern, 1), x, x);
    trama_value *like = trama_fill_at(where, x->program, TRAMA_U8, shape, 0);
    return program_append(NULL, where, &trama_op_expand, 2, (trama_value *[]){x, like}, &a);
}

/* A new dim in front of dim, or behind it, is repeated and joined with it. */
static trama_value *repeat(trama_where where, const char *name, trama_value *x, int dim, int64_t times, bool each)
{
    if (!x || (dim = known_dim(where, name, x, dim)) < 0)
        return NULL;
    if (times < 0)
        return program_fail(x->program, where, TRAMA_E_ARGUMENT, "%s of %s: %lld times", name, x->name,
                            (long long)times);
    trama_value *wide = trama_unsqueeze_at(where, x, dim + each);
    if (!wide)
        return NULL;
    trama_shape shape = wide->shape;
    shape.dim[dim + each] = times;
    return trama_flatten_at(where, trama_broadcast_to_at(where, wide, shape), dim, dim + 1);
}

trama_value *trama_repeat_at(trama_where where, trama_value *x, int dim, int64_t times)
{
    return repeat(where, "repeat", x, dim, times, false);
}

trama_value *trama_repeat_each_at(trama_where where, trama_value *x, int dim, int64_t times)
{
    return repeat(where, "repeat_each", x, dim, times, true);
}

/* ---- Pads ---- */

/* A pad of x at the beginning of dim, or at its end; *extent is how much of it is wanted, and then how much it is. n is
 * the extent of x before all pads. */
typedef struct padding {
    trama_where where;
    int dim;
    int64_t n;
    double value;
    bool end;
} padding;
typedef trama_value *pad_part(const padding *p, trama_value *x, int64_t *extent);

static trama_value *pad_constant(const padding *p, trama_value *x, int64_t *extent)
{
    trama_shape shape = x->shape;
    shape.dim[p->dim] = *extent;
    return trama_fill_at(p->where, x->program, x->dtype, shape, p->value);
}

static trama_value *pad_edge(const padding *p, trama_value *x, int64_t *extent)
{
    trama_value *one = trama_slice_at(p->where, x, p->dim, p->end ? x->shape.dim[p->dim] - 1 : 0, 1);
    return trama_repeat_at(p->where, one, p->dim, *extent);
}

/* The end of x is a multiple of n - 1 from its first element, so that what is reflected there goes on to be. */
static trama_value *pad_reflect(const padding *p, trama_value *x, int64_t *extent)
{
    if (p->n == 1)
        return pad_edge(p, x, extent);
    *extent = min_i64(*extent, p->n - 1);
    const int64_t from = p->end ? x->shape.dim[p->dim] - 1 - *extent : 1;
    return trama_flip_at(p->where, trama_slice_at(p->where, x, p->dim, from, *extent), 1, &p->dim);
}

static trama_value *pad_wrap(const padding *p, trama_value *x, int64_t *extent)
{
    *extent = min_i64(*extent, p->n);
    return trama_slice_at(p->where, x, p->dim, p->end ? 0 : p->n - *extent, *extent);
}

/* x with pads of `extent` elements in all at one end. */
static trama_value *pad_end(const padding *p, pad_part *part, trama_value *x, int64_t extent)
{
    while (extent > 0 && x) {
        int64_t now = extent;
        trama_value *more = part(p, x, &now);
        trama_value *both[] = {p->end ? x : more, p->end ? more : x};
        x = trama_concat_at(p->where, p->dim, 2, both);
        extent -= now;
    }
    return x;
}

trama_value *trama_pad_with_at(trama_where where, trama_value *x, int dim, int64_t before, int64_t after,
                               trama_pad_mode mode, double value)
{
    static pad_part *const parts[] = {[TRAMA_PAD_CONSTANT] = pad_constant,
                                      [TRAMA_PAD_EDGE] = pad_edge,
                                      [TRAMA_PAD_REFLECT] = pad_reflect,
                                      [TRAMA_PAD_WRAP] = pad_wrap};
    if (!x || (dim = known_dim(where, "pad", x, dim)) < 0)
        return NULL;
    padding p = {where, dim, x->shape.dim[dim], value, true};
    if (mode < TRAMA_PAD_CONSTANT || mode > TRAMA_PAD_WRAP || before < 0 || after < 0)
        return program_fail(x->program, where, TRAMA_E_ARGUMENT,
                            "pad of %s: mode %d, %lld elements before and %lld after; a mode is trama_pad_mode, and "
                            "trama_slice takes elements away",
                            x->name, (int)mode, (long long)before, (long long)after);
    if (mode == TRAMA_PAD_CONSTANT && value == 0)
        return trama_pad_at(where, x, dim, before, after);
    if (mode != TRAMA_PAD_CONSTANT && !p.n && before + after)
        return program_fail(x->program, where, TRAMA_E_SHAPE, "pad of %s: dim %d has no elements to repeat", x->name,
                            dim);
    for (int d = 0; mode == TRAMA_PAD_CONSTANT && d < x->shape.ndim; d++)
        if (known_dim(where, "pad", x, d) < 0)
            return NULL;
    x = pad_end(&p, parts[mode], x, after);
    p.end = false;
    return pad_end(&p, parts[mode], x, before);
}

/* ---- Diagonals and blocks ---- */

/* Of the matrices of the last two dims as one dim of rows x columns elements, each (columns + 1)-th one. */
trama_value *trama_diagonal_at(trama_where where, trama_value *x, int64_t offset)
{
    if (!x)
        return NULL;
    const int last = x->shape.ndim - 1;
    if (last < 1)
        return program_fail(x->program, where, TRAMA_E_SHAPE, "diagonal of %s: it has %d dims, and needs 2", x->name,
                            x->shape.ndim);
    if (known_dim(where, "diagonal", x, last) < 0 || known_dim(where, "diagonal", x, last - 1) < 0)
        return NULL;
    const int64_t rows = x->shape.dim[last - 1], columns = x->shape.dim[last];
    const int64_t down = offset < 0 ? -offset : 0, right = offset > 0 ? offset : 0;
    const bool some = down >= 0 && down < rows && right < columns;
    const int64_t extent = some ? min_i64(rows - down, columns - right) : 0;
    trama_value *flat = trama_flatten_at(where, x, last - 1, last);
    return trama_slice_by_at(where, flat, last - 1, some ? down * columns + right : 0, extent, columns + 1);
}

/* The dims of x [.., c, h, w] in the order of an op on blocks; false after an error. */
static bool is_image(trama_where where, const char *name, const trama_value *x, int64_t block)
{
    if (x->shape.ndim == 4 && block >= 1 && block < 1 << 15)
        return true;
    program_fail(x->program, where, TRAMA_E_SHAPE,
                 "%s of %s: it needs 4 dims, not %d, and a block of 1 to 32767, not %lld", name, x->name, x->shape.ndim,
                 (long long)block);
    return false;
}

trama_value *trama_space_to_depth_at(trama_where where, trama_value *x, int64_t block)
{
    if (!x || !is_image(where, "space_to_depth", x, block))
        return NULL;
    const int64_t *d = x->shape.dim;
    if (d[2] % block || d[3] % block)
        return program_fail(x->program, where, TRAMA_E_SHAPE, "space_to_depth of %s: blocks of %lld do not fit it",
                            x->name, (long long)block);
    trama_value *apart = trama_reshape_at(where, x, TRAMA_SHAPE(d[0], d[1], d[2] / block, block, d[3] / block, block));
    return trama_reshape_at(where, trama_transpose_at(where, apart, (const int[]){0, 3, 5, 1, 2, 4}),
                            TRAMA_SHAPE(d[0], d[1] * block * block, d[2] / block, d[3] / block));
}

trama_value *trama_depth_to_space_at(trama_where where, trama_value *x, int64_t block)
{
    if (!x || !is_image(where, "depth_to_space", x, block))
        return NULL;
    const int64_t *d = x->shape.dim, c = d[1] / (block * block);
    if (d[1] % (block * block))
        return program_fail(x->program, where, TRAMA_E_SHAPE,
                            "depth_to_space of %s: %lld channels are no blocks of %lld", x->name, (long long)d[1],
                            (long long)block);
    trama_value *apart = trama_reshape_at(where, x, TRAMA_SHAPE(d[0], block, block, c, d[2], d[3]));
    return trama_reshape_at(where, trama_transpose_at(where, apart, (const int[]){0, 3, 4, 1, 5, 2}),
                            TRAMA_SHAPE(d[0], c, d[2] * block, d[3] * block));
}
