/* SPDX-License-Identifier: Apache-2.0 */
/* Eager mode on one rank and on several: values in every layout and on every mesh, ops in scopes, arrays from the host.
 */
#include "eager_harness.h"

/* ---- Every layout ---- */

static const char *const eager_layouts[] = {"R,R",
                                            "S(0),R",
                                            "R,S(0)",
                                            "S(0),S(1)",
                                            "S(1),S(0)",
                                            "S(0),S(0)",
                                            "S(1),S(1)",
                                            "S(0)[1],S(0)[0]",
                                            "P(sum),R",
                                            "P(sum),S(0)",
                                            "S(1),P(max)",
                                            "P(avg),R",
                                            "P(min),P(min)",
                                            "P(sum),P(sum)",
                                            "R,S(0) mask{1,1,0,0}",
                                            "S(0),R mask{1,0,0,1}"};
enum { N_EAGER_LAYOUTS = sizeof eager_layouts / sizeof *eager_layouts };

/* x [5, 3] comes in, goes on by ops, and out, in a layout; text too. */
static void eager_in_a_layout(const char *spec, const char *layout)
{
    trama_mesh *mesh = mesh_of(spec);
    trama_layout l; /* masks are for one size of mesh */
    if (trama_layout_parse(mesh, 2, layout, &l)) {
        trama_mesh_destroy(&mesh);
        return;
    }
    eager g = eager_begin();
    double data[15], negative[15], product[9], transposed[15], sum = 0;
    char *words, begin[100];
    for (int i = 0; i < 15; i++) {
        data[i] = i * 4 % 15 - 6;
        negative[i] = -data[i];
        transposed[i % 3 * 5 + i / 3] = data[i];
        sum += data[i];
    }
    for (int i = 0; i < 9; i++) {
        product[i] = 0;
        for (int k = 0; k < 5; k++)
            product[i] += data[3 * k + i / 3] * data[3 * k + i % 3];
    }
    trama_value *x = trama_tensor(g.p, TRAMA_F64, TRAMA_SHAPE(5, 3), data, mesh, layout);
    demand_value(&g, x, data, layout);
    must(trama_print(g.e, x, 1, &words));
    snprintf(begin, sizeof begin, "%s f64[5,3] as %s\n[[-6 ", trama_value_name(x), layout);
    demand(!strncmp(words, begin, strlen(begin)), "printed \"%s\" instead of \"%s\"", words, begin);
    free(words);
    demand_value(&g, trama_neg(x), negative, layout);
    demand_value(&g, trama_sum(x), &sum, layout);
    demand_value(&g, trama_matmul_trans(x, x, true, false), product, layout);
    demand_value(&g, trama_transpose(x, NULL), transposed, layout);
    for (int k = 0; k < N_EAGER_LAYOUTS; k++) {
        if (trama_layout_parse(mesh, 2, eager_layouts[k], &l))
            continue;
        trama_value *y = trama_reshard(x, mesh, eager_layouts[k]);
        demand_value(&g, y, data, eager_layouts[k]);
        must(trama_layout_of(g.e, y, &words));
        demand(!strcmp(words, eager_layouts[k]), "a reshard to %s gives %s", eager_layouts[k], words);
        free(words);
    }
    eager_end_now(&g);
    trama_mesh_destroy(&mesh);
}

START_TEST(values_come_in_go_on_and_out_in_every_layout)
{
    start();
    for (int i = 0; i < N_EAGER_LAYOUTS; i++) {
        eager_in_a_layout("dp=2,mp=2", eager_layouts[i]);
        if (n_ranks == 1 || i % 4 == 0)
            eager_in_a_layout("2,3", eager_layouts[i]);
    }
    stop();
}
END_TEST

/* ---- Meshes ---- */

static void eager_crosses_meshes(const char *first, const char *second)
{
    trama_mesh *a = mesh_of(first), *b = mesh_of(second);
    eager g = eager_begin();
    double data[7] = {1, 2, 3, 4, 5, 6, 7}, twice[7], gradient[7];
    for (int i = 0; i < 7; i++) {
        twice[i] = 2 * data[i];
        gradient[i] = 4 * data[i];
    }
    trama_value *x = trama_tensor(g.p, TRAMA_F64, TRAMA_SHAPE(7), data, a, "S(0)");
    trama_value *y = trama_reshard(x, b, "S(0)"), *z = trama_add(y, y), *back = trama_reshard(z, a, "R");
    demand_value(&g, z, twice, "over there");
    demand_value(&g, back, twice, "back again");
    trama_value *loss = trama_sum(trama_mul(y, z)); /* 2 x^2 */
    demand_value(&g, trama_gradient(loss, x), gradient, "the gradient across meshes");
    eager_end_now(&g);
    trama_mesh_destroy(&a);
    trama_mesh_destroy(&b);
}

START_TEST(values_cross_meshes)
{
    start();
    eager_crosses_meshes("2", "3");
    eager_crosses_meshes("3:2,0,1", "1");
    eager_crosses_meshes("3:2,0,1", "1:1");
    eager_crosses_meshes("2", "4:0,1,2,3");
    eager_crosses_meshes("2:3,1", "4:0,1,2,3");
    eager_crosses_meshes("1", "5");
    eager_crosses_meshes("1:1", "5");
    stop();
}
END_TEST

/* Ops of a scope run on its mesh, with operands as their names say; another scope over the same ops makes other plans.
 */
static void eager_scopes(const char *first, const char *second)
{
    trama_mesh *a = mesh_of(first), *b = mesh_of(second);
    static const char *const ways[] = {"S(0),R", "R,S(0)", "S(0),S(0)"};
    eager g = eager_begin();
    double data[7] = {1, 2, 3, 4, 5, 6, 7}, square[7], gradient[7], ones[7];
    char *words;
    for (int i = 0; i < 7; i++) {
        square[i] = data[i] * data[i];
        gradient[i] = 2 * data[i];
        ones[i] = 1;
    }
    trama_value *x = trama_value_rename(trama_tensor(g.p, TRAMA_F64, TRAMA_SHAPE(7), data, a, "S(0)"), "x");
    for (int i = 0; i < 3; i++) {
        must(trama_shard_begin(g.p, b, "x", ways[i]));
        trama_value *y = trama_mul(x, x), *one = trama_fill(g.p, TRAMA_F64, TRAMA_SHAPE(7), 1);
        must(trama_shard_end(g.p));
        must(trama_layout_of(g.e, y, &words));
        demand(!strcmp(words, ways[i]), "a result in a scope lies as %s", words);
        free(words);
        demand_value(&g, y, square, "in a scope");
        demand_value(&g, trama_gradient(trama_sum(y), x), gradient, "the gradient out of a scope");
        demand_value(&g, one, ones, "a source in a scope");
    }
    demand(trama_shard_end(g.p) == TRAMA_E_ORDER, "an end without a begin");
    trama_program_clear_error(g.p);
    demand(!trama_annotation_clear(x) && trama_program_status(g.p) == TRAMA_E_ORDER,
           "an annotation of what is computed");
    trama_program_clear_error(g.p);
    eager_end_now(&g);
    trama_mesh_destroy(&a);
    trama_mesh_destroy(&b);
}

START_TEST(scopes_say_where_ops_run)
{
    start();
    eager_scopes("2", "dp=2,mp=2");
    eager_scopes("3:2,0,1", "dp=1,mp=2");
    stop();
}
END_TEST

/* A value leaves as the op laid it out; its gradient comes back so. */
START_TEST(gradients_come_back_from_another_mesh)
{
    start();
    eager g = eager_begin();
    trama_mesh *near = mesh_of("2"), *far = mesh_of("3:4,0,1");
    const double x[8] = {1, -2, 3, 4, -5, 6, 7, 8}, w[6] = {0.5, -1, 2, 1, 3, -0.25};
    trama_value *in = trama_tensor(g.p, TRAMA_F64, TRAMA_SHAPE(4, 2), x, near, "S(0)");
    trama_value *weight = trama_tensor(g.p, TRAMA_F64, TRAMA_SHAPE(2, 3), w, near, "R");
    trama_value *z = trama_relu(trama_matmul(in, weight));
    trama_value *loss = trama_mean(trama_square(trama_reshard(z, far, "S(0)"))), *d = trama_gradient(loss, weight);
    double found[6];
    must(trama_read(g.e, d, found, sizeof found));
    for (int k = 0; k < 2; k++)
        for (int j = 0; j < 3; j++) {
            double sum = 0;
            for (int i = 0; i < 4; i++) {
                double at = x[2 * i] * w[j] + x[2 * i + 1] * w[3 + j];
                sum += at > 0 ? x[2 * i + k] * 2 * at / 12 : 0;
            }
            demand(relative(found[3 * k + j], sum) < 1e-14, "[%d,%d] is %g, not %g", k, j, found[3 * k + j], sum);
        }
    eager_end_now(&g);
    trama_mesh_destroy(&near);
    trama_mesh_destroy(&far);
    stop();
}
END_TEST

/* ---- Host arrays and sources ---- */

/* Arrays of one shape share their plans, never their content; on the mesh of the others, replicated. */
static void eager_takes_host_arrays(const char *spec)
{
    trama_mesh *mesh = mesh_of(spec);
    eager g = eager_begin();
    double data[6] = {1, 2, 3, 4, 5, 6}, wanted[6];
    trama_value *x = trama_tensor(g.p, TRAMA_F64, TRAMA_SHAPE(2, 3), data, mesh, "S(1)");
    int mark = trama_program_mark(g.p);
    for (int i = 0; i < 20; i++) {
        double row[3] = {i, 10 * i, 100 * i}, factor = i + 0.5;
        trama_value *r = trama_constant(g.p, TRAMA_F64, TRAMA_SHAPE(3), row);
        trama_value *f = trama_constant(g.p, TRAMA_F64, TRAMA_SCALAR, &factor);
        trama_value *y = trama_mul(f, trama_add(x, r)); /* the scalar first: it lends no mesh */
        for (int k = 0; k < 6; k++)
            wanted[k] = factor * (data[k] + row[k % 3]);
        row[0] = row[1] = row[2] = factor = NAN; /* they were copied */
        demand_value(&g, y, wanted, "arrays from the host");
        char *words;
        must(trama_layout_of(g.e, r, &words));
        demand(!strcmp(words, "R"), "an array from the host lies as %s", words);
        free(words);
        must(trama_program_rewind(g.p, mark));
    }
    demand_value(&g,
                 trama_add(trama_constant(g.p, TRAMA_F64, TRAMA_SHAPE(2), ((double[]){1, 2})),
                           trama_constant(g.p, TRAMA_F64, TRAMA_SHAPE(2), ((double[]){5, 7}))),
                 (double[]){6, 9}, "nothing but arrays from the host");
    eager_end_now(&g);
    trama_mesh_destroy(&mesh);
}

/* A host array goes to the mesh of its op, although it was read, and used on another mesh, before. */
static void eager_lends_host_arrays(const char *first, const char *second)
{
    trama_mesh *a = mesh_of(first), *b = mesh_of(second);
    eager g = eager_begin();
    double data[3] = {1, 2, 3}, row[3] = {10, 20, 30}, sum[3] = {11, 22, 33}, negative[3] = {-10, -20, -30};
    trama_value *x = trama_tensor(g.p, TRAMA_F64, TRAMA_SHAPE(3), data, a, "S(0)");
    trama_value *y = trama_tensor(g.p, TRAMA_F64, TRAMA_SHAPE(3), data, b, "S(0)");
    int mark = trama_program_mark(g.p);
    trama_value *c = trama_constant(g.p, TRAMA_F64, TRAMA_SHAPE(3), row);
    trama_value *kept = trama_keep(trama_constant(g.p, TRAMA_F64, TRAMA_SHAPE(3), row));
    trama_value *f = trama_fill(g.p, TRAMA_F64, TRAMA_SHAPE(3), 10);
    demand_value(&g, c, row, "an array that is looked at");
    demand_value(&g, f, (double[]){10, 10, 10}, "a fill that is looked at");
    demand_value(&g, trama_add(c, x), sum, "on one mesh");
    demand_value(&g, trama_add(y, c), sum, "on another");
    demand_value(&g, trama_neg(c), negative, "alone");
    demand_value(&g, trama_add(c, x), sum, "on the first one again");
    demand_value(&g, trama_add(f, y), (double[]){11, 12, 13}, "a fill on a mesh");
    must(trama_program_rewind(g.p, mark));
    demand_value(&g, trama_add(kept, y), sum, "a kept array on a mesh");
    eager_end_now(&g);
    trama_mesh_destroy(&a);
    trama_mesh_destroy(&b);
}

START_TEST(host_arrays_mix_in_replicated)
{
    start();
    eager_takes_host_arrays("2");
    eager_takes_host_arrays("2:1,3");
    eager_takes_host_arrays("5");
    eager_lends_host_arrays("2", "3");
    eager_lends_host_arrays("2", "2:1,0");
    eager_lends_host_arrays("1", "4");
    eager_lends_host_arrays("2:1,3", "1");
    stop();
}
END_TEST

/* The copy of the first value that is placed, and a number of the first dtype, are laid out alike. */
START_TEST(a_number_is_not_taken_for_the_copy_of_a_value)
{
    start();
    trama_mesh *mesh = mesh_of("2");
    eager g = eager_begin();
    trama_init three = {3, 3, 0, 0};
    float row[5] = {1, 2, 3, 4, 5}, ten = 10;
    trama_value *s = trama_state(g.p, "s", TRAMA_F32, TRAMA_SHAPE(5), &three);
    demand_value(&g, s, (double[]){3, 3, 3, 3, 3}, "a state read first");
    trama_value *x = trama_tensor(g.p, TRAMA_F32, TRAMA_SHAPE(5), row, mesh, "S(0)");
    trama_value *sum = trama_add(x, s); /* s is copied to the mesh */
    trama_value *number = trama_constant(g.p, TRAMA_F32, TRAMA_SCALAR, &ten);
    demand_value(&g, trama_mul(sum, number), (double[]){40, 50, 60, 70, 80}, "a sum times a number");
    eager_end_now(&g);
    trama_mesh_destroy(&mesh);
    stop();
}
END_TEST

static void eager_makes_numbers(const char *spec)
{
    trama_mesh *mesh = mesh_of(spec);
    eager g = eager_begin();
    double wanted[35];
    for (int i = 0; i < 35; i++)
        wanted[i] = plain_uniform(UINT64_C(0x123456789), 3, 5, (uint64_t)i, -1, 1);
    trama_value *u = trama_uniform_fixed(g.p, TRAMA_F64, TRAMA_SHAPE(7, 5), -1, 1, UINT64_C(0x123456789), 3, 5);
    trama_value *v = trama_uniform_fixed(g.p, TRAMA_F64, TRAMA_SHAPE(7, 5), -1, 1, UINT64_C(0x123456789), 3, 5);
    trama_shard(u, mesh, "S(1)");
    demand_value(&g, u, wanted, "uniform, split");
    demand_value(&g, v, wanted, "uniform, without a mesh");
    for (int i = 0; i < 35; i++)
        wanted[i] += 2.5;
    demand_value(&g, trama_add(u, trama_fill(g.p, TRAMA_F64, TRAMA_SCALAR, 2.5)), wanted, "uniform and fill");
    eager_end_now(&g);
    trama_mesh_destroy(&mesh);
}

START_TEST(random_numbers_are_the_same_on_every_mesh)
{
    start();
    eager_makes_numbers("1");
    eager_makes_numbers("1:1");
    eager_makes_numbers("3");
    stop();
}
END_TEST

START_TEST(every_dtype_and_empty_tensors_work)
{
    start();
    eager g = eager_begin();
    trama_mesh *mesh = mesh_of("4");
    for (int i = 0; i < TRAMA_N_DTYPES; i = next_number(i)) {
        const trama_dtype dtype = (trama_dtype)i, other = i == TRAMA_F64 ? TRAMA_I8 : TRAMA_F64;
        double room[3], twice[3] = {2, 4, 6};
        for (int k = 0; k < 3; k++)
            set_number(room, dtype, k, k + 1);
        trama_value *x = trama_tensor(g.p, dtype, TRAMA_SHAPE(3), room, mesh, "S(0)");
        demand_value(&g, trama_add(x, x), twice, trama_dtype_name(dtype));
        demand_value(&g, trama_cast(trama_add(x, x), other), twice, "cast");
        trama_value *none = trama_tensor(g.p, dtype, TRAMA_SHAPE(2, 0), NULL, mesh, "S(0)");
        demand_value(&g, trama_add(none, none), NULL, "nothing");
        demand_value(&g, trama_sum(none), (double[]){0}, "the sum of nothing");
    }
    eager_end_now(&g);
    trama_mesh_destroy(&mesh);
    stop();
}
END_TEST

/* ---- Reading ---- */

/* Ranks that want nothing, or are not in the mesh, take part in reading. */
START_TEST(ranks_may_decline_to_receive)
{
    start();
    trama_mesh *mesh = mesh_of("2");
    eager g = eager_begin();
    float data[5] = {1, 2, 3, 4, 5}, out[5] = {0};
    trama_value *x = trama_tensor(g.p, TRAMA_F32, TRAMA_SHAPE(5), data, mesh, "S(0)");
    for (int one = 0; one < n_ranks; one++) {
        trama_value *y = trama_scale(x, one);
        must(trama_read(g.e, y, my_rank == one ? out : NULL, my_rank == one ? sizeof out : 0));
    }
    for (int i = 0; i < 5; i++)
        demand(out[i] == (float)my_rank * data[i], "element %d is %g", i, (double)out[i]);
    eager_end_now(&g);
    trama_mesh_destroy(&mesh);
    stop();
}
END_TEST

TESTS(values_come_in_go_on_and_out_in_every_layout, values_cross_meshes, scopes_say_where_ops_run,
      gradients_come_back_from_another_mesh, host_arrays_mix_in_replicated,
      a_number_is_not_taken_for_the_copy_of_a_value, random_numbers_are_the_same_on_every_mesh,
      every_dtype_and_empty_tensors_work, ranks_may_decline_to_receive)
