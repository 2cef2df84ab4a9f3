/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs from datasets of users, and values into them: which boxes, and in which turn. The format is known by
 * dist/file.
 */
#include "dataset_file.h"

#include <inttypes.h>

#include "box_file.h"
#include "host.h"
#include "saving.h"
#include "trama_dataset.h"

static const char feeding[] = "trama_feed_dataset", writing[] = "trama_write_dataset";

/* The part of a dataset. */
typedef struct part {
    const char *call, *path, *name;
    const int64_t *offset; /* NULL: all 0 */
    dataset_file *file;    /* NULL: closed */
} part;

static trama_status check_names(trama_where where, const part *p, const void *executable, const void *value)
{
    const char *missing = !executable ? "executable"
                          : !value    ? "value"
                          : !p->path  ? "path"
                          : !p->name  ? "dataset"
                                      : NULL;
    return missing ? trama_fail(where, TRAMA_E_ARGUMENT, "%s: the %s is NULL", p->call, missing) : TRAMA_OK;
}

/* The part that has the shape lies within the dataset. */
static trama_status check_part(const part *p, trama_shape shape)
{
    const trama_shape whole = dataset_shape(p->file);
    text own = {0}, other = {0};
    bool good = whole.ndim == shape.ndim;
    for (int d = 0; d < shape.ndim && good; d++) {
        const int64_t lo = p->offset ? p->offset[d] : 0;
        good = lo >= 0 && lo <= whole.dim[d] && shape.dim[d] <= whole.dim[d] - lo;
    }
    if (good)
        return TRAMA_OK;
    shape_text(&own, shape);
    shape_text(&other, whole);
    text_add(&own, "%s", p->offset && whole.ndim == shape.ndim ? " at (" : "");
    for (int d = 0; p->offset && whole.ndim == shape.ndim && d < shape.ndim; d++)
        text_add(&own, "%s%" PRId64 "%s", d ? "," : "", p->offset[d], d == shape.ndim - 1 ? ")" : "");
    trama_fail(NOWHERE, TRAMA_E_SHAPE,
               "%s: dataset %s has the shape %s, and %s is no part of it; give another shape or offset", p->path,
               p->name, other.at, own.at);
    free(own.at);
    free(other.at);
    return TRAMA_E_SHAPE;
}

static trama_status open_part(part *p, bool writes, trama_dtype dtype, trama_shape shape)
{
    trama_status status = dataset_open(p->path, p->name, writes, dtype, &p->file);
    return status ? status : check_part(p, shape);
}

/* A box of the tensor in the dataset. */
static box box_in(const part *p, const box *b)
{
    box moved = *b;
    for (int d = 0; d < b->ndim && p->offset; d++)
        moved.lo[d] += p->offset[d];
    return moved;
}

/* ---- Feeding ---- */

static trama_status read_slab(const void *with, trama_dtype dtype, const box *b, void *data)
{
    const part *p = with;
    const box there = box_in(p, b);
    return dataset_read(p->file, &there, data);
}

static trama_status feed_part(trama_executable *e, const trama_value *input, trama_shape shape, part *p, void *room)
{
    boxes_filled boxes = {
        .element = trama_dtype_size(input->dtype), .read = read_slab, .with = p, .room = room, .call = feeding};
    kept_plan *f;
    trama_status status =
        room ? open_part(p, false, input->dtype, shape) : trama_fail(NOWHERE, TRAMA_E_MEMORY, "no memory for a buffer");
    status = context_agree(e->context, feeding, status);
    if (!status)
        status = input_buffers(e, e->program->values.at[input->id], shape, &f);
    if (!status)
        status = input_take(e, input, f, &boxes.at);
    if (status)
        return status;
    return context_agree(e->context, feeding, boxes_fill(&boxes));
}

trama_status trama_feed_dataset_at(trama_where where, trama_executable *e, const trama_value *input, const char *path,
                                   const char *dataset, const int64_t *offset, trama_shape shape)
{
    part p = {feeding, path, dataset, offset, NULL};
    trama_status status = check_names(where, &p, e, input);
    if (!status)
        status = input_check(where, e, feeding, input, shape);
    if (status)
        return status;
    void *room = trama_try_alloc(SLAB_BYTES);
    status = saving_error(where, feeding, feed_part(e, input, shape, &p, room));
    free(room);
    dataset_close(&p.file);
    return status;
}

/* ---- Writing ---- */

static trama_status write_region(const part *p, instance *in, const plan_region *region, void *room)
{
    const size_t element = trama_dtype_size(in->of->plan->shards.at[region->shard].dtype);
    const box_slabs slabs = box_slabs_of(&region->box, element, SLAB_BYTES);
    trama_status status = TRAMA_OK;
    for (int64_t i = 0; i < slabs.n && !status; i++) {
        const plan_region slab = {region->shard, box_slab(&slabs, i)};
        const box there = box_in(p, &slab.box);
        status = host_from_region(in, &slab, room);
        if (!status)
            status = dataset_write(p->file, &there, room);
    }
    return status;
}

/* This rank's turn: it alone has the file open. Rank 0 alone writes a value that all ranks have as a whole. */
static trama_status write_rows(trama_executable *e, part *p, trama_dtype dtype, trama_shape shape,
                               const state_rows *rows)
{
    const plan_dist_value *h = rows->at;
    const bool mine = context_rank(e->context) == 0 || layout_has(&h->layout, TRAMA_SPLIT);
    void *room = trama_try_alloc(SLAB_BYTES);
    trama_status status =
        room ? open_part(p, true, dtype, shape) : trama_fail(NOWHERE, TRAMA_E_MEMORY, "no memory for a buffer");
    for (int i = 0; i < h->pieces.n && !status && mine; i++)
        status = write_region(p, rows->in, &h->pieces.at[i].region, room);
    dataset_close(&p->file);
    free(room);
    return status;
}

static trama_status write_in_turns(trama_executable *e, part *p, trama_dtype dtype, trama_shape shape,
                                   const state_rows *rows)
{
    trama_status status = TRAMA_OK;
    if (context_rank(e->context) == 0)
        status = dataset_make(p->path, p->name, dtype, shape);
    status = context_agree(e->context, writing, status);
    for (int r = 0; r < context_ranks(e->context) && !status; r++)
        status = context_agree(e->context, writing,
                               r == context_rank(e->context) ? write_rows(e, p, dtype, shape, rows) : TRAMA_OK);
    return status;
}

trama_status trama_write_dataset_at(trama_where where, trama_executable *e, const trama_value *value, const char *path,
                                    const char *dataset, const int64_t *offset)
{
    part p = {writing, path, dataset, offset, NULL};
    value_ref at;
    state_rows rows = {0};
    trama_status status = check_names(where, &p, e, value);
    if (!status)
        status = executable_locate(e, where, writing, value, &at);
    if (!status)
        status = executable_call(e, where, writing, value->name, value->id, NULL);
    if (status)
        return status;
    status = state_rows_make(e, value, at, &rows);
    if (!status)
        status = write_in_turns(e, &p, value->dtype, at.in->of->shapes[at.as], &rows);
    state_rows_free(&rows);
    return saving_error(where, writing, status);
}
