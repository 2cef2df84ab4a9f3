/* SPDX-License-Identifier: Apache-2.0 */
/* The reverse of each change of layout, in counted bytes: the gradient of a value that is P is R, of S it is S, and of R
 * it stays as it comes until an op needs it. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "simulation.h"
#include "suite.h"
#include "trama_composed.h"
#include "trama_network.h"
#include "trama_ops.h"
#include "trama_optimizer.h"

enum { N = 8, M = N * N * 4 }; /* bytes of each tensor in f32 */

static const trama_init init = {-1, 1, 9, 9};
static trama_program *p;
static trama_mesh *mesh;

static void set_up(void)
{
    p = trama_program_create();
    mesh = trama_mesh_create("2");
}

static void tear_down(void)
{
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
}

static trama_value *parameter(const char *name, trama_shape shape, const char *layout)
{
    trama_value *v = trama_parameter(p, name, TRAMA_F32, shape, &init);
    ck_assert_ptr_nonnull(trama_shard(v, mesh, layout));
    return v;
}

/* The bytes that each of two processes receives in a training step. */
static int64_t received(trama_value *loss)
{
    const trama_optimizer sgd = trama_sgd(0.1);
    trama_target *train = trama_target_create(p, "train", trama_minimize(loss, &sgd), loss);
    ck_assert_msg(train != NULL, "%s", trama_program_error(p));
    machine *m = machine_uniform(2, 1);
    const simulation_options o = {.plan = {.max_tiles = 1, .grain_flops = 1, .grain_bytes = 1}};
    simulation *s = simulation_new(p, m, &o);
    simulation_run(s, train);
    const int64_t bytes = plan_count(simulation_plan(s, 0)).received;
    ck_assert_int_eq(plan_count(simulation_plan(s, 1)).received, bytes);
    simulation_destroy(&s);
    machine_destroy(&m);
    return bytes;
}

/* An intermediate value that lies as said. Terms come from a product whose contracted dim is split; the gradients of
 * its operands need the whole gradient of the product. */
static trama_value *made(const char *layout)
{
    if (strcmp(layout, "P"))
        return trama_relu(parameter("x", TRAMA_SHAPE(N, N), layout));
    trama_value *terms =
        trama_matmul(parameter("a", TRAMA_SHAPE(N, N), "S(1)"), parameter("b", TRAMA_SHAPE(N, N), "S(0)"));
    return trama_shard(terms, mesh, layout);
}

/* A mean of the value. Where it is R, a product whose columns are split reads it, so that its gradient comes as terms. */
static trama_value *read_as(trama_value *y, const char *layout)
{
    if (!strcmp(layout, "R"))
        y = trama_matmul(y, parameter("w", TRAMA_SHAPE(N, N), "S(1)"));
    return trama_mean(trama_square(trama_relu(y)));
}

/* Two processes: S to R, P to S and S(0) to S(1) take M/2, M/2 and M/4 of each, and P to R takes M.
 *
 *   made  read   forward       the gradient comes as          and goes to
 *   R     R      0             P                              R, at the update                 M
 *   R     S(d)   0             S(d)                           R, at the update                 M/2
 *   R     P      M, at relu    R                              R                                0
 *   S(0)  R      M/2           P                              S(0)                             M/2
 *   S(0)  S(0)   0             S(0)                           S(0)                             0
 *   S(0)  S(1)   M/4           S(1)                           S(0)                             M/4
 *   S(0)  P      M, at relu    R                              S(0)                             0
 *   P     R      M             P                              R, since the value is P          M
 *   P     S(d)   M/2           S(d)                           R, since the value is P          M/2
 *   P     P      M, at relu    R                              R                                0 */
START_TEST(the_reverse_of_each_change_of_layout_moves_what_it_must)
{
    static const struct {
        const char *made, *read;
        int64_t bytes;
    } changes[] = {
        {"R", "R", M},           {"R", "S(0)", M / 2},    {"R", "S(1)", M / 2},    {"R", "P", M},
        {"S(0)", "R", M},        {"S(0)", "S(0)", 0},     {"S(0)", "S(1)", M / 2}, {"S(0)", "P", M},
        {"S(1)", "R", M},        {"S(1)", "S(0)", M / 2}, {"S(1)", "S(1)", 0},     {"S(1)", "P", M},
        {"P", "R", 2 * M},       {"P", "S(0)", M},        {"P", "S(1)", M},        {"P", "P", M},
    };
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        trama_value *y = trama_reshard(made(changes[i].made), mesh, changes[i].read);
        const int64_t bytes = received(read_as(y, changes[i].read));
        ck_assert_msg(bytes == changes[i].bytes, "%s to %s and back: %lld bytes, not %lld", changes[i].made,
                      changes[i].read, (long long)bytes, (long long)changes[i].bytes);
        tear_down();
        set_up();
    }
}
END_TEST

/* x [B, T, D] w [D, F] of an uneven batch, or of a split sequence: each process has one term of the gradient of w, and
 * the sum of two takes its bytes. No value has a matrix [D, F] for each of the batch. */
START_TEST(the_gradient_of_a_weight_that_a_batch_shares_is_one_product)
{
    enum { B = 7, T = 5, D = 6, F = 10 };
    static const char *const splits[] = {"S(0)", "S(1)"};
    for (int i = 0; i < 4; i++) {
        const bool turned = i / 2;
        trama_value *x = trama_uniform_fixed(p, TRAMA_F32, TRAMA_SHAPE(B, T, D), -1, 1, 9, 9, 0);
        ck_assert_ptr_nonnull(trama_shard(x, mesh, splits[i % 2]));
        trama_value *w = parameter("w", turned ? TRAMA_SHAPE(F, D) : TRAMA_SHAPE(D, F), "R");
        trama_value *y = trama_matmul_trans(x, w, false, turned);
        ck_assert_int_eq(received(trama_mean(trama_square(y))), D * F * (int64_t)sizeof(float));
        for (int v = 0; v < p->values.n; v++) {
            const trama_shape *shape = &p->values.at[v]->shape;
            ck_assert(shape->ndim < 3 || shape->dim[1] == T);
        }
        tear_down();
        set_up();
    }
}
END_TEST

int main(void)
{
    const TTest *tests[] = {the_reverse_of_each_change_of_layout_moves_what_it_must,
                            the_gradient_of_a_weight_that_a_batch_shares_is_one_product};
    return suite_run("gradient_layouts", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
