/* SPDX-License-Identifier: Apache-2.0 */
/* Reshape and Flatten. A target may take extents from shapes that are only known when fed. The dims that both shapes
 * have alike at their begin and at their end stay; the elements of those between are as many on both sides. */
#include "families.h"
#include "onnx_ops.h"
#include "ops.h"
#include "trama_composed.h"

/* ---- Targets ---- */

/* A shape, and the origins of its dims that are only known when fed. */
typedef struct extents {
    trama_shape shape;
    int64_t origin[TRAMA_MAX_NDIM];
    int rest; /* the dim that is given as -1, and takes what the others leave; -1: none */
} extents;

/* Dims [from, to) of both shapes: the product of the known ones, without the rest, and the number of the others. */
typedef struct between {
    int from[2], to[2], any[2];
    int64_t known[2];
    int64_t cuts; /* of the dims before them */
} between;

static extents extents_of(const onnx_node *n, const trama_value *x)
{
    extents e = {.shape = x->shape, .rest = -1};
    for (int d = 0; d < e.shape.ndim; d++)
        if (e.shape.dim[d] == TRAMA_ANY)
            e.origin[d] = onnx_origin(n->graph, x, d);
    return e;
}

/* The target as it is written, where 0 copies a dim of `in`. */
static bool read_target(onnx_node *n, const extents *in, extents *out)
{
    const onnx_ints list = node_extent_list(n, "shape", 1);
    if (list.n > TRAMA_MAX_NDIM)
        return node_fail(n, TRAMA_E_UNSUPPORTED, "the target has %d dims, and %d are the most", list.n, TRAMA_MAX_NDIM);
    *out = (extents){.shape.ndim = list.n, .rest = -1};
    for (int d = 0; d < list.n; d++) {
        const bool copied = !list.open[d] && list.at[d] == 0 && !attribute_int(n, "allowzero", 0),
                   left = !list.open[d] && list.at[d] == -1, copies = copied && d < in->shape.ndim;
        out->shape.dim[d] = list.open[d] ? TRAMA_ANY : copies ? in->shape.dim[d] : list.at[d];
        out->origin[d] = list.open[d] ? list.open[d] : copies ? in->origin[d] : 0;
        if (list.at[d] < -1 || (copied && !copies) || (left && out->rest >= 0))
            return node_fail(n, TRAMA_E_SHAPE, "dim %d of the target is %lld", d, (long long)list.at[d]);
        out->rest = left ? d : out->rest;
    }
    return !n->graph->program->status;
}

static bool is_same(const extents *x, int i, const extents *y, int j)
{
    return j != y->rest && x->shape.dim[i] == y->shape.dim[j] &&
           (x->shape.dim[i] != TRAMA_ANY || (x->origin[i] == y->origin[j] && x->origin[i] != OPEN_COMPUTED));
}

static void count_dims(const extents *e, int from, int to, int64_t *known, int *any)
{
    *known = 1;
    *any = 0;
    for (int d = from; d < to && *known; d++)
        if (d != e->rest && e->shape.dim[d] == TRAMA_ANY)
            ++*any;
        else if (d != e->rest && !count_times(known, e->shape.dim[d], MOST_BYTES))
            *known = 0;
}

/* The end of the dims of x from i on of which dim j of y is the product: one that is only known when fed, and known
 * ones; 0 without such dims. */
static int end_of_product(const extents *x, int i, const extents *y, int j)
{
    int64_t known = 1, open = 0;
    const int64_t origin = y->origin[j];
    if (j == y->rest || open_times(origin) == 1)
        return 0;
    for (; i < x->shape.ndim && (known < open_times(origin) || !open); i++) {
        const bool fed = x->shape.dim[i] == TRAMA_ANY;
        if (i == x->rest || (fed ? open != 0 : !count_times(&known, x->shape.dim[i], INT32_MAX) || !known))
            return 0;
        open = fed ? x->origin[i] : open;
    }
    return known == open_times(origin) && open == open_base(origin) ? i : 0;
}

static between find_between(const extents *in, const extents *out)
{
    between b = {.to = {in->shape.ndim, out->shape.ndim}};
    while (b.from[0] < b.to[0] && b.from[1] < b.to[1]) {
        const int merged = end_of_product(in, b.from[0], out, b.from[1]),
                  divided = end_of_product(out, b.from[1], in, b.from[0]);
        if (!merged && !divided && !is_same(in, b.from[0], out, b.from[1]))
            break;
        const int to[] = {merged ? merged : b.from[0] + 1, divided ? divided : b.from[1] + 1};
        if (merged || divided)
            b.cuts |= RESHAPE_CUT(b.from[0], b.from[1]);
        if ((merged || divided) && to[0] < b.to[0] && to[1] < b.to[1]) /* dims of 1 may follow on one side */
            b.cuts |= RESHAPE_CUT(to[0], to[1]);
        b.from[0] = to[0];
        b.from[1] = to[1];
    }
    for (; b.from[0] < b.to[0] && b.from[1] < b.to[1] && is_same(in, b.to[0] - 1, out, b.to[1] - 1); b.to[0]--)
        b.to[1]--;
    for (int side = 0; side < 2; side++)
        count_dims(side ? out : in, b.from[side], b.to[side], &b.known[side], &b.any[side]);
    return b;
}

/* Whether an extent is not that of a dim, but computed of some. */
static bool is_computed(int64_t origin)
{
    return origin == OPEN_COMPUTED || open_times(origin) > 1;
}

/* The first open dim from `from` on, the rest left out. */
static int open_dim(const extents *e, int from)
{
    while (e->shape.dim[from] != TRAMA_ANY || from == e->rest)
        from++;
    return from;
}

/* The extent that is left beside an open dim on each side, which are multiples of one; 0 where it is none. */
static int64_t left_beside(const extents *in, const extents *out, const between *b)
{
    if (b->any[0] != 1 || b->any[1] != 1)
        return 0;
    const int64_t from = in->origin[open_dim(in, b->from[0])], to = out->origin[open_dim(out, b->from[1])];
    int64_t all = b->known[0], others = b->known[1];
    if (from == OPEN_COMPUTED || open_base(from) != open_base(to) || !others ||
        !count_times(&all, open_times(from), INT64_MAX) || !count_times(&others, open_times(to), INT64_MAX))
        return 0;
    return all % others ? 0 : all / others;
}

static bool rest_is(extents *out, between *b, int64_t extent, int64_t origin)
{
    out->shape.dim[out->rest] = extent;
    out->origin[out->rest] = origin;
    out->rest = -1;
    if (extent == TRAMA_ANY)
        b->any[1]++;
    else
        b->known[1] *= extent;
    return true;
}

/* Works out the extent of the dim that is given as -1, so that there is no rest any more. */
static bool set_rest(onnx_node *n, const extents *from, extents *out, between *b)
{
    const int64_t in = b->known[0], others = b->known[1];
    if (out->rest < 0)
        return true;
    const int64_t left = left_beside(from, out, b);
    if (left)
        return rest_is(out, b, left, 0);
    for (int d = b->from[1]; d < b->to[1]; d++)
        if (is_computed(out->origin[d]))
            return node_fail(n, TRAMA_E_UNSUPPORTED,
                             "the extent -1 of the target is beside dim %d, which is computed of extents; give dims "
                             "extents in the options",
                             d);
    if (b->any[0] == b->any[1] && others && in % others == 0)
        return rest_is(out, b, in / others, 0);
    if (others && in && (b->any[1] ? b->any[0] == b->any[1] + 1 && in == others : in % others == 0 || others % in == 0))
        return rest_is(out, b, TRAMA_ANY, OPEN_COMPUTED);
    return node_fail(n, TRAMA_E_SHAPE, "the extent -1 of the target cannot be worked out");
}

static bool find_target(onnx_node *n, const extents *in, extents *out, between *b)
{
    if (!read_target(n, in, out))
        return false;
    *b = find_between(in, out);
    return set_rest(n, in, out, b);
}

/* ---- Dims that are only known when fed ---- */

/* Whether the dims between may be the same elements. */
static bool may_be(onnx_node *n, const extents *in, const extents *out, const between *b)
{
    const bool one = b->any[0] == 1 && b->any[1] == 1, as_many = b->known[0] == b->known[1];
    const int d = one ? open_dim(out, b->from[1]) : b->from[1];
    const int64_t told = one ? out->origin[d] : 0;
    const int64_t all[] = {trama_shape_count(in->shape), trama_shape_count(out->shape)};
    const bool fed = all[0] == TRAMA_ANY || all[1] == TRAMA_ANY;
    if (fed ? !b->any[0] && !b->any[1] && !as_many : all[0] != all[1])
        return node_fail(n, TRAMA_E_SHAPE, "the target has another number of elements");
    if (!b->any[0] != !b->any[1])
        return node_fail(n, TRAMA_E_UNSUPPORTED,
                         "extents that are only known when fed would become known ones, or the reverse");
    if ((b->any[0] > 1 && b->any[1] > 1) ||
        (one && as_many && told != OPEN_COMPUTED && told != in->origin[open_dim(in, b->from[0])]))
        return node_fail(n, TRAMA_E_UNSUPPORTED,
                         "dim %d of the target is another extent than the one of operand 0 in its place, and both are "
                         "only known when fed; give dims extents in the options",
                         d);
    return true;
}

/* A value whose dims that are only known when fed are those of the target, in their order: an input of the graph, or
 * one that is made for it; NULL. */
static trama_value *find_like(onnx_node *node, const extents *out)
{
    trama_onnx *graph = node->graph;
    int n = 0;
    int64_t wanted[TRAMA_MAX_NDIM];
    bool told = true;
    for (int d = 0; d < out->shape.ndim; d++)
        if (out->shape.dim[d] == TRAMA_ANY) {
            told &= out->origin[d] > 0;
            wanted[n++] = out->origin[d];
        }
    for (int i = 0; i < trama_onnx_count(graph, TRAMA_ONNX_INPUTS); i++) {
        trama_value *v = trama_onnx_number(graph, TRAMA_ONNX_INPUTS, i);
        int o = 0;
        bool same = v != NULL;
        for (int d = 0; same && d < v->shape.ndim; d++)
            if (v->shape.dim[d] == TRAMA_ANY)
                same = o < n && onnx_origin(graph, v, d) == wanted[o++];
        if (same && o == n)
            return v;
    }
    return told ? build_pattern(node, n, wanted) : NULL;
}

/* Whether the extents of open dims are told by the model, and not by the operand: several, or one that others multiply.
 */
static bool is_told(const extents *out, const between *b)
{
    return b->any[1] > 1 || (b->any[1] == 1 && (b->any[0] > 1 || b->known[0] != b->known[1]) &&
                             out->origin[open_dim(out, b->from[1])] != OPEN_COMPUTED);
}

/* Where the dims that both have alike end, if that is to be said. */
static int64_t cuts_of(const between *b)
{
    const bool both = b->from[0] < b->to[0] && b->from[1] < b->to[1] && (b->any[0] || b->any[1]);
    return b->cuts | (both ? RESHAPE_CUT(b->from[0], b->from[1]) | RESHAPE_CUT(b->to[0], b->to[1]) : 0);
}

ONNX_BUILD(build_reshape)
{
    trama_value *x = node_in(n, 0), *like = NULL;
    extents target;
    between b;
    if (!x)
        return;
    const extents in = extents_of(n, x);
    if (!find_target(n, &in, &target, &b) || !may_be(n, &in, &target, &b))
        return;
    if (is_told(&target, &b) && !(like = find_like(n, &target))) {
        node_fail(n, TRAMA_E_UNSUPPORTED,
                  "the target takes extents that are computed of some that are only known when fed; give dims extents "
                  "in the options");
        return;
    }
    out[0] = reshape_cut(n->where, x, target.shape, like, cuts_of(&b));
}

ONNX_FOLD(fold_reshape)
{
    const host_tensor *t = node_host(n, 0);
    const extents in = {.shape = t->shape, .rest = -1};
    extents target;
    between b;
    if (!find_target(n, &in, &target, &b))
        return NULL;
    if (trama_shape_count(target.shape) != t->count)
        return node_fail(n, TRAMA_E_SHAPE, "the target has another number of elements");
    host_tensor *copy = fold_copy(n);
    if (copy)
        copy->shape = target.shape;
    return copy;
}

ONNX_BUILD(build_flatten)
{
    trama_value *x = node_in(n, 0);
    const int64_t axis = attribute_int(n, "axis", 1);
    const int ndim = x ? x->shape.ndim : 0, at = axis == ndim ? ndim : x ? node_dim(n, axis, ndim) : -1;
    if (at < 0)
        return;
    if (at < ndim)
        x = trama_flatten_at(n->where, x, at, ndim - 1);
    x = at > 0 ? trama_flatten_at(n->where, x, 0, at - 1) : trama_unsqueeze_at(n->where, x, 0);
    out[0] = at < ndim ? x : trama_unsqueeze_at(n->where, x, 1);
}
