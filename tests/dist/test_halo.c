/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that read beyond what they compute, over ranks: slices, padding, shifts, and their gradients. Values are those of
 * one device by naive loops; bytes are counted from the definition of who holds what. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "pair.h"
#include "suite.h"
#include "trama_array.h"
#include "trama_complete.h"
#include "trama_convolution.h"
#include "trama_ops.h"

static const char *const meshes[] = {"1", "2", "3", "2,2", "5", "[1,5]", "[4,1,20],[3,1]"};
static const char *const texts[] = {"S(0)", "S(1)", "R", "S(0),S(1)", "S(1),S(0)", "S(0),S(0)", "R,S(0)"};

typedef trama_value *build_function(trama_value *x, int variant);

/* One op on x in every layout, on ranks 1 .. 4, fused with what follows and not. */
static void try_all(const char *name, trama_shape shape, build_function *build, int variants)
{
    for (size_t m = 0; m < sizeof meshes / sizeof *meshes; m++)
        for (size_t l = 0; l < sizeof texts / sizeof *texts; l++)
            for (int variant = 0; variant < variants; variant++) {
                trama_mesh *mesh = trama_mesh_create(meshes[m]);
                trama_layout layout;
                trama_program *p = trama_program_create();
                trama_value *x = trama_input(p, "x", TRAMA_F64, shape);
                if (!trama_layout_parse(mesh, shape.ndim, texts[l], &layout)) {
                    trama_shard(x, mesh, texts[l]);
                    trama_value *y = build(x, variant);
                    ck_assert_msg(y != NULL, "%s: %s", name, trama_program_error(p));
                    trama_value *loss = trama_sum(trama_mul(trama_square(y), y));
                    trama_target *t = trama_target_create(p, "t", y, loss, trama_gradient(loss, x));
                    dense data = dense_random(shape, 5 + (uint64_t)variant, -2, 2, true);
                    pair_try(p, t, 1, &x, &data, 4, 1e-12, name);
                    dense_free(&data);
                }
                trama_program_destroy(&p);
                trama_mesh_destroy(&mesh);
            }
}

static trama_value *slice_rows(trama_value *x, int variant)
{
    const int64_t from[] = {0, 1, 6, 3}, extent[] = {6, 8, 3, 0};
    return trama_slice(x, 0, from[variant], extent[variant]);
}

static trama_value *pad(trama_value *x, int variant)
{
    return trama_pad(x, variant % 2, variant, 3 - variant);
}

static trama_value *shift(trama_value *x, int variant)
{
    const int64_t by[] = {1, -1, 4, -20};
    return trama_shift(x, 0, by[variant]);
}

/* Five points: each neighbour a shift of its own, all summed in one chain. */
static trama_value *five_points(trama_value *x, int variant)
{
    trama_value *sum = trama_scale(x, -4);
    for (int i = 0; i < 4; i++)
        sum = trama_add(sum, trama_shift(x, i / 2, i % 2 ? 1 : -1));
    return variant ? trama_add(x, trama_scale(sum, 0.25)) : sum;
}

START_TEST(slices)
{
    try_all("slice", TRAMA_SHAPE(9, 4), slice_rows, 4);
}
END_TEST

START_TEST(padding)
{
    try_all("pad", TRAMA_SHAPE(5, 7), pad, 4);
}
END_TEST

START_TEST(shifts)
{
    try_all("shift", TRAMA_SHAPE(11, 3), shift, 4);
    try_all("shift of few", TRAMA_SHAPE(2, 3), shift, 2);
}
END_TEST

START_TEST(a_stencil_of_shifts)
{
    try_all("five points", TRAMA_SHAPE(13, 8), five_points, 2);
}
END_TEST

/* A shift by one over n rows of 7 on p processes: each border goes over once, n rows stay. */
START_TEST(neighbours_exchange_borders_only)
{
    enum { N = 40, COLUMNS = 7, P = 4 };
    trama_mesh *mesh = trama_mesh_create("4");
    trama_program *p = trama_program_create();
    trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(N, COLUMNS));
    trama_shard(x, mesh, "S(0)");
    trama_target *t = trama_target_create(p, "t", trama_shift(x, 0, 1));
    machine *m = simulation_machine(P, 1, 2);
    pair both = pair_new(p, m, &(simulation_options){.plan = {.grain_flops = 1, .grain_bytes = 1}}, "borders");
    dense data = dense_random(TRAMA_SHAPE(N, COLUMNS), 3, -1, 1, false);
    pair_feed(&both, x, &data);
    pair_run(&both, t, 0);
    traffic moved = simulation_traffic(both.many);
    ck_assert_int_eq(moved.bytes, (P - 1) * COLUMNS * 8);
    ck_assert_int_eq(moved.messages, P - 1);
    for (int r = 0; r < P; r++) { /* only rows at a border are copied */
        const plan *of = simulation_plan(both.many, r);
        int64_t copied = 0;
        for (int i = 0; i < of->steps.n; i++)
            if (of->steps.at[i].kind == STEP_COPY)
                copied += box_count(&plan_step_operand(of, &of->steps.at[i], 0)->region.box);
        ck_assert_int_le(copied, 2 * COLUMNS);
    }
    dense_free(&data);
    pair_free(&both);
    machine_destroy(&m);
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
}
END_TEST

static trama_value *roll(trama_value *x, int variant)
{
    const int64_t by[] = {1, -2, 5, 0};
    return trama_roll(x, variant % 2, by[variant]);
}

static trama_value *pool(trama_value *x, int variant)
{
    const trama_windows w = {.kernel = {2 + variant % 2}, .stride = {1 + variant / 2}, .before = {1}, .after = {1}};
    return trama_max_pool(trama_reshape(x, TRAMA_SHAPE(x->shape.dim[0], 1, x->shape.dim[1])), &w);
}

/* The bytes that the busiest rank receives in a run, each process of the mesh on a rank of its own. */
static int64_t counted(trama_program *p, trama_target *t, const trama_value *x, int ranks)
{
    machine *m = simulation_machine(ranks, 1, 2);
    simulation *s = simulation_new(p, m, &(simulation_options){.plan = {.grain_flops = 1, .grain_bytes = 1}});
    dense data = dense_random(x->shape, 3, -1, 1, false);
    int64_t most = 0;
    simulation_feed(s, x, &data);
    simulation_run(s, t);
    for (int r = 0; r < ranks; r++)
        most = max_i64(most, plan_count(simulation_plan(s, r)).received);
    dense_free(&data);
    simulation_destroy(&s);
    machine_destroy(&m);
    return most;
}

/* The program's bytes by completion, beside those that are counted; they are equal where the op reads x as it lies, of
 * which it returns whether there are any. */
static bool compare_bytes(trama_program *p, trama_value *x, trama_value *y, const char *name)
{
    trama_target *t = trama_target_create(p, "t", y);
    trama_completion *c;
    trama_layout read, lies;
    int64_t bytes;
    ck_assert_msg(t != NULL, "%s: %s", name, trama_program_error(p));
    ck_assert_msg(!trama_completion_create(p, 8, &c), "%s: %s", name, trama_error());
    ck_assert(!trama_completion_bytes(c, &bytes, NULL));
    const int64_t received = counted(p, t, x, trama_mesh_size(trama_annotation_mesh(x)));
    const bool as_it_lies = y != x && y->node->in[0] == x && trama_completion_operand(c, y, 0, &read) &&
                            trama_annotation_layout(x, &lies) && trama_layout_equal(&read, &lies);
    ck_assert_msg(as_it_lies ? received == bytes : received <= bytes, "%s: %lld B, not %lld", name, (long long)received,
                  (long long)bytes);
    trama_completion_destroy(&c);
    return as_it_lies && bytes;
}

START_TEST(completion_counts_the_bytes_of_neighbours)
{
    static build_function *const ops[] = {slice_rows, pad, shift, roll, pool};
    enum { OPS = sizeof ops / sizeof *ops, MESHES = sizeof meshes / sizeof *meshes };
    int n = 0;
    for (int i = 0; i < 4 * OPS * MESHES; i++)
        for (size_t l = 0; l < sizeof texts / sizeof *texts; l++) {
            const char *on = meshes[i / (4 * OPS)];
            trama_mesh *mesh = trama_mesh_create(on);
            trama_layout layout;
            trama_program *p = trama_program_create();
            trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(9, 12));
            char name[64];
            snprintf(name, sizeof name, "op %d.%d, mesh %s, %s", i % (4 * OPS) / 4, i % 4, on, texts[l]);
            if (!trama_layout_parse(mesh, 2, texts[l], &layout))
                n += compare_bytes(p, trama_shard(x, mesh, texts[l]), ops[i % (4 * OPS) / 4](x, i % 4), name);
            trama_program_destroy(&p);
            trama_mesh_destroy(&mesh);
        }
    ck_assert_msg(n >= 100, "only %d programs read neighbours elsewhere", n);
}
END_TEST

/* Columns are received before a shift of rows or behind it. Behind it a row of 12 f64 from the neighbour comes too. */
START_TEST(completion_receives_no_neighbours_where_it_may_change_the_layout_first)
{
    trama_mesh *mesh = trama_mesh_create("2");
    trama_program *p = trama_program_create();
    trama_value *x = trama_shard(trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(8, 12)), mesh, "S(0)");
    trama_value *y = trama_shard(trama_shift(x, 0, 1), mesh, "S(1)");
    trama_completion *c;
    trama_layout read;
    int64_t bytes;
    ck_assert_int_eq(trama_completion_create(p, 8, &c), TRAMA_OK);
    ck_assert(trama_completion_operand(c, y, 0, &read));
    ck_assert(read.axis[0].kind == TRAMA_SPLIT && read.axis[0].dim == 1);
    ck_assert_int_eq(trama_completion_bytes(c, &bytes, NULL), TRAMA_OK);
    ck_assert_int_eq(bytes, 4 * 6 * 8);
    trama_completion_destroy(&c);
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
}
END_TEST

START_TEST(what_does_not_fit_is_refused)
{
    struct {
        const char *problem;
        int call;
    } cases[] = {{"not within the dim", 0}, {"no such dim", 1}, {"cannot be added", 2}, {"only known when fed", 3},
                 {"for each dim", 4},       {"negative", 5},    {"stays as it is", 6}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        trama_program *p = trama_program_create();
        trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(TRAMA_ANY, 7)), *y = x;
        switch (cases[i].call) {
        case 0:
            y = trama_slice(x, 1, 3, 5);
            break;
        case 1:
            ck_assert_ptr_nonnull(trama_shift(x, -1, 1));
            y = trama_shift(x, -3, 1);
            break;
        case 2:
            y = trama_pad(x, 1, -1, 0);
            break;
        case 3:
            y = trama_slice(x, 0, 0, 1);
            break;
        case 4:
            y = trama_window(x, ((int64_t[]){0}), TRAMA_SHAPE(7));
            break;
        case 5:
            y = trama_window(x, ((int64_t[]){0, 0}), TRAMA_SHAPE(TRAMA_ANY, -7));
            break;
        default:
            y = trama_window(x, ((int64_t[]){1, 0}), TRAMA_SHAPE(TRAMA_ANY, 7));
        }
        ck_assert_ptr_null(y);
        ck_assert_int_eq(trama_program_status(p), TRAMA_E_SHAPE);
        ck_assert_msg(strstr(trama_program_error(p), cases[i].problem) && strstr(trama_program_error(p), __FILE__),
                      "%s", trama_program_error(p));
        trama_program_destroy(&p);
    }
    ck_assert_ptr_null(trama_slice(NULL, 0, 0, 1));
    ck_assert_ptr_null(trama_window(NULL, NULL, TRAMA_SCALAR));
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        slices,
        padding,
        shifts,
        a_stencil_of_shifts,
        neighbours_exchange_borders_only,
        completion_counts_the_bytes_of_neighbours,
        completion_receives_no_neighbours_where_it_may_change_the_layout_first,
        what_does_not_fit_is_refused,
    };
    return suite_run("halo", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
