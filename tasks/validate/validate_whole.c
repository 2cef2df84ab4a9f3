/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of an op on whole tensors, at once and in pieces of one dim. */
#include <math.h>

#include "validation.h"

typedef struct tensors {
    double *at[2 * TRAMA_MAX_OPERANDS];
    trama_view views[2 * TRAMA_MAX_OPERANDS];
    trama_call call;
} tensors;

static void whole_call(validation *v, tensors *w)
{
    const trama_op *op = v->node->op;
    for (int i = 0; i < op->n_in + op->n_out; i++) {
        const trama_value *value = i < op->n_in ? v->node->in[i] : v->node->out[i - op->n_in];
        box whole = box_whole(value->shape), b = i < op->n_in ? rule_reached(v->node->rule, i, &whole, &whole) : whole;
        int64_t n = box_count(&b) * dtype_parts(value->dtype), stride = 1;
        w->at[i] = trama_alloc((size_t)n * sizeof(double));
        if (i < op->n_in)
            validation_values(v, v->node, i, 5 + (uint64_t)i, n, w->at[i]);
        w->views[i] = (trama_view){.data = w->at[i], .dtype = value->dtype, .ndim = value->shape.ndim};
        for (int d = value->shape.ndim - 1; d >= 0; d--) {
            w->views[i].global[d] = value->shape.dim[d];
            w->views[i].offset[d] = b.lo[d];
            w->views[i].extent[d] = b.n[d];
            w->views[i].stride[d] = stride;
            stride *= b.n[d];
        }
    }
    w->call = (trama_call){op, v->node->attributes, op->n_in, op->n_out, w->views, w->views + op->n_in, false};
}

static void free_tensors(const validation *v, tensors *w)
{
    for (int i = 0; i < v->node->op->n_in + v->node->op->n_out; i++)
        free(w->at[i]);
}

/* Whether every result has a number that is not NaN, or is empty. */
static bool has_numbers(const validation *v, const tensors *w)
{
    bool all = true;
    for (int o = 0; o < v->node->op->n_out; o++) {
        int64_t n = trama_shape_count(v->node->out[o]->shape) * dtype_parts(v->node->out[o]->dtype);
        bool some = n == 0;
        for (int64_t i = 0; i < n; i++)
            some |= !isnan(w->at[v->node->op->n_in + o][i]);
        all &= some;
    }
    return all;
}

trama_status validate_whole(validation *v)
{
    tensors w;
    trama_status status = TRAMA_OK;
    whole_call(v, &w);
    if (!guarded_run(&v->guard, &w.call))
        status = trama_fail(v->where, TRAMA_E_KERNEL, "trama_op_validate: the kernel of %s fails on whole operands: %s",
                            v->node->op->name, v->guard.message);
    else if (!has_numbers(v, &w))
        status = trama_fail(v->where, TRAMA_E_ARGUMENT,
                            "trama_op_validate: a result of %s is NaN everywhere, or not set; ranges say which values "
                            "operands may have",
                            v->node->op->name);
    free_tensors(v, &w);
    return status;
}

static bool is_piecewise(const validation *v)
{
    int64_t n = trama_shape_count(v->node->out[0]->shape);
    for (int i = 0; i < v->node->op->n_in; i++) {
        int64_t of = trama_shape_count(v->node->in[i]->shape);
        if (of != n && of != 1)
            return false;
    }
    return v->node->op->pointwise && n > 1;
}

void validate_pieces(validation *v)
{
    tensors one, parts;
    double most = 0;
    if (!is_piecewise(v))
        return;
    whole_call(v, &one);
    whole_call(v, &parts);
    bool ran = guarded_run(&v->guard, &one.call) && guarded_run_in_pieces(&v->guard, &parts.call);
    for (int o = v->node->op->n_in; ran && o < v->node->op->n_in + v->node->op->n_out; o++)
        for (int64_t i = 0; i < trama_shape_count(v->node->out[0]->shape) * dtype_parts(v->node->out[0]->dtype); i++)
            if (!(isnan(one.at[o][i]) && isnan(parts.at[o][i])))
                most = fmax(most, fabs(one.at[o][i] - parts.at[o][i]));
    v->found.tried++;
    if (!ran || !(most <= v->trial.tolerance)) {
        text_add(&v->first, "%s is not pointwise: in pieces of one dim it gives something else", v->node->op->name);
        text_add(&v->lines, "wrong: %s\n", v->first.at);
        v->found.wrong++;
    }
    free_tensors(v, &one);
    free_tensors(v, &parts);
}
