/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the Fortran module calls besides the public ones: they check and convert arrays, dims and boxes of
 * Fortran. */
#include <stdlib.h>
#include <string.h>

#include "comm.h"
#include "config.h"
#include "context.h"
#include "program.h"
#include "trama_executable.h"
#include "trama_layout.h"
#include "trama_optimizer.h"
#include "wrap.h"

/* A box of a tensor in a Fortran array: dims in Fortran's order, indices from 1. */
typedef struct fortran_piece {
    void *data, *handle;
    int64_t first[TRAMA_MAX_NDIM], extent[TRAMA_MAX_NDIM], stride[TRAMA_MAX_NDIM]; /* stride in bytes */
    int ndim, places, dtype; /* dims of the array; numbers in first; dtype -1: not a trama_dtype */
} fortran_piece;

TRAMA_API_BEGIN
trama_status trama_fortran_check(trama_where where, const char *call, trama_program *program, const trama_value *value,
                                 trama_status status, int dtype);
trama_status trama_fortran_refuse_call(trama_where where, const char *message);
trama_status trama_fortran_dims(trama_where where, const char *call, trama_value *value, int n, int *dims);
trama_status trama_fortran_wrap(trama_where where, trama_context *context, const char *name, trama_dtype dtype,
                                trama_shape shape, int n, const fortran_piece *pieces, trama_access access,
                                trama_wrapped **wrapped);
trama_status trama_fortran_feed_local(trama_where where, trama_executable *executable, const trama_value *input,
                                      trama_shape shape, int n, const fortran_piece *pieces);
trama_status trama_fortran_block_cyclic(trama_where where, const int *descriptor, const int *grid,
                                        const fortran_piece *local, int most, int *n, fortran_piece *pieces);
bool trama_fortran_stands_for(int dtype, int for_dtype);
TRAMA_API_END

#define NO_SUCH_TYPE                                                                                                   \
    "Trama has no such element type; there are real(c_float), real(c_double), complex(c_float_complex), "               \
    "complex(c_double_complex), logical(c_bool), integer(c_int8_t), integer(c_int16_t), integer(c_int32_t) and integer(c_int64_t), which also stand for unsigned integers and the "   \
    "bits of bf16 and f16 where the value or dtype= says so"

trama_status trama_start_fortran(const trama_config *config, int communicator, trama_context **context)
{
    trama_config with = {0};
    trama_status status = config ? config_read(config, &with) : TRAMA_OK;
    if (status)
        return status;
    with.communicator = comm_from_fortran(communicator);
    return trama_start(&with, context);
}

/* Fortran has no unsigned integers and no halves: integers of the same size have their bits. */
bool trama_fortran_stands_for(int dtype, int for_dtype)
{
    const trama_dtype of = (trama_dtype)dtype, to = (trama_dtype)for_dtype;
    const bool has_bits = trama_dtype_kind_of(to) == TRAMA_KIND_UNSIGNED || to == TRAMA_BF16 || to == TRAMA_F16;
    return dtype == for_dtype || (trama_dtype_kind_of(of) == TRAMA_KIND_SIGNED && has_bits &&
                                  trama_dtype_size(of) == trama_dtype_size(to));
}

/* The message for a refused array, by the status that its descriptor gave. */
static const char *text_of(trama_status status)
{
    switch ((int)status) {
    case TRAMA_E_DTYPE:
        return NO_SUCH_TYPE;
    case TRAMA_E_SHAPE:
        return "the array has more than 8 dims, or is of assumed size; a section of it has an extent: a(:, :n)";
    default:
        return "no memory for a copy of the array without its gaps";
    }
}

/* status: from the array's descriptor; dtype: its type. A builder's program keeps the error. A NULL value passes: the C
 * call refuses it. */
trama_status trama_fortran_check(trama_where where, const char *call, trama_program *program, const trama_value *value,
                                 trama_status status, int dtype)
{
    if (!status && value && (int)trama_value_dtype(value) != dtype)
        return trama_fail(where, TRAMA_E_DTYPE, "%s: the array is %s, but %s is %s", call,
                          trama_dtype_name((trama_dtype)dtype), trama_value_name(value),
                          trama_dtype_name(trama_value_dtype(value)));
    if (status && program)
        program_fail(program, where, status, "%s: %s", call, text_of(status));
    else if (status)
        trama_fail(where, status, "%s: %s", call, text_of(status));
    return status;
}

/* Fails with the message of an error that the module found before it called C. */
trama_status trama_fortran_refuse_call(trama_where where, const char *message)
{
    return trama_fail(where, TRAMA_E_ARGUMENT, "%s", message);
}

/* Converts dims [n], which count from 1 in Fortran's order, to Trama's numbers, in place. */
trama_status trama_fortran_dims(trama_where where, const char *call, trama_value *value, int n, int *dims)
{
    int ndim = value ? value->shape.ndim : 0;
    for (int i = 0; value && i < n; i++) {
        if (i == TRAMA_MAX_NDIM || dims[i] < 1 || dims[i] > ndim) {
            int wrong = i == TRAMA_MAX_NDIM ? n : dims[i];
            const char *what = i == TRAMA_MAX_NDIM ? "a list of dims is too long" : "there is no such dim";
            program_fail(value->program, where, TRAMA_E_ARGUMENT, "%s: %d: %s; %s has %d dims, counted from 1", call,
                         wrong, what, value->name, ndim);
            return TRAMA_E_ARGUMENT;
        }
        dims[i] = ndim - dims[i];
    }
    return TRAMA_OK;
}

/* ---- The host's arrays ---- */

static trama_status check_array(trama_where where, const char *name, trama_dtype dtype, int ndim, int i,
                                const fortran_piece *f)
{
    int64_t size = (int64_t)trama_dtype_size(dtype);
    if (f->dtype < 0)
        return trama_fail(where, TRAMA_E_DTYPE,
                          "trama_wrap: '%s': box %d: " NO_SUCH_TYPE, name, i);
    if (!trama_fortran_stands_for(f->dtype, (int)dtype))
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

/* The box in Trama's order of dims. Its bytes end with the last element, since a descriptor knows no more memory. */
static trama_host_box wrapped_piece(const fortran_piece *f, int64_t size)
{
    trama_host_box p = {.data = f->data, .handle = f->handle};
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

/* Collective: an error found here is refused on all ranks. */
trama_status trama_fortran_wrap(trama_where where, trama_context *context, const char *name, trama_dtype dtype,
                                trama_shape shape, int n, const fortran_piece *pieces, trama_access access,
                                trama_wrapped **wrapped)
{
    trama_status status = TRAMA_OK;
    for (int i = 0; i < n && !status; i++)
        status = check_array(where, name, dtype, shape.ndim, i, &pieces[i]);
    if (status)
        return context ? wrap_agree(where, context, name, status) : status;
    trama_host_box *made = trama_alloc((size_t)(n + 1) * sizeof *made);
    for (int i = 0; i < n; i++)
        made[i] = wrapped_piece(&pieces[i], (int64_t)trama_dtype_size(dtype));
    status = trama_wrap_at(where, context, name, dtype, shape, n, made, access, wrapped);
    free(made);
    return status;
}

/* ---- Boxes that are fed ---- */

/* Gathers the elements of a box without gaps, in dense where it is not NULL; their number. */
static int64_t gather(const fortran_piece *f, size_t size, char *dense)
{
    int64_t at[TRAMA_MAX_NDIM] = {0}, n = 1;
    for (int d = 0; d < f->ndim; d++)
        n *= f->extent[d];
    for (int64_t i = 0; dense && i < n; i++) {
        const char *from = f->data;
        for (int d = 0; d < f->ndim; d++)
            from += at[d] * f->stride[d];
        memcpy(dense + (size_t)i * size, from, size);
        for (int d = 0; d < f->ndim && ++at[d] == f->extent[d]; d++)
            at[d] = 0;
    }
    return n;
}

/* Checks box i; *dense: its elements, which the caller frees. */
static trama_status dense_piece(trama_where where, const trama_value *input, int i, const fortran_piece *f,
                                void **dense)
{
    int ndim = trama_value_shape(input).ndim;
    if (f->dtype != (int)trama_value_dtype(input))
        return trama_fail(where, TRAMA_E_DTYPE, "trama_feed_local: box %d: the array is %s, but %s is %s", i,
                          f->dtype < 0 ? "of no type of Trama's" : trama_dtype_name((trama_dtype)f->dtype),
                          trama_value_name(input), trama_dtype_name(trama_value_dtype(input)));
    for (int d = 0; d < f->ndim && d < TRAMA_MAX_NDIM; d++)
        if (f->ndim != ndim || f->extent[d] < 0)
            return trama_fail(where, TRAMA_E_SHAPE,
                              "trama_feed_local: box %d: the array has %d dims, or is of assumed "
                              "size, but %s has %d dims",
                              i, f->ndim, trama_value_name(input), ndim);
    size_t size = trama_dtype_size(trama_value_dtype(input));
    *dense = trama_alloc((size_t)gather(f, size, NULL) * size + 1);
    gather(f, size, *dense);
    return TRAMA_OK;
}

trama_status trama_fortran_feed_local(trama_where where, trama_executable *executable, const trama_value *input,
                                      trama_shape shape, int n, const fortran_piece *pieces)
{
    trama_status status = TRAMA_OK;
    void **dense = trama_alloc((size_t)(n + 1) * sizeof *dense);
    for (int i = 0; i <= n; i++)
        dense[i] = NULL;
    for (int i = 0; input && i < n && !status; i++)
        status = dense_piece(where, input, i + 1, &pieces[i], &dense[i]);
    if (!status)
        status = trama_feed_local_at(where, executable, input, shape, n, (const void *const *)dense);
    for (int i = 0; i < n; i++)
        free(dense[i]);
    free(dense);
    return status;
}

/* ---- Boxes of common distributions ---- */

static bool is_contiguous(const fortran_piece *f, int64_t size, size_t *bytes)
{
    int64_t step = size;
    for (int d = 0; d < f->ndim; step *= f->extent[d++])
        if (f->extent[d] < 0 || (f->extent[d] > 1 && f->stride[d] != step))
            return false;
    *bytes = (size_t)step;
    return true;
}

static fortran_piece piece_of_block(const trama_host_box *p, int dtype, int64_t size)
{
    fortran_piece f = {.data = p->data, .ndim = 2, .places = 2, .dtype = dtype};
    for (int d = 0; d < 2; d++) {
        f.first[d] = p->offset[d] + 1;
        f.extent[d] = p->extent[d];
        f.stride[d] = p->stride[d] * size;
    }
    return f;
}

/* descriptor [9]: ScaLAPACK's. grid [4]: NPROW, NPCOL, MYROW, MYCOL. *n: number of boxes; pieces: the first `most` of
 * them. */
trama_status trama_fortran_block_cyclic(trama_where where, const int *descriptor, const int *grid,
                                        const fortran_piece *local, int most, int *n, fortran_piece *pieces)
{
    trama_host_box *made = NULL;
    size_t bytes = 0;
    *n = 0;
    if (descriptor[0] != 1 || local->dtype < 0)
        return trama_fail(where, TRAMA_E_ARGUMENT, "trama_host_boxes_block_cyclic: %s",
                          local->dtype < 0 ? "Trama has no such element type" : "DTYPE_ is not 1, a dense matrix");
    int64_t size = (int64_t)trama_dtype_size((trama_dtype)local->dtype);
    if (local->ndim > TRAMA_MAX_NDIM || !is_contiguous(local, size, &bytes))
        return trama_fail(where, TRAMA_E_ARGUMENT,
                          "trama_host_boxes_block_cyclic: the local array is not contiguous, or of assumed size");
    trama_status status = trama_host_boxes_block_cyclic(&(trama_block_cyclic){.rows = descriptor[2],
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
