/* SPDX-License-Identifier: Apache-2.0 */
/* What the Fortran module needs beside the public calls. */
#include "comm.h"
#include "context.h"
#include "trama_executable.h"
#include "trama_layout.h"
#include "trama_optimizer.h"
#include "trama_wrap.h"

/* A box of a tensor in an array of Fortran's: dims in its order, places from 1. */
typedef struct fortran_piece {
    void *data, *handle;
    int64_t first[TRAMA_MAX_NDIM], extent[TRAMA_MAX_NDIM], stride[TRAMA_MAX_NDIM]; /* stride in bytes */
    int ndim, places, dtype; /* dims of the array; numbers in first; -1: none of Trama's */
} fortran_piece;

/* trama_c.f90 has these field by field, and must follow what changes here. */
_Static_assert(sizeof(void *) != 8 || (sizeof(trama_config) == 104 && sizeof(trama_optimizer) == 224), "trama_c.f90");
_Static_assert(sizeof(void *) != 8 || (sizeof(trama_traffic) == 88 && sizeof(fortran_piece) == 224), "trama_c.f90");
_Static_assert(TRAMA_OK == 0 && TRAMA_E_SYSTEM == 9 && TRAMA_F32 == 0 && TRAMA_F16 == 6, "trama_c.f90");
_Static_assert(TRAMA_READ_WRITE == 0 && TRAMA_READ_ONLY == 1 && TRAMA_MAX_NDIM == 8, "trama_c.f90");

trama_status trama_fortran_check(trama_where where, const char *call, const trama_value *value, trama_dtype dtype);
int trama_fortran_dim(const trama_value *value, int dim);
trama_status trama_fortran_wrap(trama_where where, trama_context *context, const char *name, trama_dtype dtype,
                                trama_shape shape, int n, const fortran_piece *pieces, trama_access access,
                                trama_wrapped **wrapped);
trama_status trama_fortran_box_of_layout(trama_where where, const trama_mesh *mesh, const char *layout,
                                         trama_shape shape, int position, int64_t *first, int64_t *extent);
trama_status trama_fortran_block_cyclic(trama_where where, const int *descriptor, const int *grid,
                                        const fortran_piece *local, int most, int *n, fortran_piece *pieces);

trama_status trama_start_fortran(const trama_config *config, int communicator, trama_context **context)
{
    trama_config with = config ? *config : (trama_config){0};
    with.communicator = comm_from_fortran(communicator);
    return trama_start(&with, context);
}

/* An array's type is the compiler's to know: that of the value must be the same. */
trama_status trama_fortran_check(trama_where where, const char *call, const trama_value *value, trama_dtype dtype)
{
    if (!value || trama_value_dtype(value) == dtype)
        return TRAMA_OK; /* the call itself refuses NULL */
    return trama_fail(where, TRAMA_E_DTYPE, "%s: the array is %s, but %s is %s", call, trama_dtype_name(dtype),
                      trama_value_name(value), trama_dtype_name(trama_value_dtype(value)));
}

/* A dim as Trama counts it, of one that counts from 1 in the other order; what is none stays none. */
int trama_fortran_dim(const trama_value *value, int dim)
{
    int ndim = value ? trama_value_shape(value).ndim : 0;
    return dim >= 1 && dim <= ndim ? ndim - dim : TRAMA_MAX_NDIM;
}

/* ---- The host's arrays ---- */

static trama_status check_array(trama_where where, const char *name, trama_dtype dtype, int ndim, int i,
                                const fortran_piece *f)
{
    int64_t size = (int64_t)trama_dtype_size(dtype);
    if (f->dtype < 0)
        return trama_fail(where, TRAMA_E_DTYPE,
                          "trama_wrap: '%s': box %d: Trama has no such element type; there are real(c_float), "
                          "real(c_double), integer(c_int32_t), integer(c_int64_t), and integer(c_int8_t) for u8",
                          name, i);
    if (f->dtype != (int)dtype)
        return trama_fail(where, TRAMA_E_DTYPE, "trama_wrap: '%s': box %d: the array is %s, but the tensor is %s", name,
                          i, trama_dtype_name((trama_dtype)f->dtype), trama_dtype_name(dtype));
    if (f->ndim != ndim || f->places != ndim)
        return trama_fail(
            where, TRAMA_E_SHAPE,
            "trama_wrap: '%s': box %d: the array has %d dims and its place %d numbers, but the tensor has "
            "%d dims",
            name, i, f->ndim, f->places, ndim);
    for (int d = 0; d < ndim; d++) {
        if (f->extent[d] < 0)
            return trama_fail(where, TRAMA_E_SHAPE,
                              "trama_wrap: '%s': box %d: how long an array of assumed size is, is not known; a section "
                              "of it has an extent: a(:, :n)",
                              name, i);
        if (f->extent[d] > 1 && f->stride[d] % size)
            return trama_fail(
                where, TRAMA_E_ARGUMENT,
                "trama_wrap: '%s': box %d: its elements lie %lld bytes apart, which are not whole elements "
                "of %lld; as components of a derived type they cannot be handed over",
                name, i, (long long)f->stride[d], (long long)size);
    }
    return TRAMA_OK;
}

/* Trama's order of dims. A descriptor tells of no memory but that of the elements. */
static trama_piece piece_of(const fortran_piece *f, int64_t size)
{
    trama_piece p = {.data = f->data, .handle = f->handle};
    int64_t last = 0, count = 1;
    for (int d = 0; d < f->ndim; d++) {
        int to = f->ndim - 1 - d;
        p.offset[to] = f->first[d] - 1;
        p.extent[to] = f->extent[d];
        p.stride[to] = f->extent[d] > 1 ? f->stride[d] / size : 1;
        last += (f->extent[d] - 1) * p.stride[to];
        count *= f->extent[d] > 0;
    }
    p.bytes = count && last >= 0 ? (size_t)(last + 1) * (size_t)size : 0;
    return p;
}

/* Collective: what is wrong here is refused on all ranks. */
trama_status trama_fortran_wrap(trama_where where, trama_context *context, const char *name, trama_dtype dtype,
                                trama_shape shape, int n, const fortran_piece *pieces, trama_access access,
                                trama_wrapped **wrapped)
{
    trama_status status = TRAMA_OK;
    for (int i = 0; i < n && !status; i++)
        status = check_array(where, name, dtype, shape.ndim, i, &pieces[i]);
    if (status)
        return context ? context_agree(context, "trama_wrap", status) : status;
    trama_piece *made = trama_alloc((size_t)(n + 1) * sizeof *made);
    for (int i = 0; i < n; i++)
        made[i] = piece_of(&pieces[i], (int64_t)trama_dtype_size(dtype));
    status = trama_wrap_at(where, context, name, dtype, shape, n, made, access, wrapped);
    free(made);
    return status;
}

/* ---- Boxes of common distributions ---- */

/* first, extent [ndim]: 1 and 0 where the mask takes the box away. */
trama_status trama_fortran_box_of_layout(trama_where where, const trama_mesh *mesh, const char *layout,
                                         trama_shape shape, int position, int64_t *first, int64_t *extent)
{
    trama_layout parsed;
    int64_t offset[TRAMA_MAX_NDIM] = {0}, n[TRAMA_MAX_NDIM] = {0};
    bool held = false;
    if (!mesh || shape.ndim < 0)
        return trama_fail(where, TRAMA_E_ARGUMENT, "trama_box_of_layout: %s",
                          mesh ? "a tensor has at most 8 dims, and as many numbers in first and in extent"
                               : "there is no mesh");
    trama_status status = trama_layout_parse(mesh, shape.ndim, layout, &parsed);
    if (!status)
        status = trama_layout_box(mesh, &parsed, shape, position, offset, n, NULL, &held);
    for (int d = 0; d < shape.ndim && !status; d++) {
        first[d] = held ? offset[shape.ndim - 1 - d] + 1 : 1;
        extent[d] = held ? n[shape.ndim - 1 - d] : 0;
    }
    return status;
}

static bool is_contiguous(const fortran_piece *f, int64_t size, size_t *bytes)
{
    int64_t step = size;
    for (int d = 0; d < f->ndim; step *= f->extent[d++])
        if (f->extent[d] < 0 || (f->extent[d] > 1 && f->stride[d] != step))
            return false;
    *bytes = (size_t)step;
    return true;
}

static fortran_piece piece_of_block(const trama_piece *p, int dtype, int64_t size)
{
    fortran_piece f = {.data = p->data, .ndim = 2, .places = 2, .dtype = dtype};
    for (int d = 0; d < 2; d++) {
        f.first[d] = p->offset[d] + 1;
        f.extent[d] = p->extent[d];
        f.stride[d] = p->stride[d] * size;
    }
    return f;
}

/* descriptor: ScaLAPACK's, of 9 numbers. grid: NPROW, NPCOL, MYROW, MYCOL. The first `most` boxes of *n. */
trama_status trama_fortran_block_cyclic(trama_where where, const int *descriptor, const int *grid,
                                        const fortran_piece *local, int most, int *n, fortran_piece *pieces)
{
    trama_piece *made = NULL;
    size_t bytes = 0;
    *n = 0;
    if (descriptor[0] != 1 || local->dtype < 0)
        return trama_fail(where, TRAMA_E_ARGUMENT, "trama_pieces_block_cyclic: %s",
                          local->dtype < 0 ? "Trama has no such element type" : "DTYPE_ is not 1, a dense matrix");
    int64_t size = (int64_t)trama_dtype_size((trama_dtype)local->dtype);
    if (local->ndim > TRAMA_MAX_NDIM || !is_contiguous(local, size, &bytes))
        return trama_fail(where, TRAMA_E_ARGUMENT,
                          "trama_pieces_block_cyclic: the local array is not contiguous, or of assumed size");
    trama_status status = trama_pieces_block_cyclic(&(trama_block_cyclic){.rows = descriptor[2],
                                                                          .columns = descriptor[3],
                                                                          .row_block = descriptor[4],
                                                                          .column_block = descriptor[5],
                                                                          .first_row = descriptor[6],
                                                                          .first_column = descriptor[7],
                                                                          .ld = descriptor[8],
                                                                          .grid_rows = grid[0],
                                                                          .grid_columns = grid[1],
                                                                          .row = grid[2],
                                                                          .column = grid[3]},
                                                    (trama_dtype)local->dtype, local->data, bytes, n, &made);
    for (int i = 0; i < *n && i < most; i++)
        pieces[i] = piece_of_block(&made[i], local->dtype, size);
    free(made);
    return status;
}
