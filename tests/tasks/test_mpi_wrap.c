/* SPDX-License-Identifier: Apache-2.0 */
/* The host's arrays as tensors: boxes dealt out at random, in buffers of every order and with gaps, resharded, fed,
 * read and written. Each element is known from its place in the tensor; what is no element must not change. */
#include "harness.h"

enum { MOST_BOXES = 40, GAP = 7 };

static uint64_t chance = 42;

static int below(int n)
{
    return random_to(&chance, n);
}

/* A rank's own choices. */
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

/* A correct element becomes a guard (99). */
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
            dtype = dtype == TRAMA_BOOL ? TRAMA_C128 : dtype;
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

TESTS(any_distribution_becomes_any_other, values_come_from_and_go_to_any_distribution)
