/* SPDX-License-Identifier: Apache-2.0 */
/* The boxes that this rank has of a value, filled slab by slab. It knows no format of a file. */
#include "box_file.h"
#include "host.h"
#include "saving.h"

bool box_is_repeated(const plan_dist_value *h, int i)
{
    for (int j = 0; j < i; j++)
        if (box_equal(&h->pieces.at[j].region.box, &h->pieces.at[i].region.box))
            return true;
    return false;
}

static trama_dtype dtype_of(value_ref at, const plan_local_box *piece)
{
    return at.in->of->plan->shards.at[piece->region.shard].dtype;
}

static trama_status put_slab(const boxes_filled *f, const plan_local_box *piece, const box *b)
{
    const trama_shape local = trama_shape_of(b->ndim, b->n);
    const box whole = box_whole(local);
    const trama_view from = host_view(f->room, dtype_of(f->at, piece), local, &whole);
    plan_local_box part = *piece;
    part.region.box = *b;
    return host_holds_zero(value_ref_dist_value(f->at), piece) ? host_zero_to_piece(f->at.in, &part, f->call)
                                                               : host_to_piece(f->at.in, &part, &from, f->call);
}

static trama_status fill_box(const boxes_filled *f, int first)
{
    const plan_dist_value *h = value_ref_dist_value(f->at);
    const box *whole = &h->pieces.at[first].region.box;
    const trama_dtype dtype = dtype_of(f->at, &h->pieces.at[first]);
    const size_t own = trama_dtype_size(dtype);
    const box_slabs slabs = box_slabs_of(whole, f->element > own ? f->element : own, SLAB_BYTES);
    trama_status status = TRAMA_OK;
    for (int64_t i = 0; i < slabs.n && !status; i++) {
        const box b = box_slab(&slabs, i);
        status = f->read(f->with, dtype, &b, f->room);
        for (int j = first; j < h->pieces.n && !status; j++)
            if (box_equal(&h->pieces.at[j].region.box, whole))
                status = put_slab(f, &h->pieces.at[j], &b);
    }
    return status;
}

trama_status boxes_fill(const boxes_filled *f)
{
    const plan_dist_value *h = value_ref_dist_value(f->at);
    trama_status status = TRAMA_OK;
    for (int i = 0; i < h->pieces.n && !status; i++)
        if (!box_is_repeated(h, i))
            status = fill_box(f, i);
    return status;
}
