/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of pointwise calls, and of casts, in one kernel. All threads read the same small program: for each step the
 * op, the places of its operands, and the place of its result. */
#include "chain.cuh"

#include <math.h>

#include "kernel.h"

namespace
{
enum { NONE = -1 };

/* The program of a chain: values are the sum (0) and the result of each call (its number + 1). */
struct draft {
    const kernel_chain *chain;
    const trama_view *array[CHAIN_ARRAYS]; /* the walk follows array 0 */
    int n_arrays, n_slots;
    int slot_of_value[1 + CHAIN_STEPS];
    int8_t slot_of_array[CHAIN_ARRAYS];
    bool casts;
    chain_program *program;
};

bool same_extents(const trama_view *a, const trama_view *b, bool strides)
{
    if (a->ndim != b->ndim)
        return false;
    for (int d = 0; d < a->ndim; d++)
        if (a->extent[d] != b->extent[d] || (strides && a->extent[d] > 1 && a->stride[d] != b->stride[d]))
            return false;
    return true;
}

bool same_box(const trama_view *a, const trama_view *b, bool strides)
{
    return a->dtype == b->dtype && same_extents(a, b, strides);
}

bool has_sum(const kernel_chain *chain)
{
    return chain->n_terms || chain->headed;
}

/* The array of a view; NONE where there are too many. */
int array_of(draft *d, const trama_view *view)
{
    for (int a = 0; a < d->n_arrays; a++)
        if (d->array[a]->data == view->data && same_box(d->array[a], view, true))
            return a;
    if (d->n_arrays == CHAIN_ARRAYS)
        return NONE;
    d->array[d->n_arrays] = view;
    return d->n_arrays++;
}

/* The result that lies in these bytes when call number i begins: its view, and the value; NULL: no call has made it. */
const trama_view *maker_of(const draft *d, int i, const void *data, int *value)
{
    for (*value = i; *value > 0; --*value)
        for (int o = 0; o < d->chain->calls[*value - 1].n_out; o++)
            if (d->chain->calls[*value - 1].out[o].data == data)
                return &d->chain->calls[*value - 1].out[o];
    return has_sum(d->chain) && d->chain->sum->data == data ? d->chain->sum : NULL;
}

/* Where operand `view` of call i is read from. A value that is not of the step before has a slot; so have arrays, while
 * there are slots, so that all are on their way at once. */
bool place_operand(draft *d, int i, const trama_view *view, int8_t *from)
{
    int value;
    const trama_view *made = maker_of(d, i, view->data, &value);
    if (view->dtype != d->array[0]->dtype)
        return false;
    if (made) {
        if (value != i && d->slot_of_value[value] == NONE)
            d->slot_of_value[value] = d->n_slots++;
        *from = (int8_t)(value == i ? CHAIN_NOW : d->slot_of_value[value]);
        return same_box(made, view, true) && d->n_slots <= CHAIN_SLOTS;
    }
    const int a = array_of(d, view);
    *from = (int8_t)(CHAIN_SLOTS + a);
    return a != NONE;
}

bool place_result(draft *d, int i, int o, int8_t *to)
{
    const trama_view *view = &d->chain->calls[i].out[o];
    const bool inner = d->chain->inner && d->chain->inner[i] >> o & 1;
    const int a = inner ? NONE : array_of(d, view);
    *to = (int8_t)a;
    return same_box(view, d->array[0], false) && (inner || a != NONE);
}

/* From or to a type that is not the chain's. */
bool draft_cast(draft *d, int i, chain_step *step)
{
    const trama_view *in = d->chain->calls[i].in, *out = d->chain->calls[i].out;
    const bool inward = out->dtype == d->array[0]->dtype;
    const trama_view *other = inward ? in : out;
    const int a = array_of(d, other);
    int value;
    d->casts = true;
    step->cast = inward ? CAST_IN : CAST_OUT;
    step->type = (int8_t)other->dtype;
    if (a == NONE || !trama_dtype_is_float(other->dtype))
        return false;
    if (inward) {
        step->from[0] = (int8_t)(CHAIN_SLOTS + a);
        return !maker_of(d, i, in->data, &value) && place_result(d, i, 0, &step->to);
    }
    step->to = (int8_t)a;
    return place_operand(d, i, in, &step->from[0]) && same_extents(out, d->array[0], false);
}

bool draft_step(draft *d, int i, int code)
{
    const trama_call *call = &d->chain->calls[i];
    const int operands = chain_ops[code].operands;
    chain_step *step = &d->program->step[i];
    step->op = (int8_t)code;
    step->kept = NONE;
    step->cast = CAST_NOTHING;
    step->from[1] = CHAIN_NOW;
    if (code == CHAIN_cast && call->in->dtype != call->out->dtype)
        return draft_cast(d, i, step);
    memcpy(step->with.at, call->attributes->real, sizeof step->with.at);
    for (int a = 0; a < operands; a++)
        if (!place_operand(d, i, &call->in[call->n_in - operands + a], &step->from[a]))
            return false;
    return place_result(d, i, 0, &step->to);
}

/* An update ends a chain. Its scalars are read before, so no call may have made them. */
bool draft_update(draft *d, int i, int code, update_inputs *inputs)
{
    const trama_call *call = &d->chain->calls[i];
    chain_program *p = d->program;
    const int tensors = chain_ops[code].operands;
    int value;
    if (i != d->chain->n_calls - 1)
        return false;
    for (int a = 0; a < tensors; a++)
        if (!place_operand(d, i, &call->in[a], &p->tensor[a]))
            return false;
    for (int a = tensors; a < call->n_in; a++)
        if (maker_of(d, i, call->in[a].data, &value))
            return false;
    for (int o = 0; o < call->n_out; o++)
        if (!place_result(d, i, o, &p->result[o]))
            return false;
    p->update = (int8_t)code;
    p->n_steps--;
    *inputs = update_inputs_of(call, tensors, call->n_in - tensors);
    return true;
}

bool draft_sum(draft *d)
{
    const kernel_chain *chain = d->chain;
    chain_program *p = d->program;
    p->n_terms = (int8_t)chain->n_terms;
    p->combine = chain->combine;
    p->scale = chain->scale;
    if (chain->n_terms > CHAIN_TERMS || (has_sum(chain) && !same_box(chain->sum, d->array[0], false)))
        return false;
    for (int t = 0; t < chain->n_terms; t++) {
        const int a = array_of(d, &chain->terms[t]);
        p->term[t] = (int8_t)a;
        if (a == NONE || !same_box(&chain->terms[t], d->array[0], false))
            return false;
    }
    return true;
}

/* Operands that are arrays get the slots that values have left. */
void place_arrays(draft *d, int8_t *from, int n)
{
    for (int k = 0; k < n; k++) {
        const int a = from[k] - CHAIN_SLOTS;
        if (a < 0)
            continue;
        if (d->slot_of_array[a] == NONE && d->n_slots < CHAIN_SLOTS) {
            d->program->load[d->program->n_loads++] = {(int8_t)a, (int8_t)d->n_slots};
            d->slot_of_array[a] = (int8_t)d->n_slots++;
        }
        if (d->slot_of_array[a] != NONE)
            from[k] = d->slot_of_array[a];
    }
}

bool draft_chain(draft *d, update_inputs *inputs)
{
    const kernel_chain *chain = d->chain;
    chain_program *p = d->program;
    if (chain->n_calls < 1 || chain->n_calls > CHAIN_STEPS)
        return false;
    array_of(d, &chain->calls[0].out[0]);
    memset(d->slot_of_value, 0xff, sizeof d->slot_of_value);
    memset(d->slot_of_array, 0xff, sizeof d->slot_of_array);
    p->n_steps = (int8_t)chain->n_calls;
    p->update = NONE;
    if (!draft_sum(d))
        return false;
    for (int i = 0; i < chain->n_calls; i++) {
        const int code = chain_code_of(chain->calls[i].op);
        if (code == NONE || !(chain_ops[code].updates ? draft_update(d, i, code, inputs) : draft_step(d, i, code)))
            return false;
    }
    p->sum_kept = (int8_t)d->slot_of_value[0];
    for (int i = 0; i < p->n_steps; i++) {
        p->step[i].kept = (int8_t)d->slot_of_value[i + 1];
        if (p->step[i].cast != CAST_IN)
            place_arrays(d, p->step[i].from, chain_ops[p->step[i].op].operands);
    }
    if (p->update != NONE)
        place_arrays(d, p->tensor, chain_ops[p->update].operands);
    return true;
}

/* ---- Starting it ------------------------------------------------------------------------------- */

template <typename T, int E, bool CASTS>
void launch(const grid_walk<CHAIN_ARRAYS> &part, const size_t (&size)[CHAIN_ARRAYS], const chain_program &p,
            const update_inputs &inputs, const gpu *g)
{
    pack_walk<CHAIN_ARRAYS> w;
    if (!pack_walk_of(&w, part, size, E)) {
        launch<T, 1, CASTS>(part, size, p, inputs, g);
        return;
    }
    const int64_t wanted = (w.packs.count + CHAIN_THREADS - 1) / CHAIN_THREADS;
    const int64_t most = (int64_t)g->multiprocessors * chain_blocks<E>;
    GPU_LAUNCH((chain_kernel<T, E, CASTS>), (unsigned)(wanted < most ? wanted : most), CHAIN_THREADS, g,
               chain_walk_of(w), p, inputs);
}
} // namespace

bool chain_draft_of(chain_draft *drafted, const kernel_chain *chain)
{
    const trama_view *view[CHAIN_ARRAYS];
    draft d = {};
    *drafted = {};
    d.chain = chain;
    d.program = &drafted->program;
    if (!draft_chain(&d, &drafted->inputs))
        return false;
    for (int a = 0; a < CHAIN_ARRAYS; a++) {
        view[a] = d.array[a < d.n_arrays ? a : 0];
        drafted->size[a] = trama_dtype_size(view[a]->dtype);
    }
    drafted->casts = d.casts;
    drafted->dtype = view[0]->dtype;
    drafted->empty = !grid_walk_of(&drafted->walk, view);
    return drafted->empty || drafted->walk.ndim <= CHAIN_NDIM;
}

extern "C" bool gpu_chain(const kernel_chain *chain, const gpu *g)
{
    chain_draft d;
    return chain_draft_of(&d, chain) && with_float(d.dtype, [&](auto x) {
               typedef decltype(x) type;
               if (!d.empty)
                   grid_walk_parts(d.walk, d.size, PACKS_MOST, [&](const grid_walk<CHAIN_ARRAYS> &part) {
                       d.casts ? launch<type, pack_of<type>, true>(part, d.size, d.program, d.inputs, g)
                               : launch<type, pack_of<type>, false>(part, d.size, d.program, d.inputs, g);
                   });
           });
}
