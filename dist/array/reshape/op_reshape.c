/* SPDX-License-Identifier: Apache-2.0 */
/* Reshape: the same elements in row-major order. */
#include "families.h"
#include "reshape_runs.h"

trama_value *reshape_cut(trama_where where, trama_value *x, trama_shape shape, trama_value *like, int64_t cuts)
{
    trama_attributes a = {.integer = {[RESHAPE_CUTS] = cuts}};
    if (!x)
        return NULL;
    put_shape(&a, SHAPE_NDIM, shape);
    return program_append(NULL, where, like ? &trama_op_reshape_like : &trama_op_reshape, like ? 2 : 1,
                          (trama_value *[]){x, like}, &a);
}

trama_value *trama_reshape_at(trama_where where, trama_value *x, trama_shape shape)
{
    return reshape_cut(where, x, shape, NULL, 0);
}

trama_value *trama_reshape_like_at(trama_where where, trama_value *x, trama_shape shape, trama_value *like)
{
    return like ? reshape_cut(where, x, shape, like, 0) : NULL;
}

/* The cuts of the reshape that goes back. */
static int64_t cuts_back(int64_t cuts)
{
    return cuts >> TRAMA_MAX_NDIM | (cuts & ((1 << TRAMA_MAX_NDIM) - 1)) << TRAMA_MAX_NDIM;
}

void reshape_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    trama_value *x = node->in[0];
    const bool merges = count_fed(&x->shape) > count_fed(&node->out[0]->shape);
    d_in[0] = reshape_cut(node->where, d_out[0], x->shape, merges ? x : NULL,
                          cuts_back(node->attributes->integer[RESHAPE_CUTS]));
}

/* The same reshape with the run of that dim by rows. */
void reshape_split_form(const trama_node *node, int dim, int64_t n, trama_value **out)
{
    trama_attributes a = *node->attributes;
    if (a.integer[RESHAPE_ROWS] >> dim & 1)
        return;
    a.integer[RESHAPE_ROWS] |= INT64_C(1) << dim;
    out[0] = program_append(NULL, node->where, node->op, node->op->n_in, node->in, &a);
}

/* Why a reshape is refused. */
static const char *problem_of(const trama_shape *in, const trama_shape *out, const trama_shape *like)
{
    const int n_in = count_fed(in), n_out = count_fed(out), n_like = like ? count_fed(like) : n_out;
    if (n_like != n_out)
        return "; it takes the TRAMA_ANY dims of a tensor with as many of them";
    if (!n_in != !n_out)
        return "; TRAMA_ANY (-1) stands where a dim is only known when fed, and is not worked out";
    if (n_out > n_in && !like)
        return " divides a fed dim into several; trama_reshape_like takes their extents from a tensor that has them";
    if (n_in > 1 && n_out > 1)
        return " merges or divides some of several fed dims; trama_flatten merges them";
    return n_in ? " mixes a fed dim with others; known ones may multiply or divide it"
                : " changes the number of elements";
}

trama_status reshape_infer(trama_rule *rule, const trama_node *node)
{
    const trama_shape *in = &node->in[0]->shape, *like = node->op->n_in == 2 ? &node->in[1]->shape : NULL;
    trama_shape out;
    trama_status status = get_shape(node, SHAPE_NDIM, node->in[0]->dtype, true, &out);
    if (status)
        return status;
    const trama_rule before = *rule;
    const bool fed = count_fed(in) || count_fed(&out);
    bool fits =
        (fed || trama_shape_count(*in) == trama_shape_count(out)) && (!like || count_fed(like) == count_fed(&out));
    if (fits && !reshape_match(rule, in, &out, node->attributes)) {
        fits = trama_shape_count(*in) == 0 && !fed;
        *rule = before;
        if (fits)
            reshape_whole(rule, in, &out);
    }
    if (fits && like)
        reshape_add_like(rule, like, &out);
    if (fits)
        return TRAMA_OK;
    text t = {0};
    shape_text(&t, *in);
    text_add(&t, " to ");
    shape_text(&t, out);
    trama_fail(node->where, TRAMA_E_SHAPE, "%s of %s: %s%s", node->op->name, node->in[0]->name, t.at,
               problem_of(in, &out, like));
    free(t.at);
    return TRAMA_E_SHAPE;
}

/* ---- In place ---- */

/* The strides of dims [from, to) of y over n elements that lie at a distance of `stride`. */
static void divide_run(trama_view *y, int from, int to, int64_t stride)
{
    for (int d = to - 1; d >= from; d--) {
        y->stride[d] = stride;
        stride *= y->extent[d];
    }
}

/* Whether the dims [from, to) of x have one distance between neighbours in row-major order, which is set. */
static bool is_one_run(const trama_view *x, int from, int to, int64_t *stride)
{
    int64_t n = 1;
    bool one = true;
    for (int d = to - 1; d >= from; d--) {
        if (x->extent[d] == 1)
            continue;
        if (n == 1)
            *stride = x->stride[d];
        one &= x->stride[d] == n * *stride;
        n *= x->extent[d];
    }
    return one;
}

/* The boxes fall into runs of dims with equal numbers of elements, as the shapes do; so x has the elements of y and no
 * others. */
bool reshape_view(const trama_attributes *a, const trama_view *x, trama_view *y, int64_t *at)
{
    (void)a;
    *at = 0;
    for (int i = 0, o = 0; i < x->ndim || o < y->ndim;) {
        const int first_in = i, first_out = o;
        int64_t n_in = i < x->ndim ? x->extent[i++] : 1, n_out = o < y->ndim ? y->extent[o++] : 1, stride = 1;
        while (n_in != n_out) {
            if (n_in < n_out ? i == x->ndim : o == y->ndim)
                return false;
            if (n_in < n_out)
                n_in *= x->extent[i++];
            else
                n_out *= y->extent[o++];
        }
        if (!is_one_run(x, first_in, i, &stride))
            return false;
        divide_run(y, first_out, o, stride);
    }
    return true;
}
