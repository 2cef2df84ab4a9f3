/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions as sums of products: each place of the kernel multiplies a matrix of weights by a window of x. */
#include "onnx_windows.h"

typedef struct convolution {
    onnx_node *n;
    window_geometry g;
    int64_t batch, groups, in, out; /* channels of a group */
    trama_value *weights;           /* [kernel, group, out, in] */
    trama_value *sum;
} convolution;

/* x [n, c, ...] as [n, group, c / group, ...], the spatial dims as one; or back to those extents. */
static trama_shape grouped(const convolution *c, int64_t channels, const int64_t *extent)
{
    trama_shape shape = TRAMA_SHAPE(c->batch, c->groups, channels, 1);
    for (int i = 0; i < c->g.n; i++)
        shape.dim[3] *= extent[i];
    return shape;
}

static trama_shape spatial(const convolution *c, int64_t channels, const int64_t *extent)
{
    trama_shape shape = {.ndim = c->g.n + 2, .dim = {c->batch, c->groups * channels}};
    for (int i = 0; i < c->g.n; i++)
        shape.dim[i + 2] = extent[i];
    return shape;
}

/* The weights [a, b, kernel...], of which dim 0 has the groups, as [kernel, group, out, in]. swapped: a is in. */
static trama_value *arrange_weights(convolution *c, trama_value *w, bool swapped)
{
    int64_t places = 1;
    for (int i = 0; i < c->g.n; i++)
        places *= c->g.dim[i].kernel;
    int64_t first = swapped ? c->in : c->out, second = swapped ? c->out : c->in;
    trama_value *apart = trama_reshape_at(c->n->where, w, TRAMA_SHAPE(c->groups, first, second, places));
    return trama_transpose_at(c->n->where, apart, swapped ? (const int[]){3, 0, 2, 1} : (const int[]){3, 0, 1, 2});
}

/* The weights of one place times x [n, group, in, elements] */
static trama_value *product(convolution *c, int64_t place, trama_value *x)
{
    trama_value *w = trama_slice_at(c->n->where, c->weights, 0, place, 1);
    w = trama_reshape_at(c->n->where, w, TRAMA_SHAPE(c->groups, c->out, c->in));
    return trama_matmul_at(c->n->where, w, x, false, false);
}

static void add(convolution *c, trama_value *term)
{
    c->sum = c->sum ? trama_add_at(c->n->where, c->sum, term) : term;
}

static bool check_operands(convolution *c, trama_value *x, trama_value *w, bool swapped)
{
    c->groups = attribute_int(c->n, "group", 1);
    if (!x || !w || x->shape.ndim != w->shape.ndim || x->shape.ndim < 3)
        return x && w && node_fail(c->n, TRAMA_E_SHAPE, "operands of %d and %d dims", x->shape.ndim, w->shape.ndim);
    int64_t channels = x->shape.dim[1], first = w->shape.dim[0], second = w->shape.dim[1];
    bool sound = c->groups >= 1 && channels >= 0 && channels % c->groups == 0 && first % c->groups == 0;
    c->batch = x->shape.dim[0];
    c->in = sound ? channels / c->groups : 0;
    c->out = swapped ? second : sound ? first / c->groups : 0;
    if (!sound || (swapped ? first != channels : second != c->in))
        return node_fail(c->n, TRAMA_E_SHAPE, "%lld channels in %lld groups, and weights of %lld and %lld",
                         (long long)channels, (long long)c->groups, (long long)first, (long long)second);
    return windows_of(c->n, x->shape, w->shape.dim + 2, &c->g);
}

/* The sum as [n, c, ...], and the bias [c] */
static trama_value *finish(convolution *c, const int64_t *extent)
{
    trama_value *y = c->sum ? trama_reshape_at(c->n->where, c->sum, spatial(c, c->out, extent)) : NULL;
    if (!y || !node_has(c->n, 2))
        return y;
    return trama_add_at(c->n->where, y, build_reshaped(c->n, node_in(c->n, 2), 1, y->shape.ndim));
}

/* ---- Convolution ---- */

/* x has the windows of the dims before `dim` at `place` already. */
static void add_windows(convolution *c, trama_value *x, int dim, int64_t place, const int64_t *out)
{
    if (dim == c->g.n || dim == WINDOW_DIMS) {
        add(c, product(c, place, trama_reshape_at(c->n->where, x, grouped(c, c->in, out))));
        return;
    }
    const window_dim *d = &c->g.dim[dim];
    for (int64_t k = 0; k < d->kernel && !c->n->graph->program->status; k++)
        add_windows(c, window_along(c->n, x, dim + 2, k * d->dilation - d->before, d->out, d->stride), dim + 1,
                    place * d->kernel + k, out);
}

ONNX_BUILD(build_conv)
{
    convolution c = {.n = n};
    trama_value *x = node_in(n, 0), *w = node_in(n, 1);
    int64_t extent[WINDOW_DIMS];
    if (!check_operands(&c, x, w, false))
        return;
    for (int i = 0; i < c.g.n; i++)
        extent[i] = c.g.dim[i].out;
    c.weights = arrange_weights(&c, w, false);
    add_windows(&c, x, 0, 0, extent);
    out[0] = finish(&c, extent);
}

/* ---- Transposed convolution ---- */

/* Sets the padding and the extent of the result, which output_shape or auto_pad may give. */
static bool result_extents(convolution *c, int64_t *extent)
{
    onnx_ints more = attribute_ints(c->n, "output_padding"), given = attribute_ints(c->n, "output_shape");
    bool upper = attribute_is(c->n, "auto_pad", "NOTSET", "SAME_UPPER");
    bool same = upper || attribute_is(c->n, "auto_pad", "NOTSET", "SAME_LOWER");
    if ((more.given && more.n != c->g.n) || (given.given && given.n != c->g.n && given.n != c->g.n + 2))
        return node_fail(c->n, TRAMA_E_SHAPE, "output_padding or output_shape has another length");
    for (int i = 0; i < c->g.n; i++) {
        window_dim *d = &c->g.dim[i];
        int64_t all = d->stride * (d->in - 1) + (more.given ? more.at[i] : 0) + (d->kernel - 1) * d->dilation + 1;
        if (given.given || same) {
            extent[i] = given.given ? given.at[given.n - c->g.n + i] : d->in * d->stride;
            int64_t total = max_i64(all - extent[i], 0);
            d->before = upper ? total / 2 : total - total / 2;
        } else {
            extent[i] = all - d->before - d->after;
        }
        if (extent[i] < 0 || extent[i] > INT64_C(1) << 40)
            return node_fail(c->n, TRAMA_E_SHAPE, "dim %d of the result has the extent %lld", i + 2,
                             (long long)extent[i]);
    }
    return true;
}

/* Places a product [n, c, ...] where one place of the kernel puts it. */
static trama_value *spread(convolution *c, trama_value *y, int64_t place, const int64_t *extent)
{
    for (int i = c->g.n - 1; i >= 0; place /= c->g.dim[i--].kernel) {
        const window_dim *d = &c->g.dim[i];
        y = spread_along(c->n, y, i + 2, place % d->kernel * d->dilation - d->before, extent[i], d->stride);
    }
    return y;
}

ONNX_BUILD(build_conv_transpose)
{
    convolution c = {.n = n};
    trama_value *x = node_in(n, 0), *w = node_in(n, 1);
    int64_t extent[WINDOW_DIMS], places = 1;
    if (!check_operands(&c, x, w, true) || !result_extents(&c, extent))
        return;
    c.weights = arrange_weights(&c, w, true);
    trama_value *elements = trama_reshape_at(n->where, x, grouped(&c, c.in, x->shape.dim + 2));
    for (int i = 0; i < c.g.n; i++)
        places *= c.g.dim[i].kernel;
    for (int64_t place = 0; place < places && !n->graph->program->status; place++) {
        trama_value *y = product(&c, place, elements);
        add(&c, spread(&c, trama_reshape_at(n->where, y, spatial(&c, c.out, x->shape.dim + 2)), place, extent));
    }
    out[0] = finish(&c, extent);
}
