/* SPDX-License-Identifier: Apache-2.0 */
/* Reshapes that merge and divide dims of which the first is split: results of one device, and bytes of rows at
 * borders alone. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"
#include "suite.h"
#include "trama_complete.h"
#include "trama_composed.h"
#include "trama_op_define.h"
#include "trama_ops.h"
#include "trama_optimizer.h"

/* A batch of rows of 4 x 3 and a layer over its last dim: the rows are merged before it and divided behind it. */
typedef struct network {
    trama_program *p;
    trama_mesh *mesh;
    trama_value *x;
    trama_target *evaluate, *train;
} network;

static network network_of(const char *mesh, const char *layout, int64_t batch)
{
    static const trama_init init = {-1, 1, 9, 9};
    network n = {.p = trama_program_create(), .mesh = trama_mesh_create(mesh)};
    n.x = trama_input(n.p, "x", TRAMA_F64, TRAMA_SHAPE(batch, 4, 3));
    ck_assert_msg(trama_shard(n.x, n.mesh, layout) != NULL, "%s", trama_error());
    trama_value *w = trama_parameter(n.p, "w", TRAMA_F64, TRAMA_SHAPE(3, 5), &init);
    trama_value *flat = trama_reshape(n.x, TRAMA_SHAPE(batch == TRAMA_ANY ? batch : 4 * batch, 3));
    trama_value *y = trama_reshape(trama_tanh(trama_matmul(flat, w)), TRAMA_SHAPE(batch, 2, 10));
    n.evaluate = trama_target_create(n.p, "evaluate", y);
    trama_optimizer sgd = trama_sgd(0.1);
    trama_value *loss = trama_mean(trama_mul(y, trama_add_scalar(y, 0.5)));
    n.train = trama_target_create(n.p, "train", trama_minimize(loss, &sgd), loss);
    ck_assert_msg(!trama_program_status(n.p), "%s", trama_program_error(n.p));
    return n;
}

static void network_free(network *n)
{
    trama_program_destroy(&n->p);
    trama_mesh_destroy(&n->mesh);
}

/* Runs the target on ranks that have one place each, checks it, and returns the bytes that all of them receive. */
static int64_t received(const trama_program *p, const trama_target *t, int ranks, trama_value *x, trama_shape fed)
{
    machine *m = simulation_machine(ranks, 1, 2);
    pair both = pair_new(p, m, &(simulation_options){.plan = {.grain_flops = 1, .grain_bytes = 1}}, "rows");
    dense data = dense_random(fed, 3, -1, 1, false);
    pair_feed(&both, x, &data);
    pair_run(&both, t, 1e-12);
    const int64_t bytes = simulation_traffic(both.many).bytes;
    dense_free(&data);
    pair_free(&both);
    machine_destroy(&m);
    return bytes;
}

/* Known and fed batches, even and uneven, fewer rows than processes, weights, two axes along one dim. */
START_TEST(results_are_those_of_one_device)
{
    static const struct {
        const char *mesh, *layout;
    } ways[] = {{"2", "S(0)"}, {"3", "S(0)"}, {"2,2", "S(0),S(0)"}, {"2,2", "S(0),S(1)"}, {"[1,3]", "S(0)"}};
    static const int64_t batches[] = {7, 8, 1, 2, 0, 12};
    for (int i = 0; i < 5 * 6 * 2; i++) {
        const int64_t batch = batches[i / 5 % 6];
        char name[80];
        network n = network_of(ways[i % 5].mesh, ways[i % 5].layout, i >= 30 ? TRAMA_ANY : batch);
        dense data = dense_random(TRAMA_SHAPE(batch, 4, 3), 3, -1, 1, false);
        snprintf(name, sizeof name, "%lld of %s on %s as %s", (long long)batch, i >= 30 ? "any" : "as many",
                 ways[i % 5].mesh, ways[i % 5].layout);
        pair_try(n.p, n.evaluate, 1, &n.x, &data, 3, 1e-12, name);
        if (batch)
            pair_try(n.p, n.train, 1, &n.x, &data, 3, 1e-12, name);
        dense_free(&data);
        network_free(&n);
    }
}
END_TEST

/* Of 7 rows over 2 processes the first holds 4, which are 16 of 28 merged ones: the second needs 2 of them, and
 * receives the row that has them, 12 numbers. It divides its 14 merged rows behind the layer: 4 rows of the result are
 * 16, so the first needs 2 merged rows of 5 numbers. An even batch moves nothing. */
START_TEST(neighbours_exchange_rows_at_borders_only)
{
    static const struct {
        int64_t batch, bytes;
        bool fed;
    } cases[] = {
        {7, 8 * (12 + 10), false}, {8, 0, false}, {7, 8 * (12 + 10), true}, {8, 0, true}, {1, 8 * (12 + 10), true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        network n = network_of("2", "S(0)", cases[i].fed ? TRAMA_ANY : cases[i].batch);
        const int64_t bytes = received(n.p, n.evaluate, 2, n.x, TRAMA_SHAPE(cases[i].batch, 4, 3));
        ck_assert_msg(bytes == cases[i].bytes, "%lld rows: %lld bytes", (long long)cases[i].batch, (long long)bytes);
        network_free(&n);
    }
}
END_TEST

/* Dims 0 and 1 are merged, and so are dims 2 and 3. The split of dim 1 is gathered. That of dim 2 stays: 4 and 3 rows
 * of 16. */
START_TEST(a_split_that_cannot_stay_does_not_hide_one_that_can)
{
    trama_mesh *mesh = trama_mesh_create("2,2");
    trama_program *p = trama_program_create();
    const trama_shape shape = TRAMA_SHAPE(4, 6, 7, 16);
    trama_value *x = trama_shard(trama_input(p, "x", TRAMA_F64, shape), mesh, "S(1),S(2)");
    trama_target *t = trama_target_create(p, "t", trama_reshape(x, TRAMA_SHAPE(24, 112)));
    const int64_t all = 8 * trama_shape_count(shape), gathered = all * 3;
    ck_assert_int_lt(received(p, t, 4, x, shape), gathered / 2);
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
}
END_TEST

/* Rows of 64 are merged into 64 times as many, so that they are more than the weight, which is gathered. */
START_TEST(a_merged_extent_counts_as_a_multiple_of_the_nominal_one)
{
    trama_mesh *mesh = trama_mesh_create("2");
    trama_program *p = trama_program_create();
    trama_completion *c;
    trama_layout layout;
    trama_value *x = trama_shard(trama_input(p, "x", TRAMA_F32, TRAMA_SHAPE(TRAMA_ANY, 64, 8)), mesh, "S(0)");
    trama_value *w = trama_shard(trama_parameter(p, "w", TRAMA_F32, TRAMA_SHAPE(8, 16), NULL), mesh, "S(0)");
    trama_value *y = trama_matmul(trama_reshape(x, TRAMA_SHAPE(TRAMA_ANY, 8)), w);
    trama_target_create(p, "t", y, trama_reshape(y, TRAMA_SHAPE(TRAMA_ANY, 32, 32)));
    ck_assert_msg(!trama_completion_create(p, 4, &c), "%s", trama_error());
    ck_assert(trama_completion_layout(c, y, &layout));
    ck_assert(layout.axis[0].kind == TRAMA_SPLIT && layout.axis[0].dim == 0);
    trama_completion_destroy(&c);
    ck_assert_int_eq(value_nominal_shape(y, 4).dim[0], 256);
    ck_assert_int_eq(value_nominal_shape(p->targets.at[0]->values.at[1], 4).dim[0], 4);
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
}
END_TEST

/* A known dim comes before the fed one: a split of it passes where they are merged, and is gathered where the merged
 * ones are divided. */
START_TEST(fed_dims_behind_others_are_merged_and_divided)
{
    for (int i = 0; i < 2 * 3; i++) {
        trama_mesh *mesh = trama_mesh_create("2");
        trama_program *p = trama_program_create();
        const int64_t fed = 2 * (i / 2) + 1;
        trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(4, TRAMA_ANY, 3));
        trama_shard(x, mesh, i % 2 ? "S(0)" : "S(2)");
        trama_value *flat = trama_sin(trama_reshape(x, TRAMA_SHAPE(TRAMA_ANY, 3)));
        trama_target *t = trama_target_create(p, "t", flat, trama_reshape(flat, TRAMA_SHAPE(2, TRAMA_ANY, 2, 3)));
        dense data = dense_random(TRAMA_SHAPE(4, fed, 3), 3, -1, 1, false);
        pair_try(p, t, 1, &x, &data, 3, 1e-12, "behind");
        dense_free(&data);
        trama_program_destroy(&p);
        trama_mesh_destroy(&mesh);
    }
}
END_TEST

/* x [any, any, 3] in rows, a layer over them, and its rows as x has them; `straight` never merges them. */
static network fed_network(const char *mesh, const char *layout, trama_value **difference)
{
    static const trama_init init = {-1, 1, 9, 9};
    network n = {.p = trama_program_create(), .mesh = trama_mesh_create(mesh)};
    n.x = trama_input(n.p, "x", TRAMA_F64, TRAMA_SHAPE(TRAMA_ANY, TRAMA_ANY, 3));
    ck_assert_msg(trama_shard(n.x, n.mesh, layout) != NULL, "%s", trama_error());
    trama_value *w = trama_parameter(n.p, "w", TRAMA_F64, TRAMA_SHAPE(3, 5), &init);
    trama_value *rows = trama_tanh(trama_matmul(trama_reshape(n.x, TRAMA_SHAPE(TRAMA_ANY, 3)), w));
    trama_value *y = trama_reshape_like(rows, TRAMA_SHAPE(TRAMA_ANY, TRAMA_ANY, 5), n.x);
    *difference = trama_sub(y, trama_tanh(trama_matmul(n.x, w)));
    n.evaluate = trama_target_create(n.p, "evaluate", y);
    trama_optimizer sgd = trama_sgd(0.1);
    trama_value *loss = trama_sum(trama_mul(y, trama_sin(y)));
    n.train = trama_target_create(n.p, "train", trama_minimize(loss, &sgd), loss, *difference);
    ck_assert_msg(!trama_program_status(n.p), "%s", trama_program_error(n.p));
    return n;
}

static const struct {
    const char *mesh, *layout;
} fed_ways[] = {{"2", "S(0)"},        {"3", "S(0)"},        {"2", "S(1)"},
                {"2,2", "S(0),S(1)"}, {"2,2", "S(0),S(0)"}, {"[1,3]", "S(0)"}};

/* That v is 0 wherever x has rows. */
static void check_zeros(const trama_program *p, const trama_target *t, const trama_value *x, const dense *data,
                        const trama_value *v)
{
    single *one = single_new(p);
    single_feed(one, x, data);
    single_run(one, t);
    const dense *zeros = single_value(one, v);
    for (int d = 0; d < 2; d++)
        ck_assert_int_eq(zeros->shape.dim[d], data->shape.dim[d]);
    for (int64_t i = 0; i < trama_shape_count(zeros->shape); i++)
        ck_assert_msg(fabs(zeros->at[i]) < 1e-12, "element %lld differs by %g", (long long)i, zeros->at[i]);
    single_destroy(&one);
}

START_TEST(several_fed_dims_are_merged_and_divided_again)
{
    static const int64_t fed[][2] = {{7, 4}, {2, 6}, {1, 1}, {8, 3}, {0, 4}, {5, 0}};
    for (int i = 0; i < 6 * 6; i++) {
        trama_value *difference;
        char name[80];
        network n = fed_network(fed_ways[i % 6].mesh, fed_ways[i % 6].layout, &difference);
        const int64_t *extent = fed[i / 6];
        dense data = dense_random(TRAMA_SHAPE(extent[0], extent[1], 3), 3, -1, 1, false);
        snprintf(name, sizeof name, "%lld x %lld on %s as %s", (long long)extent[0], (long long)extent[1],
                 fed_ways[i % 6].mesh, fed_ways[i % 6].layout);
        pair_try(n.p, n.evaluate, 1, &n.x, &data, 3, 1e-12, name);
        pair_try(n.p, n.train, 1, &n.x, &data, 3, 1e-12, name);
        check_zeros(n.p, n.train, n.x, &data, difference);
        dense_free(&data);
        network_free(&n);
    }
}
END_TEST

/* As neighbours_exchange_rows_at_borders_only has it, where both extents are fed. */
START_TEST(merged_fed_dims_exchange_rows_at_borders_only)
{
    static const int64_t cases[][3] = {{7, 4, 8 * (12 + 10)}, {8, 4, 0}, {2, 5, 0}, {1, 2, 8 * (2 * 3 + 1 * 5)}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        trama_value *difference;
        network n = fed_network("2", "S(0)", &difference);
        const int64_t bytes = received(n.p, n.evaluate, 2, n.x, TRAMA_SHAPE(cases[i][0], cases[i][1], 3));
        ck_assert_msg(bytes == cases[i][2], "%lld x %lld: %lld bytes", (long long)cases[i][0], (long long)cases[i][1],
                      (long long)bytes);
        network_free(&n);
    }
}
END_TEST

/* [a, 2, b, 3]: dims 0 and 1, 1 and 2, or 0 to 2 become one, and gradients go back. Three fed dims become one. */
START_TEST(fed_dims_are_flattened_beside_others)
{
    static const int dims[][2] = {{0, 1}, {1, 2}, {0, 2}, {2, 3}, {0, 3}};
    for (int i = 0; i < 2 * 5; i++) {
        trama_mesh *mesh = trama_mesh_create("2");
        trama_program *p = trama_program_create();
        trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(TRAMA_ANY, 2, TRAMA_ANY, 3));
        trama_shard(x, mesh, i % 2 ? "S(0)" : "S(2)");
        trama_value *flat = trama_flatten(x, dims[i / 2][0], dims[i / 2][1]);
        trama_value *d = trama_gradient(trama_sum(trama_mul(trama_sin(flat), flat)), x);
        trama_value *straight = trama_add(trama_sin(x), trama_mul(x, trama_cos(x))), *off = trama_sub(d, straight);
        trama_target *t = trama_target_create(p, "t", flat, d, off);
        ck_assert_msg(!trama_program_status(p), "%s", trama_program_error(p));
        dense data = dense_random(TRAMA_SHAPE(5, 2, 3, 3), 3, -1, 1, false);
        pair_try(p, t, 1, &x, &data, 3, 1e-12, "flattened");
        check_zeros(p, t, x, &data, off);
        dense_free(&data);
        trama_program_destroy(&p);
        trama_mesh_destroy(&mesh);
    }
}
END_TEST

#define REFUSED(made, words)                                                                                           \
    do {                                                                                                               \
        ck_assert_ptr_null(made);                                                                                      \
        ck_assert_msg(strstr(trama_program_error(p), words) != NULL, "%s", trama_program_error(p));                    \
        trama_program_clear_error(p);                                                                                  \
    } while (0)

START_TEST(fed_dims_that_do_not_fit_are_refused)
{
    trama_program *p = trama_program_create();
    trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(TRAMA_ANY, TRAMA_ANY, 6)),
                *rows = trama_input(p, "rows", TRAMA_F64, TRAMA_SHAPE(TRAMA_ANY, 6)),
                *heads = trama_input(p, "heads", TRAMA_F64, TRAMA_SHAPE(TRAMA_ANY, 2, TRAMA_ANY, 3));
    REFUSED(trama_reshape(x, TRAMA_SHAPE(6)), "is not worked out");
    REFUSED(trama_reshape(x, TRAMA_SHAPE(TRAMA_ANY, 5)), "mixes a fed dim");
    REFUSED(trama_reshape(rows, TRAMA_SHAPE(TRAMA_ANY, TRAMA_ANY, 6)), "trama_reshape_like takes");
    REFUSED(trama_reshape(heads, TRAMA_SHAPE(TRAMA_ANY, TRAMA_ANY, 3)), "trama_flatten");
    REFUSED(trama_reshape_like(rows, TRAMA_SHAPE(TRAMA_ANY, TRAMA_ANY, 6), rows), "with as many of them");
    REFUSED(trama_reshape_like(rows, TRAMA_SHAPE(12), rows), "with as many of them");
    REFUSED(trama_reshape_like(heads, TRAMA_SHAPE(TRAMA_ANY, TRAMA_ANY, 6), heads), "merges or divides some");
    trama_value *y = trama_reshape_like(rows, TRAMA_SHAPE(TRAMA_ANY, TRAMA_ANY, 3, 2), x);
    ck_assert_msg(y != NULL, "%s", trama_program_error(p));
    static const struct {
        int64_t rows, like[2];
        const char *words;
    } fed[] = {{12, {3, 4}, NULL},
               {12, {4, 3}, NULL},
               {0, {0, 7}, NULL},
               {0, {7, 0}, NULL},
               {12, {3, 5}, "3 times"},
               {12, {5, 0}, "times 0"},
               {1, {INT64_C(1) << 29, INT64_C(1) << 26}, "times"}};
    for (size_t i = 0; i < sizeof fed / sizeof *fed; i++) {
        trama_shape *shapes = calloc((size_t)p->values.n, sizeof *shapes);
        node_rules rules = node_rules_new(p->nodes.n);
        shapes[rows->id] = TRAMA_SHAPE(fed[i].rows, 6);
        shapes[x->id] = TRAMA_SHAPE(fed[i].like[0], fed[i].like[1], 6);
        shapes[heads->id] = TRAMA_SHAPE(1, 2, 1, 3);
        const trama_status status = program_resolve(p, NULL, shapes, &rules);
        ck_assert_int_eq(status, fed[i].words ? TRAMA_E_SHAPE : TRAMA_OK);
        ck_assert_msg(!status || strstr(trama_error(), fed[i].words), "%s", trama_error());
        if (!status)
            ck_assert(trama_shape_equal(shapes[y->id], TRAMA_SHAPE(fed[i].like[0], fed[i].like[1], 3, 2)));
        node_rules_free(&rules);
        free(shapes);
    }
    trama_program_destroy(&p);
}
END_TEST

/* Cuts that a user gives where the elements before them are not as many. */
START_TEST(cuts_that_do_not_fit_are_refused)
{
    static const struct {
        trama_shape in, out;
        int64_t cuts;
        bool taken;
    } cases[] = {{{2, {2, 1}}, {1, {2}}, RESHAPE_CUT(1, 1), false},
                 {{3, {3, 0, 4}}, {3, {3, 5, 0}}, RESHAPE_CUT(1, 1) | RESHAPE_CUT(2, 2), true},
                 {{8, {3, 3, 3, 3, 3, 3, 0, 4}}, {8, {3, 3, 3, 3, 3, 3, 5, 0}}, -1, true},
                 {{2, {4, 3}}, {3, {2, 2, 3}}, RESHAPE_CUT(1, 2), true},
                 {{2, {4, 3}}, {3, {2, 2, 3}}, RESHAPE_CUT(1, 1), false}};
    trama_program *p = trama_program_create();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[8];
        snprintf(name, sizeof name, "x%zu", i);
        trama_value *x = trama_input(p, name, TRAMA_F64, cases[i].in);
        trama_attributes a = {.integer = {[SHAPE_NDIM] = cases[i].out.ndim, [RESHAPE_CUTS] = cases[i].cuts}};
        memcpy(&a.integer[SHAPE_DIM], cases[i].out.dim, sizeof cases[i].out.dim);
        trama_value *y = trama_apply(trama_op_find("reshape"), 1, &x, &a);
        ck_assert_msg((y != NULL) == cases[i].taken, "case %zu: %s", i, trama_program_error(p));
        ck_assert(!y || trama_shape_equal(trama_value_shape(y), cases[i].out));
        if (!y)
            trama_program_clear_error(p);
    }
    trama_program_destroy(&p);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        results_are_those_of_one_device,
        neighbours_exchange_rows_at_borders_only,
        a_split_that_cannot_stay_does_not_hide_one_that_can,
        a_merged_extent_counts_as_a_multiple_of_the_nominal_one,
        fed_dims_behind_others_are_merged_and_divided,
        several_fed_dims_are_merged_and_divided_again,
        merged_fed_dims_exchange_rows_at_borders_only,
        fed_dims_are_flattened_beside_others,
        fed_dims_that_do_not_fit_are_refused,
        cuts_that_do_not_fit_are_refused,
    };
    return suite_run("reshape", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
