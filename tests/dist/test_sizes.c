/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes that cannot be: counts and bytes beyond 64 bits, shapes filled in by hand, lists of a negative length. Each is
 * refused at the builder's line, and nothing is computed from it. */
#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "program.h"
#include "suite.h"
#include "trama_complete.h"
#include "trama_op_define.h"
#include "trama_ops.h"
#include "trama_reshard_plan.h"

static trama_program *p;
static trama_value *x, *wide; /* [4,6]; [2^57], which has the most bytes of f64 */
static trama_mesh *mesh;

static void set_up(void)
{
    p = trama_program_create();
    mesh = trama_mesh_create("a=2,b=2");
    x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(4, 6));
    wide = trama_input(p, "wide", TRAMA_F64, TRAMA_SHAPE(INT64_C(1) << 57));
    ck_assert(!trama_program_status(p));
}

static void tear_down(void)
{
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
}

static void check_wrong(bool made, trama_status expected, const char *words, int line)
{
    char place[64];
    snprintf(place, sizeof place, "test_sizes.c:%d: ", line);
    ck_assert_msg(!made, "line %d: it was accepted", line);
    ck_assert_msg(trama_program_status(p) == expected, "line %d: the status is '%s': %s", line,
                  trama_status_text(trama_program_status(p)), trama_program_error(p));
    ck_assert_msg(strstr(trama_program_error(p), place) != NULL, "line %d: another place: %s", line,
                  trama_program_error(p));
    ck_assert_msg(strstr(trama_program_error(p), words) != NULL, "line %d: no '%s' in: %s", line, words,
                  trama_program_error(p));
    tear_down();
    set_up();
}

/* The expression is one call on one line. */
#define WRONG(status, words, expression) check_wrong((expression) != NULL, status, words, __LINE__)
#define TOO_LARGE(expression) check_wrong((expression) != NULL, TRAMA_E_SHAPE, "2^60 bytes", __LINE__)

static const int64_t half = INT64_C(1) << 30, most = INT64_C(1) << 57;

/* A shape that no function made. */
static trama_shape by_hand(int ndim, int64_t extent)
{
    trama_shape shape = {.ndim = ndim};
    for (int d = 0; d < TRAMA_MAX_NDIM; d++)
        shape.dim[d] = extent;
    return shape;
}

/* ---- Counts and bytes ---- */

START_TEST(leaves_whose_bytes_cannot_be_counted_are_refused)
{
    double datum = 1;
    TOO_LARGE(trama_input(p, "y", TRAMA_F32, TRAMA_SHAPE((INT64_C(1) << 62) + 1, 4)));
    TOO_LARGE(trama_input(p, "y", TRAMA_F32, TRAMA_SHAPE(TRAMA_ANY, INT64_C(1) << 40, INT64_C(1) << 40)));
    TOO_LARGE(trama_parameter(p, "y", TRAMA_F32, TRAMA_SHAPE(INT64_MAX / 4), NULL));
    TOO_LARGE(trama_state(p, "y", TRAMA_U8, TRAMA_SHAPE(INT64_MAX), NULL));
    TOO_LARGE(trama_constant(p, TRAMA_F32, TRAMA_SHAPE(INT64_MAX / 4), &datum));
    TOO_LARGE(trama_constant(p, TRAMA_F64, TRAMA_SHAPE(INT64_C(1) << 61, 8), &datum)); /* 2^64 elements: 0 */
    TOO_LARGE(trama_fill(p, TRAMA_F32, TRAMA_SHAPE(INT64_MAX / 4), 0));
    TOO_LARGE(trama_uniform(p, TRAMA_F32, TRAMA_SHAPE(INT64_C(1) << 31, INT64_C(1) << 31), 0, 1, 0, 0));
    TOO_LARGE(trama_input(p, "y", TRAMA_F64, TRAMA_SHAPE(most + 1)));
    ck_assert_ptr_nonnull(trama_input(p, "y", TRAMA_F64, TRAMA_SHAPE(most)));
}
END_TEST

START_TEST(results_whose_bytes_cannot_be_counted_are_refused)
{
    trama_value *column, *row;
    int64_t to[2] = {0, 0};
    TOO_LARGE(trama_window(x, to, TRAMA_SHAPE(INT64_C(1) << 59, INT64_C(1) << 59)));
    TOO_LARGE(trama_pad(wide, 0, 1, 0));
    TOO_LARGE(trama_pad(x, 1, 0, INT64_C(1) << 58));
    TOO_LARGE(trama_reshape(x, TRAMA_SHAPE(INT64_MAX, INT64_MAX)));
    TOO_LARGE(trama_reshape(x, TRAMA_SHAPE(24, INT64_MAX, 0)));
    column = trama_input(p, "column", TRAMA_F32, TRAMA_SHAPE(half, 1));
    row = trama_input(p, "row", TRAMA_F32, TRAMA_SHAPE(1, half));
    TOO_LARGE(trama_matmul(column, row));
    column = trama_input(p, "column", TRAMA_F32, TRAMA_SHAPE(half, 1));
    row = trama_input(p, "row", TRAMA_F32, TRAMA_SHAPE(1, half));
    TOO_LARGE(trama_add(column, row));
    column = trama_input(p, "column", TRAMA_U8, TRAMA_SHAPE(INT64_C(1) << 58));
    TOO_LARGE(trama_cast(column, TRAMA_F64));
}
END_TEST

START_TEST(an_error_of_a_pad_or_a_slice_names_that_call)
{
    WRONG(TRAMA_E_SHAPE, "pad of x", trama_pad(x, 0, INT64_C(1) << 61, 0));
    WRONG(TRAMA_E_SHAPE, "slice of x", trama_slice(x, 0, 3, 2));
    WRONG(TRAMA_E_SHAPE, "shift of x", trama_shift(x, 0, INT64_MIN));
}
END_TEST

/* x [any, 2^40], w [2^40, any]: neither is too large before both are fed. */
START_TEST(results_of_fed_extents_are_counted_when_they_are_known)
{
    trama_value *a = trama_input(p, "a", TRAMA_F32, TRAMA_SHAPE(TRAMA_ANY, 1));
    trama_value *b = trama_input(p, "b", TRAMA_F32, TRAMA_SHAPE(1, INT64_C(1) << 40));
    trama_value *c = trama_mul(a, b);
    ck_assert_ptr_nonnull(c);
    trama_shape *shapes = trama_alloc((size_t)p->values.n * sizeof *shapes);
    node_rules rules = node_rules_new(p->nodes.n);
    for (int i = 0; i < p->values.n; i++)
        shapes[i] = p->values.at[i]->shape;
    shapes[a->id] = TRAMA_SHAPE(INT64_C(1) << 30, 1);
    ck_assert_int_eq(program_resolve(p, NULL, shapes, &rules), TRAMA_E_SHAPE);
    ck_assert_ptr_nonnull(strstr(trama_error(), "2^60 bytes"));
    ck_assert_ptr_nonnull(strstr(trama_error(), "test_sizes.c"));
    shapes[a->id] = TRAMA_SHAPE(INT64_C(1) << 10, 1);
    ck_assert_int_eq(program_resolve(p, NULL, shapes, &rules), TRAMA_OK);
    free(shapes);
    node_rules_free(&rules);
}
END_TEST

START_TEST(a_count_that_is_none_is_told_apart)
{
    ck_assert_int_eq(trama_shape_count(TRAMA_SHAPE(INT64_MAX, 2)), INT64_MAX);
    ck_assert_int_eq(trama_shape_count(TRAMA_SHAPE(INT64_MAX, 2, 0)), 0);
    ck_assert_int_eq(trama_shape_count(TRAMA_SHAPE(0, INT64_MAX, 2)), 0);
    ck_assert_int_eq(trama_shape_count(TRAMA_SHAPE(INT64_C(1) << 62)), INT64_C(1) << 62);
    ck_assert_int_eq(trama_shape_count(TRAMA_SHAPE(3, TRAMA_ANY)), TRAMA_ANY);
    ck_assert_int_eq(trama_shape_count(TRAMA_SHAPE(3, -2)), 0);
    ck_assert_int_eq(trama_shape_count(by_hand(50, 1)), 0);
    ck_assert_int_eq(trama_shape_count(by_hand(-1, 1)), 0);
    ck_assert_int_eq(trama_shape_of(-3, (int64_t[]){1}).ndim, -1);
    ck_assert(!trama_shape_equal(by_hand(50, 1), by_hand(8, 1)));
}
END_TEST

/* The largest tensors that there are, on plans: nothing overflows on the way (seen by UBSan). */
START_TEST(the_largest_tensors_are_completed_and_planned)
{
    char *words = NULL;
    int64_t n = INT64_C(1) << 28;
    trama_value *a = trama_shard(trama_input(p, "a", TRAMA_F32, TRAMA_SHAPE(n, n)), mesh, "S(0),S(1)");
    trama_value *b = trama_input(p, "b", TRAMA_F32, TRAMA_SHAPE(n, n));
    trama_value *loss = trama_mean(trama_square(trama_matmul(a, b)));
    ck_assert_ptr_nonnull(trama_target_create(p, "t", loss, trama_gradient(loss, b)));
    trama_value *c = trama_shard(trama_input(p, "c", TRAMA_F32, TRAMA_SHAPE(TRAMA_ANY, n)), mesh, "S(0),?");
    trama_value *d = trama_input(p, "d", TRAMA_F32, TRAMA_SHAPE(n, TRAMA_ANY));
    ck_assert_ptr_nonnull(trama_target_create(p, "fed", trama_matmul(trama_matmul(c, d), trama_matmul(c, b))));
    ck_assert_msg(!trama_complete_text(p, INT64_MAX, &words), "%s", trama_error());
    free(words);
    trama_layout from, to;
    trama_reshard_plan *plan = NULL;
    int64_t planned = INT64_C(1) << 40;
    ck_assert(!trama_layout_parse(mesh, 1, "S(0),R", &from) && !trama_layout_parse(mesh, 1, "R,S(0)", &to));
    ck_assert_msg(!trama_reshard_plan_create(mesh, &from, mesh, &to, TRAMA_U8, TRAMA_SHAPE(planned), &plan), "%s",
                  trama_error());
    ck_assert_int_eq(trama_reshard_plan_cost(plan).received, planned / 2);
    trama_reshard_plan_destroy(&plan);
    ck_assert_int_eq(trama_reshard_plan_create(mesh, &from, mesh, &to, TRAMA_U8, TRAMA_SHAPE(MOST_BYTES), &plan),
                     TRAMA_E_MEMORY);
}
END_TEST

/* ---- Shapes by hand, negative numbers ---- */

START_TEST(shapes_with_more_dims_than_there_is_room_for_are_refused)
{
    static const int wrong[] = {9, 50, INT32_MAX, -1, INT32_MIN};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        trama_shape shape = by_hand(wrong[i], 1);
        WRONG(TRAMA_E_SHAPE, "at most 8 dims", trama_input(p, "y", TRAMA_F64, shape));
        WRONG(TRAMA_E_SHAPE, "at most 8 dims", trama_state(p, "y", TRAMA_F64, shape, NULL));
        WRONG(TRAMA_E_SHAPE, "at most 8 dims", trama_constant(p, TRAMA_F64, shape, &(double){1}));
        WRONG(TRAMA_E_SHAPE, "at most 8 dims", trama_reshape(x, shape));
        WRONG(TRAMA_E_SHAPE, "at most 8 dims", trama_fill(p, TRAMA_F64, shape, 1));
        WRONG(TRAMA_E_SHAPE, "at most 8 dims", trama_uniform(p, TRAMA_F64, shape, 0, 1, 0, 0));
        WRONG(TRAMA_E_SHAPE, "each dim", trama_window(x, ((int64_t[]){0, 0}), shape));
    }
}
END_TEST

START_TEST(negative_extents_are_refused)
{
    WRONG(TRAMA_E_SHAPE, "extent -4", trama_reshape(x, TRAMA_SHAPE(-4, -6)));
    WRONG(TRAMA_E_SHAPE, "extent -2", trama_reshape(x, TRAMA_SHAPE(-2, 12)));
    WRONG(TRAMA_E_SHAPE, "is not worked out", trama_reshape(x, TRAMA_SHAPE(-1, 12)));
    WRONG(TRAMA_E_SHAPE, "extent -3", trama_fill(p, TRAMA_F64, TRAMA_SHAPE(2, -3), 0));
}
END_TEST

START_TEST(lists_of_dims_that_are_none_are_refused)
{
    WRONG(TRAMA_E_ARGUMENT, "a list of -1 dims", trama_sum_over(x, -1, ((int[]){0}), false));
    WRONG(TRAMA_E_ARGUMENT, "a list of -1 dims", trama_max_over(x, -1, NULL, true));
    WRONG(TRAMA_E_ARGUMENT, "which is NULL", trama_sum_over(x, 1, NULL, false));
    WRONG(TRAMA_E_SHAPE, "dim 2", trama_mean_over(x, 3, ((int[]){0, 1, 2}), false));
    WRONG(TRAMA_E_SHAPE, "dim 0", trama_mean_over(x, INT32_MAX, ((int[]){0, 0, 1}), false));
    WRONG(TRAMA_E_SHAPE, "dim -2147483648", trama_argmax(x, INT32_MIN));
    WRONG(TRAMA_E_SHAPE, "dim 2147483647", trama_softmax(x, INT32_MAX));
    WRONG(TRAMA_E_SHAPE, "no such dim", trama_pad(x, INT32_MIN, 0, 0));
    WRONG(TRAMA_E_ARGUMENT, "number of values is negative", trama_target_at(TRAMA_HERE, p, "t", -1, &x));
    WRONG(TRAMA_E_ARGUMENT, "list of values is NULL", trama_target_at(TRAMA_HERE, p, "t", 1, NULL));
}
END_TEST

/* ---- Attributes that no builder made ---- */

#define APPLY(op, ...) trama_apply(&trama_op_##op, 1, &x, &((trama_attributes){.integer = __VA_ARGS__}))

START_TEST(attributes_of_trama_apply_are_checked_as_those_of_builders)
{
    WRONG(TRAMA_E_SHAPE, "axes is 4", APPLY(sum, {4}));
    WRONG(TRAMA_E_SHAPE, "axes is -1", APPLY(max, {-1}));
    WRONG(TRAMA_E_SHAPE, "axes is 8", APPLY(argmax, {8}));
    WRONG(TRAMA_E_SHAPE, "axis is 2", APPLY(softmax, {2}));
    WRONG(TRAMA_E_SHAPE, "axis is -1", APPLY(softmax, {-1}));
    WRONG(TRAMA_E_SHAPE, "no permutation of 2 dims", APPLY(transpose, {2, 0, 0}));
    WRONG(TRAMA_E_SHAPE, "no permutation of 2 dims", APPLY(transpose, {3, 0, 1, 2}));
    WRONG(TRAMA_E_SHAPE, "no permutation of 2 dims", APPLY(transpose, {2, 0, 77}));
    WRONG(TRAMA_E_SHAPE, "at most 8 dims", APPLY(reshape, {50, 1, 24}));
    WRONG(TRAMA_E_SHAPE, "extent -4", APPLY(reshape, {2, -4, -6}));
    WRONG(TRAMA_E_SHAPE, "an extent is negative", APPLY(window, {-7, 6}));
    WRONG(TRAMA_E_SHAPE, "beyond 2^60", APPLY(window, {4, INT64_MAX}));
    WRONG(TRAMA_E_DTYPE, "99 is no element type", APPLY(cast, {99}));
    WRONG(TRAMA_E_ARGUMENT, "-1 operands for neg", trama_apply_at(TRAMA_HERE, p, &trama_op_neg, -1, &x, NULL));
    WRONG(TRAMA_E_ARGUMENT, "9 operands for neg", trama_apply(&trama_op_neg, 9, ((trama_value *[9]){x}), NULL));
    trama_attributes source = {.integer = {TRAMA_F32, 50}};
    WRONG(TRAMA_E_SHAPE, "at most 8 dims", trama_apply_at(TRAMA_HERE, p, &trama_op_fill, 0, NULL, &source));
}
END_TEST

/* ---- Layouts ---- */

START_TEST(a_layout_names_dims_that_the_tensor_has)
{
    trama_layout layout;
    static const char *const beyond[] = {"S(50),R", "R,S(2)", "S(0),S(50)[0]", "S(0)[0],S(2)", "[0,1,-1]"};
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(trama_layout_parse(mesh, 2, beyond[i], &layout), TRAMA_E_LAYOUT);
        WRONG(TRAMA_E_LAYOUT, "shard of x", trama_shard(x, mesh, beyond[i]));
        WRONG(TRAMA_E_LAYOUT, "shard_op of neg", trama_shard_op(trama_neg(x), mesh, beyond[i], NULL));
        WRONG(TRAMA_E_LAYOUT, "shard of ", trama_reshard(x, mesh, beyond[i]));
    }
    static const int wrong[] = {9, 50, -1, INT32_MIN};
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(trama_layout_parse(mesh, wrong[i], "S(8),R", &layout), TRAMA_E_LAYOUT);
        ck_assert_ptr_nonnull(strstr(trama_error(), "0 to 8 dims"));
        ck_assert_int_eq(trama_layout_from_mapping(mesh, wrong[i], (int[50]){0}, &layout), TRAMA_E_LAYOUT);
    }
}
END_TEST

START_TEST(a_layout_filled_in_by_hand_is_checked_before_it_is_used)
{
    trama_layout layout = {.naxes = 2, .axis = {{.kind = TRAMA_SPLIT, .dim = 50}, {.kind = TRAMA_REPLICATE}}};
    int64_t offset[TRAMA_MAX_NDIM], extent[TRAMA_MAX_NDIM];
    trama_shape shape = TRAMA_SHAPE(4, 6);
    ck_assert_int_eq(trama_layout_box(mesh, &layout, shape, 0, offset, extent, NULL, NULL), TRAMA_E_LAYOUT);
    ck_assert_ptr_null(trama_layout_text(mesh, &layout));
    layout.axis[0] = (trama_placement){.kind = TRAMA_PARTIAL, .reduce = (trama_reduce)77};
    ck_assert_int_eq(trama_layout_box(mesh, &layout, shape, 0, offset, extent, NULL, NULL), TRAMA_E_LAYOUT);
    ck_assert_ptr_null(trama_layout_text(mesh, &layout));
    layout.axis[0] = (trama_placement){.kind = (trama_placement_kind)77};
    ck_assert_ptr_null(trama_layout_mapping(mesh, 2, &layout));
    layout.axis[0] = (trama_placement){.kind = TRAMA_REPLICATE};
    ck_assert_ptr_null(trama_layout_mapping(mesh, 50, &layout));
    ck_assert_int_eq(trama_layout_box(mesh, &layout, by_hand(50, 1), 0, offset, extent, NULL, NULL), TRAMA_E_SHAPE);
    ck_assert_int_eq(trama_layout_box(mesh, &layout, by_hand(8, half), 0, offset, extent, NULL, NULL), TRAMA_E_SHAPE);
    layout.naxes = 77;
    trama_layout same = layout;
    ck_assert_ptr_null(trama_layout_text(mesh, &layout));
    ck_assert(!trama_layout_equal(&layout, &same));
    ck_assert_int_eq(trama_layout_mask(mesh, 2, NULL, &layout), TRAMA_E_LAYOUT);
}
END_TEST

START_TEST(a_plan_of_a_change_of_layout_refuses_a_shape_that_cannot_be)
{
    trama_layout layout;
    trama_reshard_plan *plan = NULL;
    ck_assert(!trama_layout_parse(mesh, 2, "S(0),R", &layout));
    trama_shape wrong[] = {TRAMA_SHAPE(-2, 3), TRAMA_SHAPE(INT64_MAX, 3), TRAMA_SHAPE(TRAMA_ANY, 3)};
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(trama_reshard_plan_create(mesh, &layout, mesh, &layout, TRAMA_F32, wrong[i], &plan),
                         TRAMA_E_SHAPE);
    ck_assert_int_eq(trama_reshard_plan_create(mesh, &layout, mesh, &layout, (trama_dtype)77, TRAMA_SHAPE(2, 3), &plan),
                     TRAMA_E_DTYPE);
    ck_assert_int_eq(trama_reshard_plan_create(mesh, &layout, mesh, &layout, TRAMA_F32, by_hand(50, 1), &plan),
                     TRAMA_E_LAYOUT);
    ck_assert_ptr_null(plan);
}
END_TEST

/* ---- Memory ---- */

/* 2^57 f64 are a tensor, but nobody's memory. */
START_TEST(a_constant_beyond_the_memory_is_refused_at_its_line)
{
    WRONG(TRAMA_E_MEMORY, "constant: no memory", trama_constant(p, TRAMA_F64, TRAMA_SHAPE(most), &(double){1}));
}
END_TEST

/* 256 MiB are there once, but not twice. */
START_TEST(a_copy_of_a_constant_beyond_the_memory_is_refused)
{
    enum { BYTES = 256 << 20 };
    struct rlimit all, little;
    long pages = 0;
    char *words = NULL;
    if (suite_skips(suite_is_sanitized(), "little memory, beyond which the shadow of a sanitizer is"))
        return;
    void *data = calloc(1, BYTES);
    trama_value *c = trama_constant(p, TRAMA_U8, TRAMA_SHAPE(BYTES), data);
    free(data);
    ck_assert_ptr_nonnull(c);
    FILE *f = fopen("/proc/self/statm", "r");
    ck_assert(f && fscanf(f, "%ld", &pages) == 1 && !getrlimit(RLIMIT_AS, &all));
    fclose(f);
    little = all;
    little.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + BYTES / 2;
    ck_assert(!setrlimit(RLIMIT_AS, &little));
    trama_status status = trama_complete_text(p, 1, &words);
    ck_assert(!setrlimit(RLIMIT_AS, &all));
    ck_assert_int_eq(status, TRAMA_E_MEMORY);
    ck_assert_ptr_nonnull(strstr(trama_error(), "no memory for a copy"));
    ck_assert_int_eq(trama_program_status(p), TRAMA_OK);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        leaves_whose_bytes_cannot_be_counted_are_refused,
        results_whose_bytes_cannot_be_counted_are_refused,
        an_error_of_a_pad_or_a_slice_names_that_call,
        results_of_fed_extents_are_counted_when_they_are_known,
        a_count_that_is_none_is_told_apart,
        the_largest_tensors_are_completed_and_planned,
        shapes_with_more_dims_than_there_is_room_for_are_refused,
        negative_extents_are_refused,
        lists_of_dims_that_are_none_are_refused,
        attributes_of_trama_apply_are_checked_as_those_of_builders,
        a_layout_names_dims_that_the_tensor_has,
        a_layout_filled_in_by_hand_is_checked_before_it_is_used,
        a_plan_of_a_change_of_layout_refuses_a_shape_that_cannot_be,
        a_constant_beyond_the_memory_is_refused_at_its_line,
        a_copy_of_a_constant_beyond_the_memory_is_refused,
    };
    return suite_run("sizes", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
