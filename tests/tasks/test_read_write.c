/* SPDX-License-Identifier: Apache-2.0 */
/* Values are fed, written and read in every dtype, shape and layout, whole and by local boxes. */
#include "network.h"
#include "pieces.h"

static const int four[] = {0, 1, 2, 3, -1};

/* i -> 3 i + 1, which fits i8 for fewer than 42 elements. */
static void fill_numbers(void *data, trama_dtype dtype, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        set_number(data, dtype, i, (double)(dtype == TRAMA_BOOL ? i % 2 : 3 * i + 1));
}

/* x + x; a bool as it is. */
static trama_value *twice_of(trama_value *x)
{
    return trama_value_dtype(x) == TRAMA_BOOL ? trama_stop_gradient(x) : trama_add(x, x);
}

/* ---- Every dtype, shape and layout ---- */

typedef struct shape_case {
    trama_shape shape;
    const char *layouts[5]; /* on dp=2,mp=2 */
} shape_case;

static void read_back(const shape_case *c, const char *layout, trama_dtype dtype)
{
    trama_mesh *mesh = mesh_of("dp=2,mp=2");
    trama_program *p = trama_program_create();
    trama_value *x = trama_shard(trama_input(p, "x", dtype, c->shape), mesh, layout);
    trama_value *twice = twice_of(x), *wide = trama_cast(trama_real(x), TRAMA_F64);
    trama_target *t = trama_target_create(p, "t", twice, wide);
    trama_executable *e = compile(p);
    int64_t n = trama_shape_count(c->shape);
    size_t bytes = (size_t)n * trama_dtype_size(dtype);
    void *data = malloc(bytes + 1), *read = malloc(bytes + 1);
    double *cast = malloc((size_t)n * sizeof *cast + 1);
    trama_layout l;
    must(trama_layout_parse(mesh, c->shape.ndim, layout, &l));
    fill_numbers(data, dtype, n);
    must(trama_feed(e, x, data, c->shape));
    memset(read, 0xee, bytes);
    must(trama_read(e, x, read, bytes));
    demand(!memcmp(read, data, bytes), "%s %s: what is fed is not what is read", trama_dtype_name(dtype), layout);
    demand_local(e, x, mesh, &l, c->shape, dtype, data, four);
    must(trama_run(e, t));
    must(trama_read(e, twice, read, bytes));
    must(trama_read(e, wide, cast, (size_t)n * sizeof *cast));
    for (int64_t i = 0; i < n; i++) {
        double in = number_at(data, dtype, i), sum = element_wrapped(dtype, 2 * in);
        demand(number_at(read, dtype, i) == sum, "%s %s: x + x of element %" PRId64 " is %g", trama_dtype_name(dtype),
               layout, i, number_at(read, dtype, i));
        demand(cast[i] == in, "%s %s: element %" PRId64 " cast is %g", trama_dtype_name(dtype), layout, i, cast[i]);
    }
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
    free(data);
    free(read);
    free(cast);
}

START_TEST(every_dtype_shape_and_layout_reads_back)
{
    const shape_case cases[] = {
        {TRAMA_SCALAR, {"R,R"}},
        {TRAMA_SHAPE(1), {"R,R", "S(0),R", "S(0),S(0)", "R,S(0)"}},
        {TRAMA_SHAPE(3), {"R,R", "S(0),R", "S(0),S(0)", "S(0)[1],S(0)[0]"}},
        {TRAMA_SHAPE(7, 5), {"R,R", "S(0),S(1)", "S(1),S(0)", "S(1)[1],S(1)[0]", "R,S(0)"}},
        {TRAMA_SHAPE(2, 3, 5), {"S(2),S(0)", "S(1),R", "S(1),S(1)"}},
        {TRAMA_SHAPE(0), {"R,R", "S(0),R", "S(0),S(0)"}},
        {TRAMA_SHAPE(4, 0, 3), {"R,R", "S(0),S(1)", "S(1),S(2)"}},
    };
    start();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int k = 0; k < 5 && cases[i].layouts[k]; k++)
            for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype++)
                read_back(&cases[i], cases[i].layouts[k], (trama_dtype)dtype);
    stop();
}
END_TEST

/* A host array is the value, whatever its layout: of a new P(sum) one process holds it and the others nothing. */
static void partial_inputs(const char *layout)
{
    trama_mesh *mesh = mesh_of("dp=2,mp=2");
    trama_program *p = trama_program_create();
    double data[6] = {1, -2, 3, -4, 5, -6}, read[6];
    trama_value *x = trama_shard(trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(2, 3)), mesh, layout);
    trama_value *c = trama_shard(trama_constant(p, TRAMA_F64, TRAMA_SHAPE(2, 3), data), mesh, layout);
    trama_target *t = trama_target_create(p, "t", trama_reshard(x, mesh, "R,S(1)"), trama_relu(c), c);
    trama_executable *e = compile(p);
    must(trama_feed(e, x, data, TRAMA_SHAPE(2, 3)));
    must(trama_read(e, x, read, sizeof read));
    demand(!memcmp(read, data, sizeof data), "%s: the input reads back as %g instead of %g", layout, read[0], data[0]);
    must(trama_run(e, t));
    must(trama_read(e, c, read, sizeof read));
    demand(!memcmp(read, data, sizeof data), "%s: the constant reads back as %g instead of %g", layout, read[0],
           data[0]);
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
}

START_TEST(what_the_host_gives_is_the_value_in_partial_layouts_too)
{
    static const char *const layouts[] = {"P(max),R",    "P(avg),R",      "P(min),S(0)",  "P(sum),R",
                                          "S(1),P(sum)", "P(sum),P(sum)", "P(avg),P(sum)"};
    start();
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        partial_inputs(layouts[i]);
    stop();
}
END_TEST

START_TEST(numbers_that_are_none_come_through)
{
    start();
    trama_mesh *mesh = mesh_of("3");
    trama_program *p = trama_program_create();
    trama_value *x = trama_shard(trama_input(p, "x", TRAMA_F32, TRAMA_SHAPE(TRAMA_ANY)), mesh, "S(0)");
    trama_value *y = trama_neg(x);
    trama_target *t = trama_target_create(p, "t", y);
    trama_executable *e = compile(p);
    float in[5] = {NAN, INFINITY, -INFINITY, -0.0f, 1e-42f}, out[5];
    must(trama_feed(e, x, in, TRAMA_SHAPE(5)));
    must(trama_run(e, t));
    must(trama_read(e, x, out, sizeof out));
    demand(!memcmp(in, out, sizeof in), "bits of what is fed change");
    must(trama_read(e, y, out, sizeof out));
    demand(isnan(out[0]) && out[1] == -INFINITY && out[2] == INFINITY && !signbit(out[3]) && out[4] == -1e-42f,
           "neg of what is no number");
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
    stop();
}
END_TEST

/* ---- Pieces ---- */

START_TEST(boxes_are_fed_and_read_as_the_layout_cuts_them)
{
    static const char *const layouts[] = {"S(0),S(1)", "S(1),S(0)", "S(1)[1],S(1)[0]", "R,S(0)", "R,R"};
    const int n_layouts = sizeof layouts / sizeof *layouts;
    start();
    for (int i = 0; i < 2 * n_layouts; i++) {
        const char *placements = layouts[i % n_layouts];
        trama_mesh *mesh = mesh_of(i < n_layouts ? "dp=2,mp=2" : "dp=[20,1],mp=[1,2]"); /* empty ones are boxes, too */
        trama_program *p = trama_program_create();
        trama_value *x = trama_shard(trama_input(p, "x", TRAMA_I32, TRAMA_SHAPE(TRAMA_ANY, 5)), mesh, placements);
        trama_value *y = trama_neg(x);
        trama_target *t = trama_target_create(p, "t", y);
        trama_executable *e = compile(p);
        int32_t data[35], read[35], blocks[4][35];
        const void *pieces[4];
        trama_shape shape = TRAMA_SHAPE(7, 5);
        int n;
        fill_numbers(data, TRAMA_I32, 35);
        must(trama_feed_local_count(e, x, shape, &n));
        for (int k = 0; k < n; k++) {
            piece b;
            must(trama_feed_local_box(e, x, shape, k, b.lo, b.n));
            for (int64_t j = 0; j < piece_count(&b, 2); j++)
                blocks[k][j] = data[piece_element(&b, shape, j)];
            pieces[k] = blocks[k];
        }
        must(trama_feed_local(e, x, shape, n, pieces));
        memset(blocks, 0, sizeof blocks); /* it was copied */
        must(trama_run(e, t));
        must(trama_read(e, x, read, sizeof read));
        demand(!memcmp(read, data, sizeof data), "%s: boxes make another whole", placements);
        must(trama_read(e, y, read, sizeof read));
        for (int k = 0; k < 35; k++)
            demand(read[k] == -data[k], "%s: element %d of neg", placements, k);
        trama_layout l;
        char *layout;
        must(trama_layout_of(e, y, &layout));
        must(trama_layout_parse(mesh, 2, layout, &l));
        demand_local(e, y, mesh, &l, shape, TRAMA_I32, read, four);
        free(layout);
        must(trama_executable_destroy(&e));
        trama_program_destroy(&p);
        trama_mesh_destroy(&mesh);
    }
    stop();
}
END_TEST

START_TEST(a_local_box_of_a_partial_value_is_one_term)
{
    start();
    trama_mesh *mesh = mesh_of("2");
    trama_program *p = trama_program_create();
    double a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8}, term[2][4], whole[4]; /* dist/README.md, "Completion" */
    trama_value *x = trama_shard(trama_constant(p, TRAMA_F64, TRAMA_SHAPE(2, 2), a), mesh, "S(1)");
    trama_value *y = trama_shard(trama_constant(p, TRAMA_F64, TRAMA_SHAPE(2, 2), b), mesh, "S(0)");
    trama_value *z = trama_shard(trama_matmul(x, y), mesh, "P(sum)");
    trama_target *t = trama_target_create(p, "t", z, trama_relu(z));
    trama_executable *e = compile(p);
    int n;
    must(trama_run(e, t));
    must(trama_local_count(e, z, &n));
    demand(n == 2, "%d terms in one rank", n);
    for (int i = 0; i < 2; i++)
        must(trama_read_local(e, z, i, term[i], sizeof term[i]));
    static const double first[] = {5, 6, 15, 18}, second[] = {14, 16, 28, 32}, sum[] = {19, 22, 43, 50};
    bool swapped = term[0][0] != 5;
    demand(!memcmp(term[swapped], first, sizeof first) && !memcmp(term[!swapped], second, sizeof second),
           "terms [%g..] and [%g..]", term[0][0], term[1][0]);
    must(trama_read(e, z, whole, sizeof whole));
    demand(!memcmp(whole, sum, sizeof sum), "the product is [[%g,%g],[%g,%g]]", whole[0], whole[1], whole[2], whole[3]);
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
    stop();
}
END_TEST

/* loss = sum x w, x [4,3] split along dp: each process has a term of dw[k] = sum_i x[i,k], and all of dw where it is
 * named. */
START_TEST(a_named_gradient_is_local_where_its_value_is)
{
    static const char *const layouts[] = {"R,R", "S(0),R", "R,S(0)", "S(0),S(0)"};
    double x[12], dw[3] = {0};
    for (int i = 0; i < 12; i++)
        dw[i % 3] += x[i] = i * i - 5;
    start();
    for (size_t k = 0; k < sizeof layouts / sizeof *layouts; k++) {
        trama_mesh *mesh = mesh_of("dp=2,mp=2");
        trama_program *p = trama_program_create();
        trama_value *w = trama_shard(trama_parameter(p, "w", TRAMA_F64, TRAMA_SHAPE(3, 1), NULL), mesh, layouts[k]);
        trama_value *batch = trama_constant(p, TRAMA_F64, TRAMA_SHAPE(4, 3), x);
        trama_value *d = trama_gradient(trama_sum(trama_matmul(trama_shard(batch, mesh, "S(0),R"), w)), w);
        trama_target *t = trama_target_create(p, "t", d);
        trama_executable *e = compile(p);
        trama_layout l;
        char *words;
        must(trama_run(e, t));
        must(trama_layout_of(e, d, &words));
        must(trama_layout_parse(mesh, 2, words, &l));
        for (int a = 0; a < l.naxes; a++)
            demand(l.axis[a].kind != TRAMA_PARTIAL, "the gradient lies as %s", words);
        demand_local(e, d, mesh, &l, TRAMA_SHAPE(3, 1), TRAMA_F64, dw, four);
        free(words);
        must(trama_executable_destroy(&e));
        trama_program_destroy(&p);
        trama_mesh_destroy(&mesh);
    }
    stop();
}
END_TEST

/* Only the processes of the mask compute, and hold the result. */
START_TEST(an_op_computes_where_its_mask_lets_it)
{
    start();
    trama_mesh *mesh = mesh_of("dp=2,mp=2");
    trama_program *p = trama_program_create();
    double data[6] = {1, 2, 3, 4, 5, 6}, twice[6];
    trama_value *x = trama_shard(trama_constant(p, TRAMA_F64, TRAMA_SHAPE(6), data), mesh, "S(0),R");
    trama_value *y = trama_add(x, x);
    must(trama_shard_op(y, mesh, NULL, NULL, "S(0),R mask{1,0,0,1}") ? TRAMA_OK : trama_program_status(p));
    trama_target *t = trama_target_create(p, "t", y);
    trama_executable *e = compile(p);
    trama_layout l;
    must(trama_layout_parse(mesh, 1, "S(0),R mask{1,0,0,1}", &l));
    must(trama_run(e, t));
    for (int i = 0; i < 6; i++)
        twice[i] = 2 * data[i];
    demand_local(e, y, mesh, &l, TRAMA_SHAPE(6), TRAMA_F64, twice, four);
    must(trama_read(e, y, data, sizeof data));
    demand(!memcmp(data, twice, sizeof data), "x + x is %g, %g, ..", data[0], data[1]);
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
    stop();
}
END_TEST

START_TEST(state_is_written_in_every_layout)
{
    static const char *const layouts[] = {"R,R", "S(0),R", "S(0),S(1)", "S(1),S(1)"};
    start();
    for (size_t k = 0; k < sizeof layouts / sizeof *layouts; k++)
        for (int d = 0; d < TRAMA_N_DTYPES; d++) {
            trama_mesh *mesh = mesh_of("dp=2,mp=2");
            trama_program *p = trama_program_create();
            trama_dtype dtype = (trama_dtype)d;
            trama_value *s = trama_shard(trama_state(p, "s", dtype, TRAMA_SHAPE(3, 7), NULL), mesh, layouts[k]);
            trama_target *t = trama_target_create(p, "t", trama_assign(s, twice_of(s)));
            trama_executable *e = compile(p);
            int64_t data[42], read[42]; /* room for any dtype */
            size_t bytes = 21 * trama_dtype_size(dtype);
            memset(data, 0, sizeof data);
            must(trama_read(e, s, read, bytes));
            demand(!memcmp(read, data, bytes), "state does not start as zeros");
            fill_numbers(data, dtype, 21);
            must(trama_write(e, s, data, bytes));
            must(trama_read(e, s, read, bytes));
            demand(!memcmp(read, data, bytes), "%s %s: what is written is not read", layouts[k], trama_dtype_name(dtype));
            must(trama_run(e, t));
            must(trama_read(e, s, read, bytes));
            for (int i = 0; i < 21; i++)
                demand(number_at(read, dtype, i) == element_wrapped(dtype, 2 * number_at(data, dtype, i)), "%s %s: doubled",
                       layouts[k], trama_dtype_name(dtype));
            must(trama_executable_destroy(&e));
            trama_program_destroy(&p);
            trama_mesh_destroy(&mesh);
        }
    stop();
}
END_TEST

static void start_with_content(trama_dtype dtype, const char *layout)
{
    trama_mesh *mesh = mesh_of("dp=2,mp=2");
    trama_program *p = trama_program_create();
    int64_t data[42], read[42]; /* room for any dtype */
    size_t bytes = 21 * trama_dtype_size(dtype);
    trama_value *s = trama_shard(trama_state(p, "s", dtype, TRAMA_SHAPE(3, 7), NULL), mesh, layout);
    fill_numbers(data, dtype, 21);
    demand(trama_initial(s, data) == s, "%s", trama_error());
    trama_target *t = trama_target_create(p, "t", trama_assign(s, twice_of(s)));
    trama_executable *e = compile(p);
    must(trama_read(e, s, read, bytes));
    demand(!memcmp(read, data, bytes), "%s %s: another first content", layout, trama_dtype_name(dtype));
    must(trama_run(e, t));
    must(trama_read(e, s, read, bytes));
    for (int i = 0; i < 21; i++)
        demand(number_at(read, dtype, i) == element_wrapped(dtype, 2 * number_at(data, dtype, i)), "%s %s: element %d doubled", layout,
               trama_dtype_name(dtype), i);
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
}

START_TEST(state_starts_with_the_content_of_a_host_array)
{
    static const char *const layouts[] = {"R,R", "S(0),R", "S(0),S(1)", "S(1),S(1)"};
    start();
    for (size_t k = 0; k < sizeof layouts / sizeof *layouts; k++)
        for (int d = 0; d < TRAMA_N_DTYPES; d++)
            start_with_content((trama_dtype)d, layouts[k]);
    stop();
}
END_TEST

START_TEST(the_last_first_content_counts_in_eager_mode_too)
{
    trama_program *p;
    trama_executable *e;
    double data[2] = {3, 4}, read[2];
    start();
    must(trama_eager(ctx, &p, &e));
    trama_value *s = trama_state(p, "s", TRAMA_F64, TRAMA_SHAPE(2), NULL);
    trama_initial(s, (double[]){1, 2});
    trama_initial(s, data);
    trama_value *twice = trama_add(s, s);
    must(trama_read(e, twice, read, sizeof read));
    demand(read[0] == 6 && read[1] == 8, "%g %g", read[0], read[1]);
    demand(!trama_initial(s, data) && trama_program_status(p) == TRAMA_E_ORDER, "%s", trama_error());
    trama_program_clear_error(p);
    demand(!trama_initial(twice, data) && trama_program_status(p) == TRAMA_E_ARGUMENT, "%s", trama_error());
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    stop();
}
END_TEST

TESTS(every_dtype_shape_and_layout_reads_back, what_the_host_gives_is_the_value_in_partial_layouts_too,
      numbers_that_are_none_come_through, boxes_are_fed_and_read_as_the_layout_cuts_them,
      a_local_box_of_a_partial_value_is_one_term, a_named_gradient_is_local_where_its_value_is,
      an_op_computes_where_its_mask_lets_it, state_is_written_in_every_layout,
      state_starts_with_the_content_of_a_host_array, the_last_first_content_counts_in_eager_mode_too)
