/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between host memory and the shards of this rank. */
#include "host.h"

trama_view host_view(const void *data, trama_dtype dtype, trama_shape shape, const box *b)
{
    trama_view v = {.data = (void *)data, .dtype = dtype, .ndim = shape.ndim};
    int64_t stride = 1, at = 0;
    for (int d = shape.ndim - 1; d >= 0; d--) {
        v.extent[d] = b->n[d];
        v.stride[d] = stride;
        at += b->lo[d] * stride;
        stride *= shape.dim[d];
    }
    v.data = (char *)v.data + at * (int64_t)trama_dtype_size(dtype);
    return v;
}

trama_view host_dense(trama_view of, void *data)
{
    int64_t stride = 1;
    for (int d = of.ndim - 1; d >= 0; d--) {
        of.stride[d] = stride;
        stride *= of.extent[d];
    }
    of.data = data;
    return of;
}

trama_status host_to_piece(instance *in, const plan_local_box *piece, const trama_view *from, const char *call)
{
    if (box_count(&piece->region.box) == 0)
        return TRAMA_OK;
    shard *s = instance_shard(in, piece->region.shard);
    trama_view to = instance_view(in, &piece->region, s);
    bool all = box_equal(&in->of->plan->shards.at[piece->region.shard].box, &piece->region.box);
    trama_status status = shard_acquire(in->context, s, all ? STARPU_W : STARPU_RW, call);
    if (status)
        return status;
    kernel_copy(&to, from);
    shard_release(in->context, s);
    if (all)
        shard_prefetch(in->context, s);
    return TRAMA_OK;
}

/* Whether the box is a zero term. With P(sum) the first process along the axis holds the value and the others 0; with
 * other kinds of P all hold the value. */
bool host_holds_zero(const plan_dist_value *h, const plan_local_box *piece)
{
    int coordinate[TRAMA_MAX_AXES];
    mesh_coordinate(h->mesh, piece->position, coordinate);
    for (int a = 0; a < h->layout.naxes; a++)
        if (h->layout.axis[a].kind == TRAMA_PARTIAL && h->layout.axis[a].reduce == TRAMA_SUM && coordinate[a])
            return true;
    return false;
}

trama_status host_zero_to_piece(instance *in, const plan_local_box *piece, const char *call)
{
    const box *b = &piece->region.box;
    trama_dtype dtype = in->of->plan->shards.at[piece->region.shard].dtype;
    trama_shape local = trama_shape_of(b->ndim, b->n);
    box whole = box_whole(local);
    size_t bytes = (size_t)box_count(b) * trama_dtype_size(dtype);
    void *zeros = trama_try_alloc(bytes);
    if (!zeros)
        return trama_fail(NOWHERE, TRAMA_E_MEMORY, "%s: no memory for %zu bytes of zeros", call, bytes);
    trama_view from = host_view(zeros, dtype, local, &whole);
    trama_status status = host_to_piece(in, piece, &from, call);
    free(zeros);
    return status;
}

trama_status host_to_value(value_ref at, const void *data, trama_shape shape, const char *call)
{
    const plan_dist_value *h = value_ref_dist_value(at);
    trama_status status = TRAMA_OK;
    for (int i = 0; i < h->pieces.n && !status; i++) {
        const plan_local_box *piece = &h->pieces.at[i];
        trama_dtype dtype = at.in->of->plan->shards.at[piece->region.shard].dtype;
        trama_view from = host_view(data, dtype, shape, &piece->region.box);
        status = host_holds_zero(h, piece) ? host_zero_to_piece(at.in, piece, call)
                                           : host_to_piece(at.in, piece, &from, call);
    }
    return status;
}

trama_status host_from_region(instance *in, const plan_region *region, void *data)
{
    shard *s = instance_shard(in, region->shard);
    const trama_view from = instance_view(in, region, s), to = host_dense(from, data);
    if (box_count(&region->box) == 0)
        return TRAMA_OK;
    trama_status status = shard_acquire(in->context, s, STARPU_R, "trama_read");
    if (status)
        return status;
    kernel_copy(&to, &from);
    shard_release(in->context, s);
    return TRAMA_OK;
}
