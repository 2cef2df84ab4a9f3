/* SPDX-License-Identifier: Apache-2.0 */
/* The host's arrays as tensors: boxes dealt out at random, in buffers of every order and with gaps, resharded, fed,
 * read and written. Each element is known from its place in the tensor; what is no element must not change. */
#include <sys/mman.h>

#include "harness.h"

enum { MOST_BOXES = 40, GAP = 7 };

static uint64_t chance = 42;

static int below(int n)
{
    return random_to(&chance, n);
}

/* What is a rank's own affair. */
static uint64_t own_chance = 7;

static int own_below(int n)
{
    return random_to(&own_chance, n);
}

/* ---- Arrays of a host ---- */

typedef struct host_box {
    int64_t lo[3], n[3];
    int ranks[2]; /* -1: none */
} host_box;

/* A tensor that is dealt out, the same on all ranks; this rank's boxes and their buffers. */
typedef struct host_array {
    trama_dtype dtype;
    trama_shape shape;
    int n_boxes, n;
    host_box boxes[MOST_BOXES];
    trama_host_box pieces[MOST_BOXES];
} host_array;

static void cut(host_array *a, host_box b, int depth)
{
    int dim = a->shape.ndim ? below(a->shape.ndim) : 0;
    if (depth == 0 || a->shape.ndim == 0 || b.n[dim] < 2) {
        b.ranks[0] = below(n_ranks);
        b.ranks[1] = below(4) == 0 ? below(n_ranks) : -1;
        if (b.ranks[1] == b.ranks[0])
            b.ranks[1] = -1;
        a->boxes[a->n_boxes++] = b;
        return;
    }
    host_box low = b, high = b;
    low.n[dim] = 1 + below((int)b.n[dim] - 1);
    high.lo[dim] += low.n[dim];
    high.n[dim] -= low.n[dim];
    cut(a, low, depth - 1);
    cut(a, high, depth - 1);
}

/* Dims in any order, from time to time with gaps between their lines. Guards of -1 all around. */
static void make_buffer(host_array *a, const host_box *b, bool plain)
{
    int ndim = a->shape.ndim, order[3] = {0, 1, 2};
    trama_host_box *p = &a->pieces[a->n++];
    int64_t span = 1;
    *p = (trama_host_box){0};
    for (int d = ndim - 1; d > 0 && !plain; d--) {
        int k = own_below(d + 1), swap = order[d];
        order[d] = order[k];
        order[k] = swap;
    }
    for (int d = ndim - 1; d >= 0; d--) {
        int at = order[d];
        p->offset[at] = b->lo[at];
        p->extent[at] = b->n[at];
        p->stride[at] = span;
        span = span * b->n[at] + (plain ? 0 : own_below(3));
    }
    if (plain)
        memset(p->stride, 0, sizeof p->stride);
    size_t size = trama_dtype_size(a->dtype);
    char *memory = malloc((size_t)(span + 2 * GAP) * size);
    for (int64_t i = 0; i < span + 2 * GAP; i++)
        set_number(memory, a->dtype, i, 99);
    p->data = memory + GAP * size;
    p->bytes = (size_t)span * size;
}

static host_array array_new(trama_dtype dtype, trama_shape shape, bool plain)
{
    host_array a = {.dtype = dtype, .shape = shape};
    host_box whole = {{0}, {0}, {0}};
    memcpy(whole.n, shape.dim, (size_t)shape.ndim * sizeof *shape.dim);
    if (trama_shape_count(shape))
        cut(&a, whole, 1 + below(4));
    for (int i = 0; i < a.n_boxes; i++)
        if (a.boxes[i].ranks[0] == my_rank || a.boxes[i].ranks[1] == my_rank)
            make_buffer(&a, &a.boxes[i], plain);
    return a;
}

static void array_free(host_array *a)
{
    for (int i = 0; i < a->n; i++)
        free((char *)a->pieces[i].data - GAP * trama_dtype_size(a->dtype));
}

/* Where each element of a box lies, and which one of the tensor it is. */
static void for_each(const host_array *a, const trama_host_box *p, void (*visit)(void *, int64_t at, int64_t number),
                     void *arg)
{
    int64_t count = 1, stride[3] = {0}, step = 1;
    for (int d = a->shape.ndim - 1; d >= 0; step *= p->extent[d--])
        stride[d] = step;
    for (int d = 0; d < a->shape.ndim; d++) {
        count *= p->extent[d];
        stride[d] = p->stride[d] ? p->stride[d] : stride[d];
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i, at = 0, number = 0, scale = 1;
        for (int d = a->shape.ndim - 1; d >= 0; d--) {
            at += rest % p->extent[d] * stride[d];
            number += (p->offset[d] + rest % p->extent[d]) * scale;
            scale *= a->shape.dim[d];
            rest /= p->extent[d];
        }
        visit(arg, at, number);
    }
}

/* Small whole numbers, that fit every dtype. */
static double number_of(int64_t element, int factor)
{
    return (double)((element * factor + factor) % 97);
}

typedef struct filling {
    const host_array *a;
    const trama_host_box *p;
    int factor;
} filling;

static void fill_one(void *arg, int64_t at, int64_t number)
{
    const filling *f = arg;
    set_number(f->p->data, f->a->dtype, at, number_of(number, f->factor));
}

static void array_fill(const host_array *a, int factor)
{
    for (int i = 0; i < a->n; i++)
        for_each(a, &a->pieces[i], fill_one, &(filling){a, &a->pieces[i], factor});
}

/* What is right is overwritten by what a guard is. */
static void check_one(void *arg, int64_t at, int64_t number)
{
    const filling *f = arg;
    double is = number_at(f->p->data, f->a->dtype, at), must_be = number_of(number, f->factor);
    demand(is == must_be, "element %" PRId64 " is %g, it should be %g", number, is, must_be);
    set_number(f->p->data, f->a->dtype, at, 99);
}

static void array_check(const host_array *a, int factor)
{
    size_t size = trama_dtype_size(a->dtype);
    for (int i = 0; i < a->n; i++) {
        const trama_host_box *p = &a->pieces[i];
        for_each(a, p, check_one, &(filling){a, p, factor});
        for (int64_t k = -GAP; k < (int64_t)(p->bytes / size) + GAP; k++)
            demand(number_at(p->data, a->dtype, k) == 99, "memory between elements of box %d was written", i);
    }
}

static trama_wrapped *wrap(const host_array *a, const char *name, trama_access access)
{
    trama_wrapped *w = NULL;
    must(trama_wrap(ctx, name, a->dtype, a->shape, a->n, a->pieces, access, &w));
    return w;
}

static trama_shape random_shape(void)
{
    const int64_t shapes[][4] = {{1, 50}, {2, 9, 7}, {2, 33, 20}, {3, 5, 4, 6}, {2, 1, 5}, {0}, {1, 1}, {2, 0, 4}};
    int i = below((int)(sizeof shapes / sizeof *shapes));
    return trama_shape_of((int)shapes[i][0], shapes[i] + 1);
}

static trama_config small_window(int i)
{
    return (trama_config){
        .staging_bytes = i % 2 ? 4096 : 0, .verify = true, .max_tiles = 1 + i % 3, .grain_bytes = 64, .grain_flops = 1};
}

/* ---- From host to host ---- */

START_TEST(any_distribution_becomes_any_other)
{
    for (int i = 0; i < 2; i++) {
        trama_config config = small_window(i);
        start_with(&config);
        for (int k = 0; k < 30; k++) {
            trama_dtype dtype = (trama_dtype)below(TRAMA_N_DTYPES);
            trama_shape shape = random_shape();
            host_array a = array_new(dtype, shape, below(3) == 0), b = array_new(dtype, shape, below(3) == 0);
            array_fill(&a, 3);
            trama_wrapped *from = wrap(&a, "from", TRAMA_READ_ONLY), *to = wrap(&b, "to", TRAMA_READ_WRITE);
            for (int again = 0; again < 2; again++) {
                must(trama_reshard_wrapped(from, to));
                must(trama_wait_wrapped(to));
                array_check(&b, 3);
            }
            trama_traffic t = {0};
            must(trama_wrapped_traffic(to, &t));
            demand(t.bytes_received == t.bound, "%" PRId64 " bytes are received, %" PRId64 " are lacking",
                   t.bytes_received, t.bound);
            must(trama_reshard_wrapped(from, to));
            must(trama_release(&from));
            demand(!from, "release leaves the pointer");
            must(trama_release(&to));
            array_check(&a, 3);
            array_check(&b, 3);
            array_free(&a);
            array_free(&b);
        }
        stop();
    }
}
END_TEST

/* ---- Into and out of programs ---- */

/* y = 2 x + 1 over a random layout; from boxes of the host into others. */
static void feed_and_read(int i)
{
    static const char *const layouts[] = {"S(0),R", "R,S(0)", "S(0)[1],S(0)[0]", "R,R", "S(0),S(0)"};
    trama_shape shape = random_shape();
    trama_dtype dtype = below(2) ? TRAMA_F32 : TRAMA_F64;
    trama_mesh *mesh = mesh_of("2,2");
    trama_program *p = trama_program_create();
    const double one_number[] = {1};
    const float one_float[] = {1};
    trama_value *one =
        trama_constant(p, dtype, TRAMA_SCALAR, dtype == TRAMA_F64 ? (const void *)one_number : one_float);
    trama_value *x = trama_input(p, "x", dtype, shape), *y = trama_add(trama_add(x, x), one);
    trama_value *state = trama_parameter(p, "state", dtype, shape, NULL);
    trama_shard(x, mesh, shape.ndim ? layouts[below(5)] : "R,R");
    trama_shard(state, mesh, shape.ndim ? layouts[below(5)] : "R,R");
    trama_target *t = trama_target_create(p, "t", y, trama_neg(state));
    trama_executable *e = compile(p);
    host_array a = array_new(dtype, shape, i % 3 == 0), b = array_new(dtype, shape, i % 3 == 1);
    trama_wrapped *from = wrap(&a, "from", TRAMA_READ_ONLY), *to = wrap(&b, "to", TRAMA_READ_WRITE);
    for (int run = 0; run < 3; run++) {
        bool copied = false;
        must(trama_wait_wrapped(from));
        array_fill(&a, run + 1);
        must(trama_feed_wrapped(e, x, from, &copied));
        must(trama_run(e, t));
        must(trama_read_wrapped(e, x, to));
        must(trama_wait_wrapped(to));
        array_check(&b, run + 1);
        int64_t n = trama_shape_count(shape);
        double *got = malloc((size_t)n * sizeof *got + 8);
        must(trama_read(e, y, got, (size_t)n * trama_dtype_size(dtype)));
        for (int64_t k = 0; k < n; k++)
            demand(number_at(got, dtype, k) == 2 * number_of(k, run + 1) + 1, "element %" PRId64 " is %g", k,
                   number_at(got, dtype, k));
        must(trama_write_wrapped(e, state, from));
        must(trama_read_wrapped(e, state, to));
        must(trama_wait_wrapped(to));
        array_check(&b, run + 1);
        free(got);
    }
    must(trama_release(&from));
    if (i % 2)
        must(trama_executable_destroy(&e));
    must(trama_release(&to));
    must(trama_executable_destroy(&e));
    array_free(&a);
    array_free(&b);
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
}

START_TEST(values_come_from_and_go_to_any_distribution)
{
    for (int i = 0; i < 2; i++) {
        trama_config config = small_window(i);
        start_with(&config);
        for (int k = 0; k < 12; k++)
            feed_and_read(k);
        stop();
    }
}
END_TEST

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

START_TEST(what_lies_as_it_is_asked_for_is_read_where_it_is)
{
    trama_config config = {.map_by_order = true, .verify = true, .device = TRAMA_CPU};
    start_with(&config);
    rows r = rows_new();
    bool copied = true;
    rows_fill(&r, 0);
    must(trama_wrap(ctx, "x", TRAMA_F64, TRAMA_SHAPE(ROWS, COLUMNS), 1, &r.piece, TRAMA_READ_ONLY, &r.w));
    must(trama_feed_wrapped(r.e, r.x, r.w, &copied));
    demand(!copied, "a copy was made");
    for (int i = 0; i < 4; i++) { /* runs see the host's memory as it is, without being fed again */
        rows_fill(&r, i);
        must(trama_run(r.e, r.t));
        rows_check(&r, i);
    }
    double all[ROWS * COLUMNS] = {7};
    must(trama_feed(r.e, r.x, all, TRAMA_SHAPE(ROWS, COLUMNS)));
    must(trama_run(r.e, r.t));
    double y[ROWS * COLUMNS];
    must(trama_read(r.e, r.y, y, sizeof y));
    demand(y[0] == 14 && y[1] == 0, "fed by copy it is %g, %g", y[0], y[1]);
    must(trama_feed_wrapped(r.e, r.x, r.w, NULL));
    must(trama_run(r.e, r.t));
    rows_check(&r, 3);
    must(trama_release(&r.w));
    expect_here(trama_run(r.e, r.t), TRAMA_E_ORDER, "'x'", "released", "feed it again");
    expect_here(trama_read(r.e, r.x, y, sizeof y), TRAMA_E_ORDER, "'x'", "released");
    must(trama_feed(r.e, r.x, all, TRAMA_SHAPE(ROWS, COLUMNS)));
    must(trama_run(r.e, r.t));
    rows_free(&r);
    stop();
}
END_TEST

START_TEST(wrapping_again_and_again_does_not_grow)
{
    trama_config config = {.map_by_order = true};
    start_with(&config);
    rows r = rows_new();
    rows_fill(&r, 0);
    int64_t before = 0;
    static double memory[2][ROWS * COLUMNS];
    trama_host_box all = {.data = memory[0], .bytes = sizeof memory[0], .extent = {ROWS, COLUMNS}}, other = all;
    trama_wrapped *kept = NULL;
    other.data = memory[1];
    must(trama_wrap(ctx, "kept", TRAMA_F64, TRAMA_SHAPE(ROWS, COLUMNS), my_rank == 0, &other, TRAMA_READ_WRITE, &kept));
    for (int i = 0; i < 120; i++) {
        trama_wrapped *to = NULL;
        must(trama_wrap(ctx, "x", TRAMA_F64, TRAMA_SHAPE(ROWS, COLUMNS), 1, &r.piece, TRAMA_READ_ONLY, &r.w));
        must(trama_wrap(ctx, "to", TRAMA_F64, TRAMA_SHAPE(ROWS, COLUMNS), my_rank == 0, &all, TRAMA_READ_WRITE, &to));
        must(trama_feed_wrapped(r.e, r.x, r.w, NULL));
        must(trama_run(r.e, r.t));
        rows_check(&r, 0);
        must(trama_read_wrapped(r.e, r.y, to));
        must(trama_reshard_wrapped(r.w, kept));
        must(trama_release(&r.w));
        must(trama_release(&to));
        if (i == 60)
            before = memory_now();
    }
    int64_t grown = memory_now() - before;
    demand(SANITIZED || grown < 1 << 20, "%" PRId64 " bytes after 60 more cycles", grown);
    must(trama_release(&kept));
    rows_free(&r);
    stop();
}
END_TEST

/* ---- Block-cyclic ---- */

typedef struct grid_matrix {
    trama_block_cyclic d;
    int64_t local_rows, local_columns;
    double *data;
    trama_wrapped *w;
} grid_matrix;

/* Indices of one dim that a process has, by the definition; the number of them. */
static int64_t own_indices(int64_t extent, int64_t block, int grid, int at, int first, int64_t *list)
{
    int64_t n = 0;
    for (int64_t i = 0; i < extent; i++)
        if ((i / block + first) % grid == at)
            list[n++] = i;
    return n;
}

enum { M = 23, N = 19 };

static grid_matrix grid_new(int rows_of_grid, int64_t row_block, int64_t column_block, int first)
{
    int64_t list[M + N];
    int columns_of_grid = n_ranks / rows_of_grid;
    grid_matrix g = {.d = {M, N, row_block, column_block, first % rows_of_grid, first % columns_of_grid, 0,
                           rows_of_grid, columns_of_grid, my_rank / columns_of_grid, my_rank % columns_of_grid}};
    g.local_rows = own_indices(M, row_block, rows_of_grid, g.d.row, g.d.first_row, list);
    g.local_columns = own_indices(N, column_block, columns_of_grid, g.d.column, g.d.first_column, list);
    g.d.ld = g.local_rows + 3;
    size_t bytes = (size_t)(g.d.ld * g.local_columns + 1) * sizeof(double);
    g.data = calloc(1, bytes);
    int n = 0;
    trama_host_box *pieces = NULL;
    must(trama_host_boxes_block_cyclic(&g.d, TRAMA_F64, g.data, bytes, &n, &pieces));
    must(trama_wrap(ctx, "matrix", TRAMA_F64, TRAMA_SHAPE(M, N), n, pieces, TRAMA_READ_WRITE, &g.w));
    free(pieces);
    return g;
}

/* set: element (i, j) = 100 i + j; else they are that. */
static void grid_visit(const grid_matrix *g, bool set)
{
    int64_t is[M], js[N];
    own_indices(M, g->d.row_block, g->d.grid_rows, g->d.row, g->d.first_row, is);
    own_indices(N, g->d.column_block, g->d.grid_columns, g->d.column, g->d.first_column, js);
    for (int64_t j = 0; j < g->local_columns; j++)
        for (int64_t i = 0; i < g->local_rows; i++) {
            double *at = &g->data[i + j * g->d.ld], is_number = (double)(100 * is[i] + js[j]);
            if (set)
                *at = is_number;
            demand(*at == is_number, "element %" PRId64 ",%" PRId64 " is %g", is[i], js[j], *at);
        }
}

START_TEST(block_cyclic_matrices_go_to_and_fro)
{
    start();
    int half = n_ranks % 2 ? 1 : 2;
    grid_matrix a = grid_new(1, 2, 3, 0), b = grid_new(half, 5, 4, 1), c = grid_new(n_ranks, 64, 1, 0);
    grid_visit(&a, true);
    must(trama_reshard_wrapped(a.w, b.w));
    must(trama_reshard_wrapped(b.w, c.w)); /* in order with what is under way */
    must(trama_wait_wrapped(c.w));
    grid_visit(&c, false);
    must(trama_wait_wrapped(b.w));
    grid_visit(&b, false);
    grid_matrix *all[] = {&a, &b, &c};
    for (int i = 0; i < 3; i++) {
        must(trama_release(&all[i]->w));
        free(all[i]->data);
    }
    stop();
}
END_TEST

/* ---- What is refused ---- */

static trama_status try_wrap(trama_shape shape, int n, const trama_host_box *pieces)
{
    trama_wrapped *w = NULL;
    trama_status status = trama_wrap(ctx, "a", TRAMA_F64, shape, n, pieces, TRAMA_READ_WRITE, &w);
    demand(!w, "a wrapped tensor in spite of the error");
    return status;
}

START_TEST(what_does_not_fit_is_refused)
{
    start();
    double data[64] = {0};
    trama_shape shape = TRAMA_SHAPE(8, 4);
    trama_host_box good = {.data = data, .bytes = sizeof data, .extent = {8, 4}}, p = good;
    p.bytes = 8 * 4 * 8 - 1;
    expect(try_wrap(shape, 1, &p), TRAMA_E_ARGUMENT, "'a'", "box 0, [0:8,0:4]", "255 bytes", "256");
    p = good;
    p.stride[0] = 3;
    p.stride[1] = 1;
    expect(try_wrap(shape, 1, &p), TRAMA_E_ARGUMENT, "share memory");
    p = good;
    p.stride[0] = 8;
    p.stride[1] = -1;
    expect(try_wrap(shape, 1, &p), TRAMA_E_ARGUMENT, "strides are in elements, positive");
    p = good;
    p.offset[0] = 1;
    expect(try_wrap(shape, 1, &p), TRAMA_E_SHAPE, "[1:9,0:4]", "[8,4]", "not within");
    p = good;
    p.data = NULL;
    expect(try_wrap(shape, 1, &p), TRAMA_E_ARGUMENT, "NULL");
    p = good;
    p.data = (char *)data + 4;
    expect(try_wrap(shape, 1, &p), TRAMA_E_ARGUMENT, "aligned");
    trama_host_box two[] = {good, good};
    two[0].extent[0] = 5;
    two[1].offset[0] = 4;
    two[1].extent[0] = 4;
    two[1].data = data + 32;
    if (n_ranks == 1)
        expect(try_wrap(shape, 2, two), TRAMA_E_LAYOUT, "box 0 of rank 0, [0:5,0:4]", "box 1 of rank 0, [4:8,0:4]",
               "overlap");
    expect(try_wrap(shape, -1, two), TRAMA_E_ARGUMENT, "negative");
    expect(try_wrap(TRAMA_SHAPE(TRAMA_ANY), 0, NULL), TRAMA_E_SHAPE, "it must be known");
    trama_wrapped *w = NULL;
    expect_here(trama_wrap(NULL, "a", TRAMA_F64, shape, 0, NULL, TRAMA_READ_ONLY, &w), TRAMA_E_ARGUMENT, "context");
    expect_here(trama_wrap(ctx, NULL, TRAMA_F64, shape, 0, NULL, TRAMA_READ_ONLY, &w), TRAMA_E_ARGUMENT, "name");
    expect_here(trama_wrap(ctx, "a", (trama_dtype)77, shape, 0, NULL, TRAMA_READ_ONLY, &w), TRAMA_E_DTYPE, "77");
    stop();
}
END_TEST

START_TEST(ranks_that_disagree_are_told)
{
    start();
    double data[64] = {0};
    trama_wrapped *w = NULL;
    trama_host_box p = {.data = data, .bytes = sizeof data, .extent = {4, 4}};
    trama_shape mine = TRAMA_SHAPE(8, my_rank ? 4 : 5);
    if (n_ranks > 1) {
        expect_here(trama_wrap(ctx, "a", TRAMA_F64, mine, 0, NULL, TRAMA_READ_ONLY, &w), TRAMA_E_ARGUMENT, "shapes",
                    "ranks 0 and 1");
        expect_here(trama_wrap(ctx, my_rank ? "a" : "b", TRAMA_F64, TRAMA_SHAPE(8, 4), 0, NULL, TRAMA_READ_ONLY, &w),
                    TRAMA_E_ARGUMENT, "names");
        p.offset[0] = my_rank == 1 ? 3 : my_rank ? 4 : 0;
        expect_here(trama_wrap(ctx, "a", TRAMA_F64, TRAMA_SHAPE(8, 4), 1, &p, TRAMA_READ_ONLY, &w), TRAMA_E_LAYOUT,
                    "of rank 0, [0:4,0:4]", "of rank 1, [3:7,0:4]");
        p.bytes = my_rank == 1 ? 1 : p.bytes; /* all learn what is wrong on one */
        expect_here(trama_wrap(ctx, "a", TRAMA_F64, TRAMA_SHAPE(8, 4), 1, &p, TRAMA_READ_ONLY, &w), TRAMA_E_ARGUMENT,
                    "1 bytes");
    }
    demand(!w, "a wrapped tensor in spite of the error");
    stop();
}
END_TEST

START_TEST(wrong_uses_are_refused_and_change_nothing)
{
    trama_config config = {.map_by_order = true};
    start_with(&config);
    rows r = rows_new();
    rows_fill(&r, 0);
    trama_shape shape = TRAMA_SHAPE(ROWS, COLUMNS), other = TRAMA_SHAPE(ROWS, COLUMNS + 1);
    trama_wrapped *part = NULL, *wide = NULL, *ints = NULL, *gone = NULL;
    must(trama_wrap(ctx, "x", TRAMA_F64, shape, 1, &r.piece, TRAMA_READ_ONLY, &r.w));
    must(trama_wrap(ctx, "part", TRAMA_F64, shape, 0, NULL, TRAMA_READ_WRITE, &part));
    must(trama_wrap(ctx, "wide", TRAMA_F64, other, 0, NULL, TRAMA_READ_WRITE, &wide));
    must(trama_wrap(ctx, "ints", TRAMA_I32, shape, 0, NULL, TRAMA_READ_WRITE, &ints));
    must(trama_feed_wrapped(r.e, r.x, r.w, NULL));
    must(trama_run(r.e, r.t));
    expect_here(trama_read_wrapped(r.e, r.y, r.w), TRAMA_E_ARGUMENT, "'x'", "TRAMA_READ_ONLY");
    expect_here(trama_reshard_wrapped(part, r.w), TRAMA_E_LAYOUT, "'part'", "0 of its 148");
    expect_here(trama_reshard_wrapped(r.w, r.w), TRAMA_E_ARGUMENT, "both source and target");
    expect_here(trama_reshard_wrapped(r.w, wide), TRAMA_E_SHAPE, "[37,4]", "[37,5]");
    expect_here(trama_reshard_wrapped(r.w, ints), TRAMA_E_DTYPE, "f64", "i32");
    expect_here(trama_read_wrapped(r.e, r.y, ints), TRAMA_E_DTYPE, "f64", "i32");
    expect_here(trama_feed_wrapped(r.e, r.x, wide, NULL), TRAMA_E_LAYOUT, "'wide'");
    expect_here(trama_feed_wrapped(r.e, r.y, r.w, NULL), TRAMA_E_ARGUMENT, "is no input");
    expect_here(trama_write_wrapped(r.e, r.x, r.w), TRAMA_E_ARGUMENT, "x is no parameter");
    expect_here(trama_feed_wrapped(r.e, r.x, gone, NULL), TRAMA_E_ARGUMENT, "was it released");
    expect_here(trama_read_wrapped(NULL, r.x, part), TRAMA_E_ARGUMENT, "executable is NULL");
    must(trama_reshard_wrapped(r.w, part)); /* boxes that are nowhere are not read */
    rows_check(&r, 0);
    expect(trama_stop(&ctx), TRAMA_E_ORDER, "release");
    must(trama_release(&part));
    must(trama_release(&wide));
    must(trama_release(&ints));
    must(trama_release(&gone));
    rows_free(&r);
    stop();
}
END_TEST

static trama_status failing_cpu(const trama_call *call)
{
    (void)call;
    return trama_kernel_fail("on purpose");
}

START_TEST(what_a_failed_kernel_made_is_told)
{
    double data[ROWS * COLUMNS];
    trama_host_box all = {.data = data, .bytes = sizeof data, .extent = {ROWS, COLUMNS}};
    const trama_op_definition d = {.name = "failing", .n_in = 1, .n_out = 1, .rule = "ij->ij", .cpu = failing_cpu};
    const trama_op *op = NULL;
    trama_wrapped *w = NULL;
    start();
    must(trama_op_define(&d, &op));
    trama_program *p = trama_program_create();
    trama_value *x = trama_parameter(p, "x", TRAMA_F64, TRAMA_SHAPE(ROWS, COLUMNS), NULL);
    trama_value *y = trama_apply(op, 1, &x, NULL);
    trama_target *t = trama_target_create(p, "t", y);
    trama_executable *e = compile(p);
    must(trama_wrap(ctx, "w", TRAMA_F64, TRAMA_SHAPE(ROWS, COLUMNS), my_rank == 0, &all, TRAMA_READ_WRITE, &w));
    must(trama_run(e, t));
    must(trama_read_wrapped(e, y, w));
    trama_status status = trama_wait_wrapped(w);
    demand(status == TRAMA_E_KERNEL || (my_rank && !status), "%s", trama_status_text(status));
    demand(!status || strstr(trama_error(), "on purpose"), "%s", trama_error());
    expect(trama_executable_destroy(&e), TRAMA_E_KERNEL, "failing");
    must(trama_wait_wrapped(w));
    must(trama_release(&w));
    trama_program_destroy(&p);
    trama_op_destroy(&op);
    stop();
}
END_TEST

/* ---- Memory ---- */

static int64_t peak(void)
{
    char line[200];
    long kilobytes = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %ld", &kilobytes) == 1)
            break;
    if (f)
        fclose(f);
    return (int64_t)kilobytes << 10;
}

static void forget_peak(void)
{
    FILE *f = fopen("/proc/self/clear_refs", "w");
    demand(f && fputs("5", f) >= 0 && !fclose(f), "cannot reset the peak");
}

/* Rows become columns. TRAMA_TEST_LONG: 1 GiB, else 128 MiB. */
START_TEST(resharding_takes_the_staging_buffer_and_no_more)
{
    const char *is_long = getenv("TRAMA_TEST_LONG");
    int64_t n = is_long && *is_long == '1' ? 11585 : 4096, window = 8 << 20;
    trama_config config = {.staging_bytes = window};
    start_with(&config);
    int64_t lo = n * my_rank / n_ranks, rows_here = n * (my_rank + 1) / n_ranks - lo;
    size_t bytes = (size_t)(n * rows_here) * sizeof(double);
    double *by_rows = malloc(bytes + 1), *by_columns = malloc(bytes + 1);
    trama_host_box from = {.data = by_rows, .bytes = bytes, .offset = {lo, 0}, .extent = {rows_here, n}};
    trama_host_box to = {.data = by_columns, .bytes = bytes, .offset = {0, lo}, .extent = {n, rows_here}};
    for (int64_t i = 0; i < n * rows_here; i++) {
        by_rows[i] = (double)(lo * n + i);
        by_columns[i] = -1; /* so that the pages are there */
    }
    trama_wrapped *a = NULL, *b = NULL;
    must(trama_wrap(ctx, "a", TRAMA_F64, TRAMA_SHAPE(n, n), 1, &from, TRAMA_READ_ONLY, &a));
    must(trama_wrap(ctx, "b", TRAMA_F64, TRAMA_SHAPE(n, n), 1, &to, TRAMA_READ_WRITE, &b));
    forget_peak();
    int64_t before = peak();
    must(trama_reshard_wrapped(a, b));
    must(trama_wait_wrapped(b));
    int64_t grown = peak() - before;
    demand(SANITIZED || grown < window + (4 << 20), "%" PRId64 " bytes beside source, target and window",
           grown - window);
    for (int64_t i = 0; i < n; i += 97)
        for (int64_t j = 0; j < rows_here; j++)
            demand(by_columns[i * rows_here + j] == (double)(i * n + lo + j), "element %" PRId64, i * n + lo + j);
    must(trama_release(&a));
    must(trama_release(&b));
    free(by_rows);
    free(by_columns);
    stop();
}
END_TEST

TESTS(any_distribution_becomes_any_other, values_come_from_and_go_to_any_distribution,
      what_lies_as_it_is_asked_for_is_read_where_it_is, wrapping_again_and_again_does_not_grow,
      block_cyclic_matrices_go_to_and_fro, what_does_not_fit_is_refused, ranks_that_disagree_are_told,
      wrong_uses_are_refused_and_change_nothing, what_a_failed_kernel_made_is_told,
      resharding_takes_the_staging_buffer_and_no_more)
