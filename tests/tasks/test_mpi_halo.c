/* SPDX-License-Identifier: Apache-2.0 */
/* Stencils as ops of one's own: neighbours are exchanged along split dims, on any mesh. Against plain loops, to the
 * bit: each point is computed by the same expression, wherever that is. */
#include "harness.h"

enum { ROWS = 23, COLUMNS = 17, STEPS = 7 };

static double at(const trama_view *v, int64_t i, int64_t j)
{
    return *(double *)trama_element_at(v, (int64_t[]){i, j});
}

/* Five points; the border of the tensor stays. */
static double five(double c, double n, double s, double w, double e)
{
    return c + 0.2 * (n + s + w + e - 4 * c);
}

static trama_status five_cpu(const trama_call *call)
{
    const trama_view *u = &call->in[0], *out = &call->out[0];
    for (int64_t i = out->offset[0]; i < out->offset[0] + out->extent[0]; i++)
        for (int64_t j = out->offset[1]; j < out->offset[1] + out->extent[1]; j++) {
            bool border = i == 0 || j == 0 || i == out->global[0] - 1 || j == out->global[1] - 1;
            *(double *)trama_element_at(out, (int64_t[]){i, j}) =
                border ? at(u, i, j)
                       : five(at(u, i, j), at(u, i - 1, j), at(u, i + 1, j), at(u, i, j - 1), at(u, i, j + 1));
        }
    return TRAMA_OK;
}

/* Two before and one after along dim 0, where the ends meet; c says how much. */
static double around(double a, double b, double here, double next, double c)
{
    return here + c * (a - 2 * b + next);
}

static trama_status around_cpu(const trama_call *call)
{
    const trama_view *u = &call->in[0], *out = &call->out[0];
    const double c = *(const double *)call->in[1].data;
    for (int64_t i = out->offset[0]; i < out->offset[0] + out->extent[0]; i++)
        for (int64_t j = out->offset[1]; j < out->offset[1] + out->extent[1]; j++)
            *(double *)trama_element_at(out, (int64_t[]){i, j}) =
                around(at(u, i - 2, j), at(u, i - 1, j), at(u, i, j), at(u, i + 1, j), c);
    return TRAMA_OK;
}

static const trama_op *five_op, *around_op;

static void define(void)
{
    const trama_op_definition f = {
        .name = "five", .n_in = 1, .n_out = 1, .rule = "i{1:1}j{1:1}->ij", .cpu = five_cpu, .flops = 6};
    const trama_op_definition a = {
        .name = "around", .n_in = 2, .n_out = 1, .rule = "i{2:1~}j,->ij", .cpu = around_cpu, .flops = 4};
    must(trama_op_define(&f, &five_op));
    must(trama_op_define(&a, &around_op));
}

static void forget(void)
{
    trama_op_destroy(&five_op);
    trama_op_destroy(&around_op);
}

static void start_state(double u[ROWS][COLUMNS])
{
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            u[i][j] = sin(i * 1.7 + j * j * 0.3);
}

/* u = around(five(u)), STEPS times. */
static void expected_state(double u[ROWS][COLUMNS])
{
    static double v[ROWS][COLUMNS];
    start_state(u);
    for (int s = 0; s < STEPS; s++) {
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < COLUMNS; j++)
                v[i][j] = i == 0 || j == 0 || i == ROWS - 1 || j == COLUMNS - 1
                              ? u[i][j]
                              : five(u[i][j], u[i - 1][j], u[i + 1][j], u[i][j - 1], u[i][j + 1]);
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < COLUMNS; j++)
                u[i][j] = around(v[(i + ROWS - 2) % ROWS][j], v[(i + ROWS - 1) % ROWS][j], v[i][j],
                                 v[(i + 1) % ROWS][j], 0.125);
    }
}

static void check(const double *got, const char *mesh, const char *layout)
{
    static double wanted[ROWS][COLUMNS];
    expected_state(wanted);
    for (int k = 0; k < ROWS * COLUMNS; k++)
        demand(got[k] == wanted[k / COLUMNS][k % COLUMNS], "%s, %s: element %d,%d is %.17g, not %.17g", mesh, layout,
               k / COLUMNS, k % COLUMNS, got[k], wanted[k / COLUMNS][k % COLUMNS]);
}

static const struct {
    const char *mesh, *layout;
} cases[] = {{"1", "R"},           {"2", "S(0)"}, {"2", "S(1)"},
             {"2,2", "S(0),S(1)"}, {"4", "S(0)"}, {"2,2", "S(0)[1],S(0)[0]"},
             {"2,2", "R,S(1)"},    {"8", "S(0)"}, {"3,2", "S(1),S(0)"},
             {"[3,1]", "S(0)"},    {"16", "S(1)"}};

static trama_value *const_of(trama_program *p)
{
    const double c[] = {0.125};
    return trama_constant(p, TRAMA_F64, TRAMA_SCALAR, c);
}

static void run_case(const char *spec, const char *layout)
{
    static double u[ROWS][COLUMNS], got[ROWS * COLUMNS];
    trama_mesh *mesh = mesh_of(spec);
    trama_program *p = trama_program_create();
    trama_value *state = trama_state(p, "u", TRAMA_F64, TRAMA_SHAPE(ROWS, COLUMNS), NULL), *c = const_of(p);
    trama_shard(state, mesh, layout);
    trama_value *middle = trama_apply(five_op, 1, &state, NULL);
    trama_value *next = trama_apply(around_op, 2, ((trama_value *[]){middle, c}), NULL);
    trama_target *step = trama_target_create(p, "step", trama_assign(state, next));
    trama_executable *e = compile(p);
    start_state(u);
    must(trama_write(e, state, u, sizeof u));
    for (int s = 0; s < STEPS; s++)
        must(trama_run(e, step));
    must(trama_read(e, state, got, sizeof got));
    check(got, spec, layout);
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
}

START_TEST(a_stencil_on_any_mesh_gives_the_bits_of_plain_loops)
{
    define();
    for (int i = 0; i < 3; i++) {
        trama_config config = {.verify = true,
                               .grain_flops = 1,
                               .grain_bytes = 64,
                               .max_tiles = 1 + 2 * i,
                               .staging_bytes = i == 2 ? 256 : 0,
                               .no_fusion = i == 1};
        start_with(&config);
        for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
            run_case(cases[k].mesh, cases[k].layout);
        stop();
    }
    forget();
}
END_TEST

START_TEST(a_stencil_in_eager_mode)
{
    static double u[ROWS][COLUMNS], got[ROWS * COLUMNS];
    define();
    start();
    trama_mesh *mesh = mesh_of("2,2");
    trama_program *p;
    trama_executable *e;
    must(trama_eager(ctx, &p, &e));
    start_state(u);
    trama_value *v = trama_tensor(p, TRAMA_F64, TRAMA_SHAPE(ROWS, COLUMNS), u, mesh, "S(0),S(1)"), *c = const_of(p);
    for (int s = 0; s < STEPS; s++) {
        v = trama_apply(five_op, 1, &v, NULL);
        v = trama_apply(around_op, 2, ((trama_value *[]){v, c}), NULL);
    }
    must(trama_read(e, v, got, sizeof got));
    check(got, "2,2", "eager");
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
    stop();
    forget();
}
END_TEST

START_TEST(rules_with_neighbours_are_validated)
{
    define();
    trama_program *p = trama_program_create();
    trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(7, 5)),
                *c = trama_input(p, "c", TRAMA_F64, TRAMA_SCALAR);
    trama_validation found;
    must(trama_op_validate(trama_apply(five_op, 1, &x, NULL), NULL, &found));
    demand(found.tried > 50 && !found.wrong, "%s", found.text);
    free(found.text);
    must(trama_op_validate(trama_apply(around_op, 2, ((trama_value *[]){x, c}), NULL), NULL, &found));
    demand(found.tried > 50 && !found.wrong, "%s", found.text);
    free(found.text);
    const trama_op *narrow = NULL; /* the rule promises too few neighbours */
    const trama_op_definition wrong = {
        .name = "narrow", .n_in = 1, .n_out = 1, .rule = "i{1:0}j{1:1}->ij", .cpu = five_cpu};
    must(trama_op_define(&wrong, &narrow));
    expect(trama_op_validate(trama_apply(narrow, 1, &x, NULL), NULL, &found), TRAMA_E_LAYOUT, "narrow", "wrong");
    free(found.text);
    trama_program_destroy(&p);
    trama_op_destroy(&narrow);
    forget();
}
END_TEST

/* ---- Strides ---- */

/* The sum of x[3i-1 .. 3i+2][2j .. 2j+1], as far as there are such elements. */
static double pooled(const trama_view *x, const double *plain, int64_t i, int64_t j)
{
    double sum = 0;
    for (int64_t k = 3 * i - 1; k <= 3 * i + 2; k++)
        for (int64_t l = 2 * j; l <= 2 * j + 1; l++)
            if (k >= 0 && k < ROWS && l < COLUMNS)
                sum += x ? at(x, k, l) : plain[k * COLUMNS + l];
    return sum;
}

static trama_status pooled_cpu(const trama_call *call)
{
    const trama_view *x = &call->in[0], *out = &call->out[0];
    for (int64_t i = out->offset[0]; i < out->offset[0] + out->extent[0]; i++)
        for (int64_t j = out->offset[1]; j < out->offset[1] + out->extent[1]; j++)
            *(double *)trama_element_at(out, (int64_t[]){i, j}) = pooled(x, NULL, i, j);
    return TRAMA_OK;
}

/* rows: how many rows the rule has. */
static void run_strided(const char *rule, int rows, const char *spec, const char *layout)
{
    enum { HALF = (COLUMNS + 1) / 2 };
    static double x[ROWS][COLUMNS], got[ROWS * HALF];
    const trama_op *op = NULL;
    const trama_op_definition d = {.name = "pooled", .n_in = 1, .n_out = 1, .rule = rule, .cpu = pooled_cpu};
    must(trama_op_define(&d, &op));
    trama_mesh *mesh = mesh_of(spec);
    trama_program *p = trama_program_create();
    start_state(x);
    trama_value *in = trama_constant(p, TRAMA_F64, TRAMA_SHAPE(ROWS, COLUMNS), x);
    trama_shard(in, mesh, layout);
    trama_value *out = trama_apply(op, 1, &in, NULL);
    trama_target *t = trama_target_create(p, "pool", out);
    demand(t && trama_shape_equal(trama_value_shape(out), TRAMA_SHAPE(rows, HALF)), "%s", trama_program_error(p));
    trama_executable *e = compile(p);
    must(trama_run(e, t));
    must(trama_read(e, out, got, (size_t)rows * HALF * sizeof *got));
    for (int k = 0; k < rows * HALF; k++) {
        double want = pooled(NULL, x[0], k / HALF, k % HALF);
        demand(got[k] == want, "%s, %s, %s: element %d is %.17g, not %.17g", rule, spec, layout, k, got[k], want);
    }
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
    trama_op_destroy(&op);
}

START_TEST(a_stencil_with_strides_gives_the_bits_of_plain_loops_on_any_mesh)
{
    start();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        run_strided("i{1:2*3}j{0:1*2}->ij", 8, cases[i].mesh, cases[i].layout);
        run_strided("i=5{1:2*3}j{0:1*2}->ij", 5, cases[i].mesh, cases[i].layout);
    }
    stop();
}
END_TEST

START_TEST(rules_with_strides_are_validated)
{
    const trama_op *op = NULL, *narrow = NULL;
    trama_op_definition d = {
        .name = "pooled", .n_in = 1, .n_out = 1, .rule = "i{1:2*3}j{0:1*2}->ij", .cpu = pooled_cpu};
    trama_validation found;
    trama_program *p = trama_program_create();
    trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(ROWS, COLUMNS));
    must(trama_op_define(&d, &op));
    must(trama_op_validate(trama_apply(op, 1, &x, NULL), NULL, &found));
    demand(found.tried > 20 && !found.wrong, "%s", found.text);
    free(found.text);
    d.name = "narrow"; /* the rule promises a neighbour too few */
    d.rule = "i{1:1*3}j{0:1*2}->ij";
    must(trama_op_define(&d, &narrow));
    expect(trama_op_validate(trama_apply(narrow, 1, &x, NULL), NULL, &found), TRAMA_E_LAYOUT, "narrow", "wrong");
    free(found.text);
    trama_program_destroy(&p);
    trama_op_destroy(&op);
    trama_op_destroy(&narrow);
}
END_TEST

START_TEST(rules_that_cannot_be_are_refused)
{
    static const struct {
        const char *rule, *problem;
        unsigned updates;
    } tries[] = {{"i{1}j->ij", "i{1:1}", 0},          {"i{1:1j->ij", "not closed", 0},
                 {"i{:1}j->ij", "i{1:1}", 0},         {"ij->i{1:1}j", "a result has no neighbours", 0},
                 {"[i{1:1}]j->ij", "never split", 0}, {"i{1:1}j->j", "in every result", 0},
                 {"i{1:1}j->ij", "written over", 1},  {"i{1:1*}j->ij", "i{1:1*2}", 0},
                 {"i{1:1*0}j->ij", "at least 1", 0},  {"i{1:1*2~}j->ij", "go on at its other end", 0},
                 {"i{1:1~*2}j->ij", "not closed", 0}, {"i{0:0*2}j->ij", "written over", 1}};
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        const trama_op *op = NULL;
        const trama_op_definition d = {.name = "wrong",
                                       .n_in = 1,
                                       .n_out = 1,
                                       .rule = tries[i].rule,
                                       .cpu = five_cpu,
                                       .updates = tries[i].updates};
        expect(trama_op_define(&d, &op), TRAMA_E_ARGUMENT, tries[i].problem, "test_mpi_halo.c");
        demand(!op, "an op in spite of the error");
    }
    define();
    trama_program *p = trama_program_create();
    trama_value *in[] = {trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(1, 5)),
                         trama_input(p, "c", TRAMA_F64, TRAMA_SCALAR)};
    demand(!trama_apply(around_op, 2, in, NULL), "one row has no two rows before it");
    demand(strstr(trama_program_error(p), "further on than the dim is long") != NULL, "%s", trama_program_error(p));
    trama_program_destroy(&p);
    forget();
}
END_TEST

TESTS(a_stencil_on_any_mesh_gives_the_bits_of_plain_loops, a_stencil_in_eager_mode, rules_with_neighbours_are_validated,
      a_stencil_with_strides_gives_the_bits_of_plain_loops_on_any_mesh, rules_with_strides_are_validated,
      rules_that_cannot_be_are_refused)
