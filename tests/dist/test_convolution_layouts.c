/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions and pools: the definitions by naive loops, images split over ranks with all gradients, the bytes of
 * their borders, and wrong calls. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "pair.h"
#include "suite.h"
#include "trama_convolution.h"
#include "trama_network.h"
#include "trama_ops.h"

enum { IMAGES = 2, HEIGHT = 11, WIDTH = 6 };

/* ---- Definitions ---- */

typedef struct geometry {
    int64_t in, out, kernel[2];
    trama_windows windows;
} geometry;

static const geometry geometries[] = {
    {3, 4, {3, 3}, {.before = {1, 1}, .after = {1, 1}}},
    {3, 2, {3, 2}, {.stride = {2, 1}, .before = {2, 0}, .after = {0, 1}}},
    {4, 6, {2, 3}, {.stride = {3, 2}, .dilation = {2, 1}, .after = {3, 0}, .groups = 2}},
    {5, 5, {3, 1}, {.before = {1}, .after = {1}, .groups = 5}},
    {1, 1, {5, 4}, {.before = {-1, 0}}},
};
enum { N_GEOMETRIES = sizeof geometries / sizeof *geometries };

static int64_t or_one(int64_t x)
{
    return x ? x : 1;
}

/* The terms of y = conv(x, w) one by one: y[yi] has x[xi] w[wi]. Returns the number of elements of y. */
typedef void each_term(int64_t yi, int64_t xi, int64_t wi, void *to);
static int64_t terms(const geometry *g, each_term *term, void *to, int64_t *extent)
{
    const trama_windows *w = &g->windows;
    const int64_t n[2] = {HEIGHT, WIDTH}, groups = or_one(w->groups), in = g->in / groups, out = g->out / groups;
    for (int d = 0; d < 2; d++)
        extent[d] = (n[d] + w->before[d] + w->after[d] - or_one(w->dilation[d]) * (g->kernel[d] - 1) - 1) /
                        or_one(w->stride[d]) +
                    1;
    for (int64_t at = 0; at < IMAGES * g->out * extent[0] * extent[1]; at++) {
        const int64_t j = at % extent[1], i = at / extent[1] % extent[0], o = at / extent[1] / extent[0] % g->out,
                      image = at / extent[1] / extent[0] / g->out;
        for (int64_t c = 0; c < in; c++)
            for (int64_t k = 0; k < g->kernel[0]; k++)
                for (int64_t l = 0; l < g->kernel[1]; l++) {
                    const int64_t h = i * or_one(w->stride[0]) - w->before[0] + k * or_one(w->dilation[0]);
                    const int64_t v = j * or_one(w->stride[1]) - w->before[1] + l * or_one(w->dilation[1]);
                    if (h >= 0 && h < HEIGHT && v >= 0 && v < WIDTH)
                        term(at, ((image * g->in + o / out * in + c) * HEIGHT + h) * WIDTH + v,
                             ((o * in + c) * g->kernel[0] + k) * g->kernel[1] + l, to);
                }
    }
    return IMAGES * g->out * extent[0] * extent[1];
}

/* y = conv(x, w), and t = conv_transposed(y, w), of the shape of x. */
typedef struct network {
    trama_program *p;
    trama_value *x, *w, *y, *spread, *dx, *dw, *back;
    trama_target *t;
} network;

static network network_new(const geometry *g)
{
    network n = {.p = trama_program_create()};
    const int64_t groups = or_one(g->windows.groups), extent[2] = {HEIGHT, WIDTH};
    n.x = trama_input(n.p, "x", TRAMA_F64, TRAMA_SHAPE(IMAGES, g->in, HEIGHT, WIDTH));
    n.w = trama_input(n.p, "w", TRAMA_F64, TRAMA_SHAPE(g->out, g->in / groups, g->kernel[0], g->kernel[1]));
    n.y = trama_conv(n.x, n.w, NULL, &g->windows);
    trama_windows back = g->windows;
    for (int d = 0; d < 2 && n.y; d++) {
        const int64_t reached = (trama_value_shape(n.y).dim[2 + d] - 1) * or_one(back.stride[d]) +
                                or_one(back.dilation[d]) * (g->kernel[d] - 1) + 1 - back.before[d] - back.after[d];
        back.more[d] = extent[d] - reached;
    }
    n.spread = trama_conv_transposed(n.y, n.w, NULL, &back);
    trama_value *loss = trama_sum(trama_mul(trama_square(n.y), n.y));
    trama_value *all = trama_add(loss, trama_sum(trama_square(n.spread)));
    n.dx = trama_gradient(all, n.x);
    n.dw = trama_gradient(all, n.w);
    n.t = trama_target_create(n.p, "t", n.y, n.spread, n.dx, n.dw);
    ck_assert_msg(n.t != NULL, "%s", trama_program_error(n.p));
    return n;
}

typedef struct sums {
    const double *x, *w;
    double *y, *spread, *dy;
    double *dx, *dw;
} sums;

static void add_y(int64_t yi, int64_t xi, int64_t wi, void *to)
{
    sums *s = to;
    s->y[yi] += s->x[xi] * s->w[wi];
}

static void add_spread(int64_t yi, int64_t xi, int64_t wi, void *to)
{
    sums *s = to;
    s->spread[xi] += s->y[yi] * s->w[wi];
}

/* The loss is the sum of y^3 and of spread^2: dy holds 3 y^2 at first. */
static void add_dy(int64_t yi, int64_t xi, int64_t wi, void *to)
{
    sums *s = to;
    s->dy[yi] += 2 * s->spread[xi] * s->w[wi];
    s->dw[wi] += 2 * s->spread[xi] * s->y[yi];
}

static void add_gradients(int64_t yi, int64_t xi, int64_t wi, void *to)
{
    sums *s = to;
    s->dx[xi] += s->dy[yi] * s->w[wi];
    s->dw[wi] += s->dy[yi] * s->x[xi];
}

static void expect(const single *one, const trama_value *v, const double *wanted, const char *what, int number)
{
    const dense *is = single_value(one, v);
    for (int64_t i = 0; i < trama_shape_count(trama_value_shape(v)); i++)
        ck_assert_msg(fabs(is->at[i] - wanted[i]) <= 1e-11 * fmax(1, fabs(wanted[i])),
                      "geometry %d: %s[%lld] is %.17g instead of %.17g", number, what, (long long)i, is->at[i],
                      wanted[i]);
}

static void try_definition(int number)
{
    enum { MOST = 4096 };
    static double all[5][MOST], *y = all[0], *spread = all[1], *dy = all[2], *dx = all[3], *dw = all[4];
    const geometry *g = &geometries[number];
    memset(all, 0, sizeof all);
    network n = network_new(g);
    single *one = single_new(n.p);
    dense x = dense_random(n.x->shape, 1, -1, 1, false), w = dense_random(n.w->shape, 2, -1, 1, false);
    sums s = {x.at, w.at, y, spread, dy, dx, dw};
    int64_t extent[2], count = terms(g, add_y, &s, extent);
    ck_assert(trama_shape_equal(n.y->shape, TRAMA_SHAPE(IMAGES, g->out, extent[0], extent[1])));
    terms(g, add_spread, &s, extent);
    for (int64_t i = 0; i < count; i++)
        dy[i] = 3 * y[i] * y[i];
    terms(g, add_dy, &s, extent);
    terms(g, add_gradients, &s, extent);
    single_feed(one, n.x, &x);
    single_feed(one, n.w, &w);
    single_run(one, n.t);
    expect(one, n.y, y, "conv", number);
    expect(one, n.spread, spread, "conv_transposed", number);
    expect(one, n.dx, dx, "the gradient of x", number);
    expect(one, n.dw, dw, "the gradient of w", number);
    dense_free(&x);
    dense_free(&w);
    single_destroy(&one);
    trama_program_destroy(&n.p);
}

START_TEST(values_and_gradients_are_those_of_naive_loops)
{
    for (int i = 0; i < N_GEOMETRIES; i++)
        try_definition(i);
}
END_TEST

/* ---- Splits ---- */

static void try_splits(const geometry *g)
{
    static const struct {
        const char *mesh, *x, *w;
    } tried[] = {
        {"2", "S(2)", NULL},        {"4", "S(2)", NULL},        {"3", "S(3)", "R"},          {"2", "S(1)", NULL},
        {"2,2", "S(2),S(3)", NULL}, {"2,2", "S(0),S(2)", NULL}, {"2,2", "S(2),R", "R,S(0)"}, {"2", NULL, "S(0)"},
        {"4", "S(3)", "S(2)"},      {"3", "P(sum)", NULL},
    };
    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
        network n = network_new(g);
        trama_mesh *mesh = trama_mesh_create(tried[i].mesh);
        ck_assert(!tried[i].x || trama_shard(n.x, mesh, tried[i].x));
        ck_assert(!tried[i].w || trama_shard(n.w, mesh, tried[i].w));
        dense data[2] = {dense_random(n.x->shape, 1, -1, 1, false), dense_random(n.w->shape, 2, -1, 1, false)};
        pair_try(n.p, n.t, 2, (trama_value *[]){n.x, n.w}, data, 3, 1e-10, "convolution");
        dense_free(&data[0]);
        dense_free(&data[1]);
        trama_program_destroy(&n.p);
        trama_mesh_destroy(&mesh);
    }
}

START_TEST(any_split_gives_the_values_of_one_device)
{
    for (int i = 0; i < N_GEOMETRIES; i++)
        try_splits(&geometries[i]);
}
END_TEST

/* The number of images is known when they are fed. */
START_TEST(a_batch_of_any_size_is_convolved)
{
    trama_program *p = trama_program_create();
    trama_mesh *mesh = trama_mesh_create("2,2");
    trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(TRAMA_ANY, 2, 5, 6));
    trama_value *w = trama_parameter(p, "w", TRAMA_F64, TRAMA_SHAPE(3, 2, 3, 3), &(trama_init){-1, 1, 3, 4});
    ck_assert_ptr_nonnull(trama_shard(x, mesh, "S(0),S(2)"));
    trama_value *y = trama_max_pool(trama_conv(x, w, NULL, NULL), (&(trama_windows){.kernel = {2, 2}}));
    trama_target *t = trama_target_create(p, "t", y, trama_gradient(trama_sum(trama_square(y)), w));
    ck_assert_msg(t != NULL, "%s", trama_program_error(p));
    for (int images = 0; images < 6; images += 5) {
        dense data = dense_random(TRAMA_SHAPE(images, 2, 5, 6), 3, -1, 1, false);
        pair_try(p, t, 1, &x, &data, 4, 1e-10, "a batch");
        dense_free(&data);
    }
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
}
END_TEST

/* The bytes that two processes receive in a convolution, or in the gradient of its weights. */
static int64_t received(bool gradient, const char *layout)
{
    trama_program *p = trama_program_create();
    trama_mesh *mesh = trama_mesh_create("2");
    machine *m = machine_uniform(2, 1);
    trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(1, 2, 8, 5));
    trama_value *w = trama_input(p, "w", TRAMA_F64, TRAMA_SHAPE(3, 2, 3, 3));
    ck_assert(trama_shard(x, mesh, layout) && trama_shard(w, mesh, "R"));
    trama_value *y = trama_conv(x, w, NULL, (&(trama_windows){.before = {1, 1}, .after = {1, 1}}));
    trama_value *loss = trama_sum(y);
    trama_value *d = gradient ? trama_gradient(loss, w) : y;
    ck_assert(trama_shard(d, mesh, gradient ? "P(sum)" : layout) != NULL);
    trama_target *t = trama_target_create(p, "t", d);
    ck_assert_msg(t != NULL, "%s", trama_program_error(p));
    simulation_options o = {.plan = {.max_tiles = 1, .grain_flops = 1, .grain_bytes = 1}};
    simulation *s = simulation_new(p, m, &o);
    dense data[2] = {dense_random(x->shape, 1, -1, 1, false), dense_random(w->shape, 2, -1, 1, false)};
    simulation_feed(s, x, &data[0]);
    simulation_feed(s, w, &data[1]);
    simulation_run(s, t);
    const int64_t bytes = simulation_traffic(s).bytes;
    dense_free(&data[0]);
    dense_free(&data[1]);
    simulation_destroy(&s);
    machine_destroy(&m);
    trama_mesh_destroy(&mesh);
    trama_program_destroy(&p);
    return bytes;
}

START_TEST(split_images_exchange_their_border_rows)
{
    enum { ROW = 2 * 5 * 8 }; /* bytes of a row of x, all channels */
    ck_assert_int_eq(received(false, "S(2)"), 2 * ROW);
    ck_assert_int_eq(received(true, "S(2)"), 2 * ROW); /* the convolution itself is not computed */
    ck_assert_int_eq(received(false, "S(0)"), 0);
}
END_TEST

/* ---- Pools ---- */

static void try_pools(const trama_windows *w)
{
    static const char *const texts[] = {"R,R", "S(2),R", "S(2),S(3)", "S(1),S(2)", "S(0),S(3)"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        trama_program *p = trama_program_create();
        trama_mesh *mesh = trama_mesh_create("2,2");
        trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(IMAGES, 3, HEIGHT, WIDTH));
        ck_assert_ptr_nonnull(trama_shard(x, mesh, texts[i]));
        trama_value *most = trama_max_pool(x, w), *mean = trama_mean_pool(x, w);
        trama_value *loss = trama_sum(trama_mul(trama_square(most), mean));
        trama_target *t = trama_target_create(p, "t", most, trama_result(most, 1), mean, trama_gradient(loss, x));
        ck_assert_msg(t != NULL, "%s", trama_program_error(p));
        dense data = dense_random(x->shape, 3, -1, 1, false);
        pair_try(p, t, 1, &x, &data, 3, 1e-10, "pools");
        dense_free(&data);
        trama_program_destroy(&p);
        trama_mesh_destroy(&mesh);
    }
}

START_TEST(pools_split_over_ranks_give_the_values_of_one_device)
{
    static const trama_windows windows[] = {
        {.kernel = {3, 2}, .stride = {2, 1}, .before = {1, 1}, .after = {1, 0}},
        {.kernel = {2, 2}, .up = true},
        {.kernel = {3, 3}, .stride = {1, 1}, .before = {1, 1}, .after = {1, 1}, .padded = true},
        {.kernel = {2, 3}, .stride = {1, 2}, .dilation = {3, 1}},
    };
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++)
        try_pools(&windows[i]);
}
END_TEST

/* Windows of PyTorch 2.15: max_pool1d(x, 3, 2, 1, return_indices=True), avg_pool1d(x, 3, 2, 1, ceil_mode=True) with and
 * without count_include_pad. */
START_TEST(pools_are_those_of_pytorch)
{
    static const double numbers[6] = {1, 5, 5, -2, 0, 7}, most[3] = {5, 5, 7}, at[3] = {1, 1, 5};
    static const double mean[4] = {3, 8.0 / 3, 5.0 / 3, 7}, padded[4] = {2, 8.0 / 3, 5.0 / 3, 3.5};
    trama_program *p = trama_program_create();
    trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(1, 1, 6));
    trama_windows w = {.kernel = {3}, .stride = {2}, .before = {1}, .after = {1}};
    trama_value *m = trama_max_pool(x, &w);
    w.up = true;
    trama_value *a = trama_mean_pool(x, &w);
    w.padded = true;
    trama_value *b = trama_mean_pool(x, &w);
    trama_target *t = trama_target_create(p, "t", m, trama_result(m, 1), a, b);
    ck_assert_msg(t != NULL, "%s", trama_program_error(p));
    single *one = single_new(p);
    dense data = dense_random(x->shape, 1, -1, 1, false);
    memcpy(data.at, numbers, sizeof numbers);
    single_feed(one, x, &data);
    single_run(one, t);
    expect(one, m, most, "max_pool", 0);
    expect(one, trama_result(m, 1), at, "its index", 0);
    ck_assert_int_eq(trama_value_shape(a).dim[2], 4);
    expect(one, a, mean, "mean_pool", 0);
    expect(one, b, padded, "mean_pool, padded", 0);
    dense_free(&data);
    single_destroy(&one);
    trama_program_destroy(&p);
}
END_TEST

/* ---- Batch norm ---- */

START_TEST(running_statistics_are_those_of_all_processes)
{
    static const char *const texts[] = {"R,R", "S(0),R", "S(1),S(0)", "S(2),S(3)"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        trama_program *p = trama_program_create();
        trama_mesh *mesh = trama_mesh_create("2,2");
        trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(5, 3, 4, 2)), *mean, *variance;
        trama_value *w = trama_parameter(p, "w", TRAMA_F64, TRAMA_SHAPE(3), &(trama_init){-1, 1, 3, 4});
        trama_value *state[2] = {trama_state(p, "mean", TRAMA_F64, TRAMA_SHAPE(3), NULL),
                                 trama_state(p, "variance", TRAMA_F64, TRAMA_SHAPE(3), NULL)};
        ck_assert_ptr_nonnull(trama_shard(x, mesh, texts[i]));
        trama_value *y = trama_batch_norm(x, w, NULL, 1e-5, &mean, &variance);
        trama_value *loss = trama_sum(trama_mul(trama_square(y), y));
        trama_target *t =
            trama_target_create(p, "t", y, trama_gradient(loss, x), trama_gradient(loss, w),
                                trama_running(state[0], mean, 0.1), trama_running(state[1], variance, 0.1));
        ck_assert_msg(t != NULL, "%s", trama_program_error(p));
        dense data = dense_random(x->shape, 3, -1, 1, false);
        pair_try(p, t, 1, &x, &data, 3, 1e-10, "batch norm");
        dense_free(&data);
        trama_program_destroy(&p);
        trama_mesh_destroy(&mesh);
    }
}
END_TEST

/* ---- Wrong calls ---- */

static void refuse(trama_status status, const char *words, trama_shape x, trama_shape w, trama_windows windows)
{
    trama_program *p = trama_program_create();
    trama_value *a = trama_input(p, "image", TRAMA_F32, x), *b = trama_input(p, "kernel", TRAMA_F32, w);
    ck_assert_ptr_null(windows.kernel[2] ? trama_max_pool(a, &windows) : trama_conv(a, b, NULL, &windows));
    ck_assert_int_eq(trama_program_status(p), status);
    ck_assert_msg(strstr(trama_program_error(p), words) && strstr(trama_program_error(p), "test_convolution_layouts.c"),
                  "%s", trama_program_error(p));
    trama_program_destroy(&p);
}

START_TEST(wrong_windows_are_refused_in_words)
{
    const trama_shape image = TRAMA_SHAPE(1, 4, 8, 8), kernel = TRAMA_SHAPE(2, 4, 3, 3);
    const trama_windows none = {0};
    refuse(TRAMA_E_SHAPE, "3 to 5 are needed", TRAMA_SHAPE(4, 8), TRAMA_SHAPE(2, 4), none);
    refuse(TRAMA_E_SHAPE, "the weights kernel have 3", image, TRAMA_SHAPE(2, 4, 3), none);
    refuse(TRAMA_E_SHAPE, "not those of the weights", image, TRAMA_SHAPE(2, 3, 3, 3), none);
    refuse(TRAMA_E_SHAPE, "groups of equal size", image, kernel, (trama_windows){.groups = 3});
    refuse(TRAMA_E_SHAPE, "groups of equal size", image, kernel, (trama_windows){.groups = -1});
    refuse(TRAMA_E_ARGUMENT, "strides and dilations", image, kernel, (trama_windows){.stride = {-1, 1}});
    refuse(TRAMA_E_ARGUMENT, "are 1 to 2^22", image, kernel, (trama_windows){.dilation = {1, INT64_MAX}});
    refuse(TRAMA_E_ARGUMENT, "the kernel needs 1 to 2^30", image, TRAMA_SHAPE(2, 4, 0, 3), none);
    refuse(TRAMA_E_ARGUMENT, "leave it 0", image, kernel, (trama_windows){.kernel = {3, 2}});
    refuse(TRAMA_E_ARGUMENT, "is only known when fed", TRAMA_SHAPE(1, 4, TRAMA_ANY, 8), kernel, none);
    refuse(TRAMA_E_ARGUMENT, "at most 2^30", image, kernel, (trama_windows){.before = {INT64_MIN, 0}});
    refuse(TRAMA_E_ARGUMENT, "beyond the elements", image, kernel,
           (trama_windows){.kernel = {2, 2, 1}, .before = {2, 0}});
    refuse(TRAMA_E_ARGUMENT, "the kernel needs", image, kernel, (trama_windows){.kernel = {0, 2, 1}});
    refuse(TRAMA_E_ARGUMENT, "size", image, kernel, (trama_windows){.size = 3});
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        values_and_gradients_are_those_of_naive_loops,
        any_split_gives_the_values_of_one_device,
        a_batch_of_any_size_is_convolved,
        split_images_exchange_their_border_rows,
        pools_split_over_ranks_give_the_values_of_one_device,
        pools_are_those_of_pytorch,
        running_statistics_are_those_of_all_processes,
        wrong_windows_are_refused_in_words,
    };
    return suite_run("convolution_layouts", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
