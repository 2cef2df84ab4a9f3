/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that do not record the same: programs are compared when they are compiled, and all ranks are told the same. */
#include "disagreement.h"

static trama_value *range(trama_program *p, const trama_mesh *mesh, trama_value *x, bool other)
{
    return trama_matmul(x,
                        parameter(p, "w", (trama_init){.low = -1, .high = other ? 1.0000000000000002 : 1, .seed = 7}));
}

static trama_value *stream(trama_program *p, const trama_mesh *mesh, trama_value *x, bool other)
{
    return trama_matmul(x, parameter(p, "w", (trama_init){.low = -1, .high = 1, .stream = other}));
}

static trama_value *first_number(trama_program *p, const trama_mesh *mesh, trama_value *x, bool other)
{
    return trama_matmul(x, parameter(p, "w", (trama_init){.low = 2 + other, .high = 2 + other}));
}

static trama_value *content(trama_program *p, const trama_mesh *mesh, trama_value *x, bool other)
{
    double numbers[4][4] = {{0}};
    numbers[3][3] = other ? 1e-300 : 0;
    return trama_matmul(x, trama_constant(p, TRAMA_F64, TRAMA_SHAPE(4, 4), numbers));
}

static trama_value *attribute(trama_program *p, const trama_mesh *mesh, trama_value *x, bool other)
{
    return trama_scale(x, other ? 0.25 : 0.5);
}

static trama_value *permutation(trama_program *p, const trama_mesh *mesh, trama_value *x, bool other)
{
    trama_value *cube = parameter(p, "w", (trama_init){.high = 1});
    cube = trama_reshape(trama_mul(x, cube), TRAMA_SHAPE(1, 2, 2, 4));
    const int as_it_is[] = {0, 1, 2, 3}, turned[] = {0, 2, 1, 3};
    return trama_transpose(cube, other ? turned : as_it_is);
}

static trama_value *random_seed(trama_program *p, const trama_mesh *mesh, trama_value *x, bool other)
{
    trama_value *noise = trama_uniform_fixed(p, TRAMA_F64, TRAMA_SHAPE(4, 4), 0, 1, other ? 3 : 2, 1, 0);
    return trama_mul(x, noise);
}

static trama_value *annotation(trama_program *p, const trama_mesh *mesh, trama_value *x, bool other)
{
    return trama_shard(trama_relu(x), mesh, other ? "S(1)" : "S(0)");
}

static trama_value *fixed(trama_program *p, const trama_mesh *mesh, trama_value *x, bool other)
{
    return trama_shard_op(trama_relu(x), mesh, other ? "S(1)" : "S(0)", NULL);
}

static trama_value *order(trama_program *p, const trama_mesh *mesh, trama_value *x, bool other)
{
    const int up[] = {0, 1}, down[] = {1, 0};
    must(trama_order(p, 2, other ? down : up));
    return trama_relu(x);
}

static trama_value *kind_of_op(trama_program *p, const trama_mesh *mesh, trama_value *x, bool other)
{
    return other ? trama_relu(x) : trama_tanh(x);
}

static trama_value *trainable(trama_program *p, const trama_mesh *mesh, trama_value *x, bool other)
{
    return trama_matmul(x, other ? trama_state(p, "w", TRAMA_F64, TRAMA_SHAPE(4, 4), NULL)
                                 : trama_parameter(p, "w", TRAMA_F64, TRAMA_SHAPE(4, 4), NULL));
}

static trama_value *longer(trama_program *p, const trama_mesh *mesh, trama_value *x, bool other)
{
    trama_value *y = trama_relu(x);
    if (other)
        trama_tanh(y);
    return y;
}

static double constant_factor(int64_t n, const double *numbers)
{
    return numbers[0];
}

static double other_factor(int64_t n, const double *numbers)
{
    return numbers[0] + 0 * (double)n;
}

static trama_value *minimized(trama_program *p, trama_value *x, trama_schedule schedule)
{
    trama_value *w = trama_parameter(p, "w", TRAMA_F64, TRAMA_SHAPE(4, 4), NULL);
    trama_optimizer sgd = trama_sgd(0.1);
    sgd.schedule = schedule;
    return trama_minimize(trama_mean(trama_square(trama_matmul(x, w))), &sgd);
}

static trama_value *numbers_of_schedule(trama_program *p, const trama_mesh *mesh, trama_value *x, bool other)
{
    return minimized(p, x, (trama_schedule){.factor = constant_factor, .numbers = {1, other}});
}

static trama_value *merged(trama_program *p, trama_value *x, int64_t k, unsigned how)
{
    trama_value *effect = minimized(p, x, trama_schedule_constant(0));
    trama_gradient_merge(trama_target_create(p, "merging", effect), k, how);
    return trama_relu(x);
}

static trama_value *merge_length(trama_program *p, const trama_mesh *mesh, trama_value *x, bool other)
{
    return merged(p, x, other ? 3 : 2, TRAMA_MERGE_AVG);
}

static trama_value *merge_kind(trama_program *p, const trama_mesh *mesh, trama_value *x, bool other)
{
    return merged(p, x, 2, other ? TRAMA_MERGE_AVG | TRAMA_MERGE_SYNC_EACH : TRAMA_MERGE_AVG);
}

static trama_status nothing(const trama_call *call)
{
    return TRAMA_OK;
}

static trama_value *own_rule(trama_program *p, const trama_mesh *mesh, trama_value *x, bool other)
{
    trama_op_definition d = {
        .name = "mine", .n_in = 1, .n_out = 1, .rule = other ? "[i]j->[i]j" : "ij->ij", .cpu = nothing};
    must(trama_op_define(&d, &own));
    return trama_apply(own, 1, &x, NULL);
}

/* As all ranks have it, but at another line and with another callback: the same program. */
static trama_value *only_addresses(trama_program *p, const trama_mesh *mesh, trama_value *x, bool other)
{
    if (other)
        return minimized(p, x, (trama_schedule){.factor = other_factor, .numbers = {1}});
    return minimized(p, x, (trama_schedule){.factor = constant_factor, .numbers = {1}});
}

START_TEST(programs_that_differ_in_anything_are_refused_with_both_lines)
{
    static const struct {
        variation *vary;
        const char *zero, *other; /* as rank 0 and the last rank have it */
    } cases[] = {{range, "from -1 to 1, seed 7", "from -1 to 1.0000000000000002, seed 7"},
                 {seed, "seed 7", "seed 8"},
                 {stream, "stream 0", "stream 1"},
                 {first_number, "parameter of 2", "parameter of 3"},
                 {content, "f64[4,4] = constant #", "f64[4,4] = constant #"},
                 {attribute, "factor=0.5", "factor=0.25"},
                 {permutation, "perm=[0,1,2,3]", "perm=[0,2,1,3]"},
                 {random_seed, "seed=2", "seed=3"},
                 {annotation, "as S(0)", "as S(1)"},
                 {fixed, "fixed on 2 as S(0)", "fixed on 2 as S(1)"},
                 {order, "order 0,1", "order 1,0"},
                 {kind_of_op, "tanh(x)", "relu(x)"},
                 {trainable, "w f64[4,4] = parameter", "w f64[4,4] = state"},
                 {longer, "target t: relu", "= tanh(relu"},
                 {numbers_of_schedule, "numbers=[1]", "numbers=[1,1]"},
                 {merge_length, "over 2 micro-steps", "over 3 micro-steps"},
                 {merge_kind, "micro-steps", "each summed over the mesh"},
                 {own_rule, "by \"ij->ij\"", "by \"[i]j->[i]j\""}};
    char other[40];
    start();
    snprintf(other, sizeof other, " Rank %d at ", n_ranks - 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        trama_executable *e = NULL;
        expect_told(compile_varied(cases[i].vary, &e), "different programs. Rank 0 at ", other, cases[i].zero,
                    cases[i].other, "disagreement.h:");
        demand(!e, "an executable in spite of the error");
        start_again(NULL);
    }
    stop();
}
END_TEST

START_TEST(addresses_and_lines_make_no_difference)
{
    trama_executable *e = NULL;
    start();
    must(compile_varied(only_addresses, &e));
    must(trama_executable_destroy(&e));
    stop();
}
END_TEST

START_TEST(a_mistake_of_one_rank_is_told_to_all)
{
    start();
    trama_program *p = trama_program_create();
    trama_executable *e = NULL;
    trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(4, 4));
    trama_target_create(p, "t", trama_relu(x));
    if (astray())
        trama_matmul(x, trama_input(p, "y", TRAMA_F64, TRAMA_SHAPE(5, 4)));
    expect(trama_compile(ctx, p, &e), TRAMA_E_SHAPE, "matmul", "test_mpi_disagree_programs.c:");
    demand(!e, "an executable in spite of the error");
    trama_program_destroy(&p);
    stop(); /* which finds nothing wrong: they make the same calls */
}
END_TEST

TESTS(programs_that_differ_in_anything_are_refused_with_both_lines, addresses_and_lines_make_no_difference,
      a_mistake_of_one_rank_is_told_to_all)
