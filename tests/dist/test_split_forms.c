/* SPDX-License-Identifier: Apache-2.0 */
/* Ops along a dim that is split: each process reduces its part, and no element moves but rows of a reshape at a border.
 * Results are those of naive loops over the whole tensor; bytes are those of sums of lines. */
#include <check.h>
#include <stdio.h>

#include "pair.h"
#include "suite.h"
#include "trama_array.h"
#include "trama_composed.h"
#include "trama_network.h"
#include "trama_ops.h"
#include "trama_optimizer.h"

typedef trama_value *builder(trama_value *x);

/* An op of x [5, 37] f64, split along dim 1 over 2 processes, of which a result is a line or x-like. */
typedef struct row {
    const char *name;
    builder *build;
    int evaluate, train; /* elements that a process receives at most; train 0: it has no gradient */
} row;

enum { LINES = 5, LENGTH = 37 };

static trama_value *softmax(trama_value *x)
{
    return trama_softmax(x, 1);
}

static trama_value *layer_norm(trama_value *x)
{
    return trama_layer_norm(x, 1, NULL, NULL, 1e-5);
}

static trama_value *rms_norm(trama_value *x)
{
    return trama_rms_norm(x, 1, NULL, 1e-5);
}

static trama_value *cross_entropy(trama_value *x)
{
    trama_value *labels = trama_cast(trama_arange(x->program, TRAMA_F64, x->shape.dim[0], 0, 0.5), TRAMA_I64);
    return trama_cross_entropy(x, labels);
}

static trama_value *argmax(trama_value *x)
{
    return trama_argmax(trama_round(x), 1);
}

static trama_value *argmin_last(trama_value *x)
{
    return trama_argmin_last(trama_round(x), 1, true);
}

static trama_value *prod(trama_value *x)
{
    return trama_prod_over(x, TRAMA_DIMS(1), false);
}

static trama_value *prod_of_all(trama_value *x)
{
    return trama_prod(trama_scale(x, 1.5));
}

static trama_value *cumsum(trama_value *x)
{
    return trama_cumsum(x, 1);
}

static trama_value *cumsum_reverse(trama_value *x)
{
    return trama_cumsum_over(x, 1, true, true);
}

static trama_value *cumprod(trama_value *x)
{
    return trama_cumprod_over(x, 1, true, false);
}

/* y_i = x_i + sin(x_i) y_(i-1), and in the other direction */
static trama_value *recurrence(trama_value *x)
{
    return trama_recurrence(trama_sin(x), x, 1, false);
}

static trama_value *recurrence_reverse(trama_value *x)
{
    return trama_recurrence(trama_sin(x), x, 1, true);
}

/* Elements, of which some may be infinite, and their places. */
static trama_value *with_places(trama_value *best)
{
    return trama_add(trama_tanh(best), trama_cast(trama_result(best, 1), TRAMA_F64));
}

static trama_value *cummax(trama_value *x)
{
    return with_places(trama_cummax(trama_round(x), 1));
}

static trama_value *cummin_exclusive(trama_value *x)
{
    return with_places(trama_cummin_over(trama_round(x), 1, true, false));
}

static trama_value *cummax_reverse(trama_value *x)
{
    return with_places(trama_cummax_over(trama_slice(x, 1, 0, x->shape.dim[1] / 12 * 12), 1, true, true));
}

static trama_value *cummax_of_x(trama_value *x)
{
    return with_places(trama_cummax(x, 1));
}

static trama_value *top_2(trama_value *x)
{
    return with_places(trama_top_k(trama_round(x), min_i64(2, x->shape.dim[1]), 1, true));
}

static trama_value *least_2(trama_value *x)
{
    return with_places(trama_top_k(x, min_i64(2, x->shape.dim[1]), 1, false));
}

/* [LENGTH, LINES] split by rows; the pieces of its elements in a row are no whole rows. */
static trama_value *merged(trama_value *x)
{
    return trama_flatten(trama_transpose(x, NULL), 0, 1);
}

static trama_value *merged_and_divided(trama_value *x)
{
    const trama_shape shape = TRAMA_SHAPE(x->shape.dim[1], 1, x->shape.dim[0]);
    return trama_reshape(trama_sin(merged(x)), shape);
}

/* A change from terms to their sum over 2 processes takes one number a line. A row of a reshape has LINES numbers. */
static const row rows[] = {
    {"softmax", softmax, 2 * LINES, 3 * LINES},
    {"layer norm", layer_norm, 2 * LINES, 4 * LINES},
    {"rms norm", rms_norm, LINES, 2 * LINES},
    {"cross_entropy", cross_entropy, 3 * LINES, 5 * LINES},
    {"argmax", argmax, 2 * LINES, 0},
    {"argmin_last", argmin_last, 2 * LINES, 0},
    {"prod", prod, LINES, 5 * LINES},
    {"prod of all", prod_of_all, 4, 0},
    {"cumsum", cumsum, 2 * LINES, 4 * LINES},
    {"cumsum, exclusive and reverse", cumsum_reverse, 2 * LINES, 4 * LINES},
    {"cumprod, exclusive", cumprod, 2 * LINES, 8 * LINES},
    {"cummax", cummax, 3 * LINES, 0},
    {"cummax of x", cummax_of_x, 3 * LINES, (LENGTH + 3) * LINES}, /* its gradient adds to elements of other parts */
    {"cummin, exclusive", cummin_exclusive, 3 * LINES, 0},
    {"cummax, exclusive and reverse", cummax_reverse, 3 * LINES, 0},
    {"top_k", top_2, 6 * LINES, 0},
    {"top_k, the least", least_2, 6 * LINES, 8 * LINES},
    {"recurrence", recurrence, 3 * LINES, 12 * LINES},
    {"recurrence, reverse", recurrence_reverse, 3 * LINES, 12 * LINES},
    {"reshape that merges", merged, LINES, 2 * LINES},
    {"reshape that merges and divides", merged_and_divided, 2 * LINES, 4 * LINES},
};
enum { ROWS = sizeof rows / sizeof *rows };

/* ---- Programs ---- */

typedef struct network {
    trama_program *p;
    trama_mesh *mesh;
    trama_target *evaluate, *train;
} network;

/* Weights make the results of a line matter each for itself. */
static network network_of(const row *r, const char *mesh, const char *layout, trama_shape shape)
{
    static const trama_init init = {-2, 2, 9, 9};
    network n = {.p = trama_program_create(), .mesh = trama_mesh_create(mesh)};
    trama_value *x = trama_parameter(n.p, "x", TRAMA_F64, shape, &init);
    ck_assert_msg(trama_shard(x, n.mesh, layout) != NULL, "%s", trama_error());
    trama_value *y = r->build(x);
    n.evaluate = trama_target_create(n.p, "evaluate", y);
    if (r->train) {
        trama_optimizer sgd = trama_sgd(0.1);
        trama_value *loss = trama_sum(trama_square(trama_sin(y)));
        n.train = trama_target_create(n.p, "train", trama_minimize(loss, &sgd));
    }
    ck_assert_msg(!trama_program_status(n.p), "%s: %s", r->name, trama_program_error(n.p));
    return n;
}

static void network_free(network *n)
{
    trama_program_destroy(&n->p);
    trama_mesh_destroy(&n->mesh);
}

/* The most bytes that a rank receives. */
static int64_t received(const network *n, const trama_target *t)
{
    const int ranks = trama_mesh_size(n->mesh);
    machine *m = machine_uniform(ranks, 1);
    simulation_options o = {.plan = {.max_tiles = 1, .grain_flops = 1, .grain_bytes = 1}};
    simulation *s = simulation_new(n->p, m, &o);
    int64_t most = 0;
    simulation_run(s, t);
    for (int r = 0; r < ranks; r++)
        most = plan_count(simulation_plan(s, r)).received > most ? plan_count(simulation_plan(s, r)).received : most;
    simulation_destroy(&s);
    machine_destroy(&m);
    return most;
}

/* ---- Tests ---- */

START_TEST(a_split_dim_costs_numbers_of_lines_or_a_row)
{
    for (const row *r = rows; r < rows + ROWS; r++) {
        network n = network_of(r, "mp=2", "S(1)", TRAMA_SHAPE(LINES, LENGTH));
        ck_assert_msg(received(&n, n.evaluate) <= 8 * r->evaluate, "%s: %lld bytes", r->name,
                      (long long)received(&n, n.evaluate));
        if (n.train)
            ck_assert_msg(received(&n, n.train) <= 8 * r->train, "%s: %lld bytes in training", r->name,
                          (long long)received(&n, n.train));
        network_free(&n);
    }
}
END_TEST

/* Uneven pieces, more processes than elements, empty tensors, two axes along one dim, replicas. */
START_TEST(results_are_those_of_one_device)
{
    static const struct {
        const char *mesh, *layout;
        trama_shape shape;
    } cases[] = {
        {"mp=2", "S(1)", {2, {5, 37}}},       {"mp=3", "S(1)", {2, {3, 11}}},    {"mp=4", "S(1)", {2, {2, 3}}},
        {"mp=5", "S(1)", {2, {7, 2}}},        {"2,2", "S(1),S(1)", {2, {3, 7}}}, {"2,3", "S(0),S(1)", {2, {5, 13}}},
        {"mp=[3,1,2]", "S(1)", {2, {3, 17}}}, {"mp=3", "S(1)", {2, {0, 7}}},     {"mp=2", "S(1)", {2, {4, 1}}},
        {"2,2", "S(1),R", {2, {3, 9}}},
    };
    for (int i = 0; i < ROWS * (int)(sizeof cases / sizeof *cases); i++) {
        const row *r = &rows[i % ROWS];
        char name[80];
        network n = network_of(r, cases[i / ROWS].mesh, cases[i / ROWS].layout, cases[i / ROWS].shape);
        snprintf(name, sizeof name, "%s on %s as %s", r->name, cases[i / ROWS].mesh, cases[i / ROWS].layout);
        pair_try(n.p, n.evaluate, 0, NULL, NULL, 3, 1e-10, name);
        if (n.train)
            pair_try(n.p, n.train, 0, NULL, NULL, 2, 1e-10, name);
        network_free(&n);
    }
}
END_TEST

int main(void)
{
    const TTest *tests[] = {a_split_dim_costs_numbers_of_lines_or_a_row, results_are_those_of_one_device};
    return suite_run("split_forms", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
