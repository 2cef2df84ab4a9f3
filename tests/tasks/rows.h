/* SPDX-License-Identifier: Apache-2.0 */
/* A tensor whose rows are dealt out to the ranks, in memory of the host that is read-only but while it is filled; and a
 * program that reads it where it lies. */
#ifndef ROWS_H
#define ROWS_H

#include <sys/mman.h>

#include "harness.h"

/* One box a rank, in rows as even as can be; read-only memory stays so. */
typedef struct rows {
    trama_mesh *mesh;
    trama_program *p;
    trama_value *x, *y;
    trama_target *t;
    trama_executable *e;
    double *data;
    size_t bytes;
    trama_host_box piece;
    trama_wrapped *w;
} rows;

enum { ROWS = 37, COLUMNS = 4, LD = 6 };

static rows rows_new(void)
{
    char spec[16];
    rows r = {.p = trama_program_create(), .bytes = (size_t)sysconf(_SC_PAGESIZE)};
    snprintf(spec, sizeof spec, "%d", n_ranks);
    r.mesh = mesh_of(spec);
    r.x = trama_input(r.p, "x", TRAMA_F64, TRAMA_SHAPE(ROWS, COLUMNS));
    r.y = trama_add(r.x, r.x);
    trama_shard(r.x, r.mesh, "S(0)");
    r.t = trama_target_create(r.p, "t", r.y);
    r.e = compile(r.p);
    r.data = mmap(NULL, r.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    trama_layout layout;
    must(trama_layout_parse(r.mesh, 2, "S(0)", &layout));
    must(trama_host_box_of_layout(r.mesh, &layout, TRAMA_F64, TRAMA_SHAPE(ROWS, COLUMNS), my_rank, r.data, &r.piece));
    r.piece.stride[0] = LD;
    r.piece.stride[1] = 1;
    r.piece.bytes = r.bytes;
    return r;
}

static void rows_fill(rows *r, double start)
{
    must(r->w ? trama_wait_wrapped(r->w) : TRAMA_OK);
    mprotect(r->data, r->bytes, PROT_READ | PROT_WRITE);
    for (int64_t i = 0; i < r->piece.extent[0]; i++)
        for (int64_t j = 0; j < COLUMNS; j++)
            r->data[i * LD + j] = start + (double)((r->piece.offset[0] + i) * COLUMNS + j);
    mprotect(r->data, r->bytes, PROT_READ);
}

static void rows_check(const rows *r, double start)
{
    double y[ROWS * COLUMNS];
    must(trama_read(r->e, r->y, y, sizeof y));
    for (int i = 0; i < ROWS * COLUMNS; i++)
        demand(y[i] == 2 * (start + i), "element %d is %g", i, y[i]);
}

static void rows_free(rows *r)
{
    must(trama_release(&r->w));
    must(trama_executable_destroy(&r->e));
    munmap(r->data, r->bytes);
    trama_program_destroy(&r->p);
    trama_mesh_destroy(&r->mesh);
}

#endif
