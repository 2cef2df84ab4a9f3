/* SPDX-License-Identifier: Apache-2.0 */
/* A checkpoint written again as another file, by one process, slab by slab; and conversions of elements. */
#include <errno.h>
#include <string.h>

#include "box_file.h"
#include "checkpoint.h"
#include "content_sum.h"
#include "sized.h"
#include "trama_half.h"

static const char call[] = "trama_checkpoint_write";
enum { SLAB = 4 << 20 };

/* ---- Elements ---- */

bool elements_can_convert(trama_dtype from, trama_dtype to)
{
    const trama_dtype_kind kind = trama_dtype_kind_of(from);
    return from == to || (kind == trama_dtype_kind_of(to) && (kind == TRAMA_KIND_FLOAT || kind == TRAMA_KIND_COMPLEX));
}

/* The pairs of weights: loops that vectorise. */
#define QUICK_LIST(X)                                                                                                  \
    X(TRAMA_BF16, trama_bf16, TRAMA_F32, float, trama_float_of_bf16)                                                   \
    X(TRAMA_F32, float, TRAMA_BF16, trama_bf16, trama_bf16_of_float)                                                   \
    X(TRAMA_F16, trama_f16, TRAMA_F32, float, trama_float_of_f16)                                                      \
    X(TRAMA_F32, float, TRAMA_F16, trama_f16, trama_f16_of_float)                                                      \
    X(TRAMA_F64, double, TRAMA_F32, float, (float))                                                                    \
    X(TRAMA_F32, float, TRAMA_F64, double, (double))

static bool convert_quickly(trama_dtype from, const void *data, trama_dtype to, void *result, int64_t n)
{
#define QUICK(from_dtype, from_type, to_dtype, to_type, convert)                                                       \
    if (from == from_dtype && to == to_dtype) {                                                                        \
        const from_type *x = data;                                                                                     \
        to_type *y = result;                                                                                           \
        for (int64_t i = 0; i < n; i++)                                                                                \
            y[i] = convert(x[i]);                                                                                      \
        return true;                                                                                                   \
    }
    QUICK_LIST(QUICK)
#undef QUICK
    return false;
}

void elements_convert(trama_dtype from, const void *data, trama_dtype to, void *result, int64_t n)
{
    if (from == to)
        memcpy(result, data, (size_t)n * trama_dtype_size(from));
    else if (!convert_quickly(from, data, to, result, n))
        for (int64_t i = 0; i < n * dtype_parts(from); i++)
            element_set(dtype_part(to), result, i, element_of(dtype_part(from), data, i));
}

trama_status file_dtype_parse(trama_where where, const char *name, const char *words, trama_dtype *dtype)
{
    *dtype = TRAMA_N_DTYPES;
    trama_status status = words ? trama_dtype_parse(words, dtype) : TRAMA_OK;
    if (!status && words && !trama_dtype_is_float(*dtype))
        status = trama_fail(where, TRAMA_E_DTYPE, "%s: floats cannot be stored as %s; give f64, f32, f16 or bf16", name,
                            words);
    return status;
}

/* ---- One state ---- */

typedef struct copying {
    const trama_checkpoint *from;
    trama_checkpoint *to;
    char *room, *converted; /* [SLAB] each, or an element */
} copying;

static trama_status copy_slab(const copying *k, const stored_tensor *from, const stored_tensor *to, const box *b,
                              uint64_t sums[2])
{
    const size_t own = trama_dtype_size(from->dtype), other = trama_dtype_size(to->dtype);
    if (!box_read(checkpoint_descriptor(k->from, from), from->at, from->shape, own, b, k->room))
        return checkpoint_failed(k->from->path, from->name, errno);
    elements_convert(from->dtype, k->room, to->dtype, k->converted, box_count(b));
    sums[0] += content_sum_box(from->shape, own, b, k->room);
    sums[1] += content_sum_box(to->shape, other, b, k->converted);
    return box_write(checkpoint_descriptor(k->to, to), to->at, to->shape, other, b, k->converted)
               ? TRAMA_OK
               : checkpoint_failed(k->to->path, to->name, errno);
}

static trama_status copy_content(const copying *k, const stored_tensor *from, stored_tensor *to)
{
    const box whole = box_whole(from->shape);
    const size_t own = trama_dtype_size(from->dtype), other = trama_dtype_size(to->dtype);
    const box_slabs slabs = box_slabs_of(&whole, own > other ? own : other, SLAB);
    uint64_t sums[2] = {0, 0};
    trama_status status = TRAMA_OK;
    for (int64_t i = 0; i < slabs.n && !status; i++) {
        const box b = box_slab(&slabs, i);
        status = copy_slab(k, from, to, &b, sums);
    }
    if (!status && k->from->format->summed && sums[0] != from->sum)
        status = checkpoint_damaged(k->from->path, from->name, "its check sum is wrong");
    to->sum = sums[1];
    return status;
}

/* ---- The file ---- */

static trama_status list_states(const trama_checkpoint *c, const trama_checkpoint_write_options *o, trama_dtype dtype,
                                trama_checkpoint *to)
{
    for (int i = 0; i < c->tensors.n; i++) {
        const stored_tensor *t = &c->tensors.at[i];
        if (!name_is_chosen(o->states, t->name))
            continue;
        if (checkpoint_add_state(to, o->names, dtype, t->name, t->dtype, t->shape))
            continue;
        char *name = name_in_file(o->names, t->name);
        trama_status status = trama_fail(
            NOWHERE, TRAMA_E_ARGUMENT,
            "%s: two states have the name %s in the file; give one of them another in options.names", call, name);
        free(name);
        return status;
    }
    for (int i = 0; i < c->texts.n; i++)
        checkpoint_set(to, c->texts.at[i].key, c->texts.at[i].text);
    return TRAMA_OK;
}

static trama_status copy_states(const trama_checkpoint *c, const trama_checkpoint_write_options *o,
                                trama_checkpoint *to)
{
    copying k = {c, to, trama_try_alloc(SLAB), trama_try_alloc(SLAB)};
    trama_status status = k.room && k.converted
                              ? TRAMA_OK
                              : trama_fail(NOWHERE, TRAMA_E_MEMORY, "%s: no memory for %d bytes", call, 2 * SLAB);
    for (int i = 0; i < c->tensors.n && !status; i++) {
        if (!name_is_chosen(o->states, c->tensors.at[i].name))
            continue;
        char *name = name_in_file(o->names, c->tensors.at[i].name);
        const int at = trama_checkpoint_find(to, name);
        free(name);
        status = copy_content(&k, &c->tensors.at[i], &to->tensors.at[at]);
    }
    free(k.room);
    free(k.converted);
    return status;
}

static trama_status finish(const trama_checkpoint *to, const char *path)
{
    char *folder = folder_of(path);
    trama_status status = checkpoint_synchronise(to) ? to->format->seal(to)
                                                     : checkpoint_failed(to->path, "cannot be synchronised", errno);
    if (!status)
        status = checkpoint_name_shards(to);
    if (!status)
        status = folder_finish(folder, to->path, path, 0);
    free(folder);
    return status;
}

/* listed: the states of the new file, under its unfinished name */
static trama_status write_listed(const trama_checkpoint *c, const trama_checkpoint_write_options *o,
                                 const trama_checkpoint *listed, const char *path)
{
    trama_checkpoint *to = checkpoint_new(listed->path);
    trama_status status = listed->format->write_frame(listed);
    if (!status)
        status = to->format->open_unfinished(to);
    if (!status)
        status = copy_states(c, o, to);
    if (!status)
        status = finish(to, path);
    if (status)
        checkpoint_remove(listed);
    trama_checkpoint_destroy(&to);
    return status;
}

static trama_status check_path(const trama_checkpoint *c, const char *path, const trama_checkpoint_write_options *o)
{
    if (!c || !path || !*path)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "%s: the %s is NULL or empty", call, c ? "path" : "checkpoint");
    if (o->shard_bytes < 0 || (o->shard_bytes && !path_is_safetensors(path)))
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "%s: shard_bytes is 0 or more, and for files .safetensors", call);
    static const char *const written[] = {".h5", ".safetensors", ".npz"};
    for (size_t i = 0; i < sizeof written / sizeof *written; i++)
        if (path_has_ending(path, written[i]) && !path_has_ending(path, ".part"))
            return TRAMA_OK;
    return trama_fail(NOWHERE, TRAMA_E_ARGUMENT,
                      "%s: %s: its end names no format to write; give .h5, .safetensors or .npz", call, path);
}

trama_status trama_checkpoint_write(const trama_checkpoint *c, const char *path,
                                    const trama_checkpoint_write_options *given)
{
    trama_checkpoint_write_options o = {0};
    trama_dtype dtype;
    trama_status status =
        given ? sized_read(NOWHERE, call, SIZED(trama_checkpoint_write_options, shard_bytes), &o, given) : TRAMA_OK;
    if (!status)
        status = check_path(c, path, &o);
    if (!status)
        status = file_dtype_parse(NOWHERE, call, o.dtype, &dtype);
    if (status)
        return status;
    char *final = trama_text_copy(path), *unfinished = unfinished_path(path);
    trama_checkpoint *listed = checkpoint_new(unfinished);
    status = list_states(c, &o, dtype, listed);
    if (!status && listed->format == &safetensors_format)
        safetensors_divide(listed, o.shard_bytes, &final);
    if (!status)
        status = write_listed(c, &o, listed, final);
    trama_checkpoint_destroy(&listed);
    free(unfinished);
    free(final);
    return status;
}
