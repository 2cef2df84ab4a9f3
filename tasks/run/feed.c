/* SPDX-License-Identifier: Apache-2.0 */
/* Feeding and writing: copies host data into the shards of this rank. */
#include <string.h>

#include "executable.h"
#include "host.h"
#include "trama_state.h"

/* ---- Feeding ---- */

/* Whether the input can have the shape; else adds the reason to why. */
static bool shape_fits(const trama_value *v, trama_shape shape, text *why)
{
    bool fits = shape.ndim == v->shape.ndim;
    for (int d = 0; fits && d < shape.ndim; d++)
        fits = v->shape.dim[d] == TRAMA_ANY || shape.dim[d] == v->shape.dim[d];
    if (!fits)
        text_add(why, "it has other extents");
    return fits && shape_check(shape, v->dtype, false, why);
}

static trama_status check_shape(trama_where where, const char *call, const trama_value *v, trama_shape shape)
{
    text why = {0}, t = {0};
    if (shape_fits(v, shape, &why))
        return TRAMA_OK;
    shape_text(&t, shape);
    text_add(&t, " for the input ");
    value_text(&t, v);
    trama_fail(where, TRAMA_E_SHAPE, "%s: data of shape %s: %s", call, t.at, why.at);
    free(t.at);
    free(why.at);
    return TRAMA_E_SHAPE;
}

trama_status input_buffers(trama_executable *e, const trama_value *v, trama_shape shape, kept_plan **found)
{
    shape_words words;
    const plan_key key = plan_key_of_shape(PLAN_INPUT, v, shape, &words);
    *found = plan_cache_find(&e->plans, &key, NULL);
    if (*found)
        return TRAMA_OK;
    executable_shrink(e, &key);
    instance *in = NULL;
    compiled_program *s = compile_feed(&e->planning, v, shape, e->l.mesh[v->id], &e->l.value[v->id]);
    trama_status status = instance_create(e->context, &s->of, NULL, e->runs.max, &in);
    if (status)
        return compiled_program_destroy(&s), status;
    *found = plan_cache_keep(&e->plans, &key, s, in, 0, NULL);
    return TRAMA_OK;
}

/* Checks that value is an input, outside eager mode, that can have the shape. */
static trama_status check_input(trama_where where, trama_executable *e, const char *call, const trama_value *value,
                                trama_shape shape)
{
    const trama_value *own = executable_value(e, where, call, value);
    if (!own)
        return TRAMA_E_ARGUMENT;
    if (own->kind != VALUE_INPUT)
        return trama_fail(where, TRAMA_E_ARGUMENT, "%s: %s is no input%s", call, own->name,
                          own->kind == VALUE_STATE ? "; state is set by trama_write" : "");
    if (e->session)
        return trama_fail(where, TRAMA_E_UNSUPPORTED,
                          "%s: %s: inputs have no place in eager mode; use trama_constant or trama_tensor", call,
                          own->name);
    return check_shape(where, call, own, shape);
}

trama_status input_check(trama_where where, trama_executable *e, const char *call, const trama_value *value,
                         trama_shape shape)
{
    trama_status status = check_input(where, e, call, value, shape);
    return status ? status : executable_call(e, where, call, value->name, value->id, &shape);
}

trama_status input_take(trama_executable *e, const trama_value *value, const kept_plan *f, value_ref *at)
{
    f->in->slot = (f->in->slot + 1) % f->in->n_slots;
    trama_status status = executable_wait_run(e, f->in->slot_used[f->in->slot], "trama_feed");
    *at = kept_at(f);
    executable_put(e, value->id, *at);
    return status;
}

static trama_status find_buffers(trama_where where, trama_executable *e, const char *call, const trama_value *input,
                                 trama_shape shape, kept_plan **found)
{
    trama_status status = input_check(where, e, call, input, shape);
    return status ? status : input_buffers(e, e->program->values.at[input->id], shape, found);
}

trama_status trama_feed_at(trama_where where, trama_executable *e, const trama_value *input, const void *data,
                           trama_shape shape)
{
    value_ref at;
    kept_plan *f;
    trama_status status = find_buffers(where, e, "trama_feed", input, shape, &f);
    if (!status && !data && trama_shape_count(shape))
        status = trama_fail(where, TRAMA_E_ARGUMENT, "trama_feed: the data for %s is NULL", trama_value_name(input));
    if (!status)
        status = input_take(e, input, f, &at);
    return status ? status : host_to_value(at, data, shape, "trama_feed");
}

static trama_status check_pieces(trama_where where, const plan_dist_value *h, const trama_value *input, int n,
                                 const void *const *pieces)
{
    if (n != h->pieces.n || (n && !pieces))
        return trama_fail(where, TRAMA_E_ARGUMENT,
                          "trama_feed_local: %d boxes for %s; this rank has %d, which trama_feed_local_count tells",
                          n && !pieces ? 0 : n, trama_value_name(input), h->pieces.n);
    for (int i = 0; i < n; i++)
        if (!pieces[i] && box_count(&h->pieces.at[i].region.box))
            return trama_fail(where, TRAMA_E_ARGUMENT, "trama_feed_local: box %d of %s is NULL", i,
                              trama_value_name(input));
    return TRAMA_OK;
}

/* A view of a box in a row-major buffer without gaps. */
static trama_view packed_view(const void *data, trama_dtype dtype, const box *b)
{
    trama_shape local = trama_shape_of(b->ndim, b->n);
    box whole = box_whole(local);
    return host_view(data, dtype, local, &whole);
}

trama_status trama_feed_local_at(trama_where where, trama_executable *e, const trama_value *input, trama_shape shape,
                                 int n, const void *const *pieces)
{
    value_ref at;
    kept_plan *f;
    const plan_dist_value *h = NULL;
    trama_status status = find_buffers(where, e, "trama_feed_local", input, shape, &f);
    if (!status) {
        h = value_ref_dist_value(kept_at(f));
        status = check_pieces(where, h, input, n, pieces);
    }
    if (!status)
        status = input_take(e, input, f, &at);
    for (int i = 0; i < n && !status; i++) {
        const plan_local_box *piece = &h->pieces.at[i];
        trama_view from = packed_view(pieces[i], trama_value_dtype(input), &piece->region.box);
        status = host_to_piece(at.in, piece, &from, "trama_feed_local");
    }
    return status;
}

/* ---- The boxes that will be fed ---- */

/* This rank's boxes of the input. The question is not collective, so it must not change the cache that all ranks keep
 * alike: its plans go into another cache, e->asked. */
static trama_status ask_boxes(trama_where where, trama_executable *e, const char *call, const trama_value *input,
                              trama_shape shape, const plan_dist_value **found)
{
    trama_status status = check_input(where, e, call, input, shape);
    if (status)
        return status;
    const trama_value *v = e->program->values.at[input->id];
    shape_words words;
    const plan_key key = plan_key_of_shape(PLAN_INPUT, v, shape, &words);
    const kept_plan *k = plan_cache_find(&e->asked, &key, NULL);
    if (!k) {
        if (plan_cache_is_full(&e->asked, &key))
            plan_cache_shrink(&e->asked, &key);
        compiled_program *s = compile_feed(&e->planning, v, shape, e->l.mesh[v->id], &e->l.value[v->id]);
        k = plan_cache_keep(&e->asked, &key, s, NULL, 0, NULL);
    }
    *found = plan_find(k->s->of.plan, k->s->result);
    return TRAMA_OK;
}

trama_status trama_feed_local_count_at(trama_where where, trama_executable *e, const trama_value *input,
                                       trama_shape shape, int *n)
{
    static const char call[] = "trama_feed_local_count";
    const plan_dist_value *h = NULL;
    if (!n)
        return trama_fail(where, TRAMA_E_ARGUMENT, "%s: the number's address is NULL", call);
    trama_status status = ask_boxes(where, e, call, input, shape, &h);
    if (!status)
        *n = h->pieces.n;
    return status;
}

trama_status trama_feed_local_box_at(trama_where where, trama_executable *e, const trama_value *input,
                                     trama_shape shape, int i, int64_t *offset, int64_t *extent)
{
    static const char call[] = "trama_feed_local_box";
    const plan_dist_value *h = NULL;
    trama_status status = ask_boxes(where, e, call, input, shape, &h);
    return status ? status : piece_box(where, call, h, i, trama_value_name(input), offset, extent);
}

/* ---- Writing ---- */

static trama_status check_state(trama_where where, const char *call, trama_value *own)
{
    return value_storage(own) ? TRAMA_OK
                              : trama_fail(where, TRAMA_E_ARGUMENT, "%s: %s is no parameter or state%s", call,
                                           own->name, own->kind == VALUE_INPUT ? "; inputs are fed by trama_feed" : "");
}

trama_status trama_write_at(trama_where where, trama_executable *e, const trama_value *value, const void *data,
                            size_t bytes)
{
    trama_value *own = executable_value(e, where, "trama_write", value);
    value_ref at;
    if (!own)
        return TRAMA_E_ARGUMENT;
    if (check_state(where, "trama_write", own))
        return TRAMA_E_ARGUMENT;
    size_t want = (size_t)trama_shape_count(own->shape) * trama_dtype_size(own->dtype);
    if (bytes != want || (!data && bytes))
        return trama_fail(where, TRAMA_E_SHAPE, "trama_write: %zu bytes for %s, which has %zu", data ? bytes : 0,
                          own->name, want);
    trama_status status = executable_locate(e, where, "trama_write", own, &at);
    if (!status)
        status = executable_call(e, where, "trama_write", own->name, own->id, NULL);
    return status ? status : host_to_value(at, data, own->shape, "trama_write");
}

trama_status trama_write_local_at(trama_where where, trama_executable *e, const trama_value *value, int i,
                                  const void *data, size_t bytes)
{
    static const char call[] = "trama_write_local";
    const plan_local_box *piece = NULL;
    value_ref at;
    trama_value *own = executable_value(e, where, call, value);
    if (!own)
        return TRAMA_E_ARGUMENT;
    trama_status status = check_state(where, call, own);
    if (!status)
        status = executable_locate(e, where, call, own, &at);
    if (!status)
        status = dist_value_piece(where, call, value_ref_dist_value(at), i, own->name, &piece);
    if (status)
        return status;
    const box *b = &piece->region.box;
    size_t want = (size_t)box_count(b) * trama_dtype_size(own->dtype);
    if (bytes != want || (!data && bytes))
        return trama_fail(where, TRAMA_E_SHAPE, "%s: %zu bytes for box %d of %s, which has %zu", call, data ? bytes : 0,
                          i, own->name, want);
    trama_view from = packed_view(data, own->dtype, b);
    return host_to_piece(at.in, piece, &from, call);
}
