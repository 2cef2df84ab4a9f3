/* SPDX-License-Identifier: Apache-2.0 */
/* Making shards: a dim is cut into balanced pieces; each piece is a handle on a strided view of the one buffer. */
#include "tile.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "node_memory.h"

#if TRAMA_HAVE_MPI
#include <starpu_mpi.h>
#endif

shard_key shard_key_of(int place, trama_dtype dtype, int ndim, const int64_t *extent, int cut_dim, int cut_parts)
{
    shard_key key;
    memset(&key, 0, sizeof key);
    assert(ndim >= 0 && ndim <= TRAMA_MAX_NDIM && cut_dim < ndim);
    for (int d = 0; d < ndim; d++)
        key.extent[d] = extent[d];
    bool whole = cut_parts <= 1 || cut_dim < 0;
    assert(whole || cut_parts <= (extent[cut_dim] > 1 ? extent[cut_dim] : 1));
    key.place = place;
    key.dtype = (int)dtype;
    key.ndim = ndim;
    key.cut_dim = whole ? -1 : cut_dim;
    key.cut_parts = whole ? 1 : cut_parts;
    return key;
}

static void measure(shard *s)
{
    s->count = 1;
    for (int d = s->ndim - 1; d >= 0; d--) {
        s->stride[d] = s->count;
        s->count *= s->extent[d];
    }
    s->bytes = (size_t)s->count * trama_dtype_size(s->dtype);
}

static void cut(shard *s)
{
    int64_t n = s->cut_dim >= 0 ? s->extent[s->cut_dim] : s->ndim ? s->extent[0] : 1, at = 0;
    for (int t = 0; t < s->n_tiles; t++) {
        s->length[t] = n / s->n_tiles + (t < n % s->n_tiles);
        s->offset[t] = at;
        at += s->length[t];
    }
}

static shard_rows rows_of(const shard *s, int tile)
{
    if (s->cut_dim < 0)
        return (shard_rows){.run = s->count, .rows = 1, .ld = s->count};
    int64_t inner = s->stride[s->cut_dim], rows = 1;
    for (int d = 0; d < s->cut_dim; d++)
        rows *= s->extent[d];
    return (shard_rows){s->offset[tile] * inner, s->length[tile] * inner, rows, s->extent[s->cut_dim] * inner};
}

static void register_rows(shard *s, int tile, shard_rows v)
{
    size_t size = trama_dtype_size(s->dtype);
    uintptr_t at = (uintptr_t)s->data + (uintptr_t)v.first * size;
    if (v.run * v.rows == 0)
        starpu_vector_data_register(&s->tile[tile], STARPU_MAIN_RAM, (uintptr_t)s->data, 1, size);
    else if (v.rows == 1)
        starpu_vector_data_register(&s->tile[tile], STARPU_MAIN_RAM, at, (uint32_t)v.run, size);
    else
        starpu_matrix_data_register(&s->tile[tile], STARPU_MAIN_RAM, at, (uint32_t)v.ld, (uint32_t)v.run,
                                    (uint32_t)v.rows, size);
}

static void identify(trama_context *c, shard *s, int tile)
{
#if TRAMA_HAVE_MPI
    if (c->driver.messages)
        starpu_mpi_data_register_comm(s->tile[tile], -1, c->comm.rank, c->comm.handle);
#else
    (void)c, (void)s, (void)tile;
#endif
}

/* StarPU's interfaces count in 32 bits. */
static bool too_large(const shard *s)
{
    for (int t = 0; t < s->n_tiles; t++) {
        shard_rows v = rows_of(s, t);
        if (v.run > UINT32_MAX || v.rows > UINT32_MAX || (v.rows > 1 && v.ld > UINT32_MAX))
            return true;
    }
    return false;
}

static void make_room(shard *s)
{
    s->tile = trama_alloc((size_t)s->n_tiles * sizeof *s->tile);
    s->offset = trama_alloc((size_t)s->n_tiles * sizeof *s->offset);
    s->length = trama_alloc((size_t)s->n_tiles * sizeof *s->length);
}

static void drop(shard *s)
{
    free(s->tile);
    free(s->offset);
    free(s->length);
    *s = (shard){0};
}

/* On a GPU a shard is one tile, whatever TRAMA_MAX_TILES says. */
static trama_status refuse_large(const trama_context *c, const shard *s)
{
    const bool gpu = c->place.machine->places[s->place].gpu;
    return trama_fail(
        NOWHERE, TRAMA_E_UNSUPPORTED,
        "place %d: a shard of %zu bytes in %d tiles, %lld elements: StarPU takes fewer than 2^32 elements "
        "a tile; shard it over more processes of a mesh%s",
        s->place, s->bytes, s->n_tiles, (long long)s->count,
        gpu ? ", or keep it on cores, which cut it into tiles (TRAMA_DEVICE=cpu)"
            : ", or cut it into more tiles (TRAMA_MAX_TILES)");
}

static trama_status allocate(trama_context *c, bool shared, shard *s, buffer *memory)
{
    const int numa = c->place.own[s->place - c->place.first].numa;
    if (too_large(s))
        return refuse_large(c, s);
    if (!(shared && buffer_make_shared(c->topology, numa, s->bytes, c->node_memory, memory)) &&
        !buffer_make(c->topology, numa, s->bytes, memory))
        return trama_fail(NOWHERE, TRAMA_E_MEMORY, "no memory for a shard of %zu bytes", s->bytes);
    s->data = memory->data;
    return TRAMA_OK;
}

/* A shard without memory and handles yet. */
static shard make_empty(const shard_key *key)
{
    shard s = {.place = key->place,
               .dtype = (trama_dtype)key->dtype,
               .ndim = key->ndim,
               .cut_dim = key->cut_dim,
               .n_tiles = key->cut_parts};
    memcpy(s.extent, key->extent, sizeof s.extent);
    make_room(&s);
    measure(&s);
    cut(&s);
    return s;
}

static void register_tiles(trama_context *c, shard *s)
{
    for (int t = 0; t < s->n_tiles; t++) {
        register_rows(s, t, rows_of(s, t));
        identify(c, s, t);
    }
}

trama_status tile_make(trama_context *c, const shard_key *key, shard *s, buffer *memory)
{
    *s = make_empty(key);
    trama_status status = allocate(c, key->shared, s, memory);
    if (status)
        drop(s);
    else
        register_tiles(c, s);
    return status;
}

void tile_unmake(shard *s, buffer *memory)
{
    for (int t = 0; t < s->n_tiles; t++)
        starpu_data_unregister_no_coherency(s->tile[t]);
    buffer_free(memory);
    drop(s);
}

/* A shard without a handle yet, in the memory of another shard. */
static shard *lent(const shard *base, int ndim, const int64_t *extent, int cut_dim, int n_tiles)
{
    shard *s = trama_alloc(sizeof *s);
    *s = (shard){.place = base->place,
                 .dtype = base->dtype,
                 .ndim = ndim,
                 .data = base->data,
                 .cut_dim = cut_dim,
                 .n_tiles = n_tiles};
    memcpy(s->extent, extent, (size_t)ndim * sizeof *extent);
    make_room(s);
    measure(s);
    cut(s);
    return s;
}

shard *shard_lend(trama_context *c, const shard *base, shard_rows rows, int ndim, const int64_t *extent,
                  const int64_t *stride)
{
    shard *s = lent(base, ndim, extent, -1, 1);
    memcpy(s->stride, stride, (size_t)ndim * sizeof *stride);
    register_rows(s, 0, rows);
    identify(c, s, 0);
    s->data = (char *)s->data + (size_t)rows.first * trama_dtype_size(s->dtype);
    return s;
}

/* A shard in memory that others provide. */
static shard *make_at(trama_context *c, void *data, shard_key key)
{
    shard *s = trama_alloc(sizeof *s);
    *s = make_empty(&key);
    s->data = data;
    if (too_large(s)) {
        refuse_large(c, s);
        drop(s);
        free(s);
        return NULL;
    }
    register_tiles(c, s);
    return s;
}

shard *shard_within(trama_context *c, const shard *base, int64_t at, trama_dtype dtype, int ndim, const int64_t *extent,
                    int cut_dim, int cut_parts)
{
    return make_at(c, (char *)base->data + at, shard_key_of(base->place, dtype, ndim, extent, cut_dim, cut_parts));
}

int64_t shard_shared_at(const trama_context *c, const void *data)
{
    return node_memory_at(c->node_memory, data);
}

shard *shard_borrow(trama_context *c, int place, int rank, int64_t at, trama_dtype dtype, int ndim,
                    const int64_t *extent)
{
    return make_at(c, node_memory_of(c->node_memory, rank, at), shard_key_of(place, dtype, ndim, extent, -1, 1));
}

shard *shard_part(const shard *base, int64_t first, int ndim, const int64_t *extent)
{
    shard *s = lent(base, ndim, extent, -1, 1);
    s->part = true;
    s->tile[0] = base->tile[0];
    s->data = (char *)s->data + (size_t)first * trama_dtype_size(s->dtype);
    return s;
}

shard *shard_alias(const shard *base, int64_t first, int ndim, const int64_t *extent, const int64_t *stride,
                   int cut_dim)
{
    shard *s = lent(base, ndim, extent, cut_dim, base->n_tiles);
    s->part = true;
    memcpy(s->stride, stride, (size_t)ndim * sizeof *stride);
    memcpy(s->tile, base->tile, (size_t)s->n_tiles * sizeof *s->tile);
    s->data = (char *)s->data + (size_t)first * trama_dtype_size(s->dtype);
    return s;
}

void shard_end(shard *s)
{
    for (int t = 0; t < s->n_tiles && !s->part; t++)
        starpu_data_unregister_no_coherency(s->tile[t]);
    drop(s);
    free(s);
}

/* The tile as rows where its strides allow it; else its first element, which orders the uses of the tile as well. */
static shard_rows rows_in_host(const shard *s, int tile)
{
    shard_rows r = {.run = 1, .rows = 1};
    if (s->cut_dim >= 0)
        r.first = s->offset[tile] * s->stride[s->cut_dim];
    for (int d = s->ndim - 1; d >= 0; d--) {
        int64_t n = d == s->cut_dim ? s->length[tile] : s->extent[d], step = s->stride[d];
        if (n == 1)
            continue;
        if (r.rows == 1 && step == r.run) {
            r.run *= n;
        } else if (r.rows == 1 && step > r.run) {
            r.rows = n;
            r.ld = step;
        } else if (r.rows > 1 && step == r.rows * r.ld) {
            r.rows *= n;
        } else {
            return (shard_rows){r.first, 1, 1, 1};
        }
    }
    r.ld = r.rows == 1 ? r.run : r.ld;
    bool counts = r.run <= UINT32_MAX && r.rows <= UINT32_MAX && r.ld <= UINT32_MAX;
    return counts ? r : (shard_rows){r.first, 1, 1, 1};
}

shard *shard_wrap(trama_context *c, int place, trama_dtype dtype, int ndim, const int64_t *extent,
                  const int64_t *stride, void *data, int cut_dim, int cut_parts, starpu_data_handle_t handle)
{
    shard *s = trama_alloc(sizeof *s);
    *s = (shard){.place = place,
                 .dtype = dtype,
                 .ndim = ndim,
                 .data = data,
                 .part = handle != NULL,
                 .cut_dim = handle ? -1 : cut_dim,
                 .n_tiles = handle ? 1 : cut_parts};
    memcpy(s->extent, extent, (size_t)ndim * sizeof *extent);
    make_room(s);
    measure(s);
    cut(s);
    memcpy(s->stride, stride, (size_t)ndim * sizeof *stride);
    s->tile[0] = handle;
    for (int t = 0; t < s->n_tiles && !handle; t++) {
        register_rows(s, t, rows_in_host(s, t));
        identify(c, s, t);
    }
    return s;
}

void shard_unwrap(shard *s)
{
    for (int t = 0; t < s->n_tiles && !s->part; t++)
        starpu_data_unregister_no_coherency(s->tile[t]);
    drop(s);
    free(s);
}

void shard_label(shard *s, const char *name, int row, int column)
{
    char full[128];
    for (int t = 0; t < s->n_tiles; t++) {
        int x = row + (s->cut_dim == 0 ? t : 0), y = column + (s->cut_dim > 0 ? t : 0);
        snprintf(full, sizeof full, "%.100s.%d_%d", name, x, y);
        starpu_data_set_name(s->tile[t], full);
        starpu_data_set_coordinates(s->tile[t], 2, x, y);
    }
}

shard_view shard_buffer_view(void *interface)
{
    const struct starpu_matrix_interface *m = interface;
    const struct starpu_vector_interface *v = interface;
    if (v->id == STARPU_MATRIX_INTERFACE_ID)
        return (shard_view){(void *)m->ptr, m->nx, m->ny, m->ld};
    assert(v->id == STARPU_VECTOR_INTERFACE_ID);
    return (shard_view){(void *)v->ptr, v->nx, 1, v->nx};
}
