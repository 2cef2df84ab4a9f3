/* SPDX-License-Identifier: Apache-2.0 */
/* Eager mode in one rank. */
#include "eager_cases.h"
#include "eager_training.h"

static const char *const meshes[] = {"1", "dp=2", "mp=2", "dp=2,mp=2", "dp=3", "mp=3", "dp=[5,1],mp=[1,2]"};
enum { N_MESHES = sizeof meshes / sizeof *meshes };

START_TEST(eager_training_has_the_bits_of_recorded_training)
{
    start();
    for (int i = 0; i < N_MESHES; i++)
        eager_equals_recorded(meshes[i]);
    stop();
}
END_TEST

START_TEST(eager_tiles_have_the_bits_of_recorded_tiles)
{
    start_with(&(trama_config){.max_tiles = 3, .workers = 2, .grain_flops = 1, .grain_bytes = 1});
    eager_equals_recorded("1");
    eager_equals_recorded("dp=2,mp=2");
    stop();
}
END_TEST

START_TEST(values_come_in_go_on_and_out_in_every_layout)
{
    start();
    for (int i = 0; i < N_EAGER_LAYOUTS; i++) {
        eager_in_a_layout("dp=2,mp=2", eager_layouts[i]);
        eager_in_a_layout("2,3", eager_layouts[i]);
    }
    stop();
}
END_TEST

START_TEST(scopes_say_where_ops_run)
{
    start();
    eager_scopes("2", "dp=2,mp=2");
    eager_scopes("3:2,0,1", "dp=1,mp=2");
    stop();
}
END_TEST

START_TEST(values_cross_meshes)
{
    start();
    eager_crosses_meshes("2", "3");
    eager_crosses_meshes("3:2,0,1", "1");
    eager_crosses_meshes("2", "4:0,1,2,3");
    eager_crosses_meshes("1", "5");
    stop();
}
END_TEST

START_TEST(host_arrays_mix_in_replicated)
{
    start();
    eager_takes_host_arrays("2");
    eager_takes_host_arrays("5");
    eager_lends_host_arrays("2", "3");
    eager_lends_host_arrays("1", "4");
    stop();
}
END_TEST

START_TEST(random_numbers_are_the_same_on_every_mesh)
{
    start();
    eager_makes_numbers("1");
    eager_makes_numbers("3");
    stop();
}
END_TEST

START_TEST(rewinding_forgets_and_keeping_keeps)
{
    start();
    eager_forgets_and_keeps("1");
    eager_forgets_and_keeps("2");
    eager_forgets_and_keeps("7");
    eager_keeps_updates("1");
    eager_keeps_updates("2");
    stop();
}
END_TEST

START_TEST(gradients_are_derived_afresh_after_rewinding)
{
    start();
    eager_derives_after_rewinding("1");
    eager_derives_after_rewinding("2");
    stop();
}
END_TEST

START_TEST(state_is_updated_at_once)
{
    start();
    eager_updates_state("1", "R");
    eager_updates_state("2", "R");
    eager_updates_state("2", "S(0)");
    eager_updates_state("7", "S(0)");
    eager_state_follows_its_use("2");
    eager_state_follows_its_use("3:2,0,1");
    stop();
}
END_TEST

START_TEST(a_thousand_iterations_do_not_grow)
{
    start();
    eager_does_not_grow("1", SANITIZED ? 100 : 1000);
    eager_does_not_grow("dp=2,mp=2", SANITIZED ? 50 : 300);
    stop();
}
END_TEST

START_TEST(many_ops_may_be_under_way)
{
    start();
    eager_long_chain("1", SANITIZED ? 1000 : 3000);
    eager_long_chain("2", SANITIZED ? 300 : 1000);
    stop();
}
END_TEST

/* More plans than the cache keeps: shapes that all differ. */
START_TEST(the_cache_forgets_what_is_not_used)
{
    start();
    eager g = eager_begin();
    static double data[1500];
    int mark = trama_program_mark(g.p);
    for (int i = 0; i < 1500; i++)
        data[i] = i;
    trama_value *held = trama_keep(trama_neg(trama_constant(g.p, TRAMA_F64, TRAMA_SHAPE(3), data)));
    for (int n = 1; n < 1500; n++) {
        trama_value *x = trama_constant(g.p, TRAMA_F64, TRAMA_SHAPE(n), data);
        trama_value *sum = trama_sum(trama_add(x, x));
        if (n % 100 == 0)
            demand_value(&g, sum, (double[]){(double)n * (n - 1)}, "a sum of its own shape");
        must(trama_program_rewind(g.p, mark));
        demand(g.e->plans.n <= 1024, "%d plans after %d shapes", g.e->plans.n, n);
    }
    demand_value(&g, trama_neg(held), (double[]){0, 1, 2}, "what was kept all the time");
    eager_end_now(&g);
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

START_TEST(two_eager_programs_and_a_compiled_one_live_together)
{
    start();
    eager a = eager_begin(), b = eager_begin();
    network net = network_new("dp=2", TRAMA_F32, false, 3, small_sizes);
    net.e = compile(net.program);
    samples s = samples_new(&net, 4, 0);
    trama_value *x = trama_fill(a.p, TRAMA_F64, TRAMA_SHAPE(2), 3), *y = trama_fill(b.p, TRAMA_F64, TRAMA_SHAPE(2), 4);
    for (int i = 0; i < 3; i++) {
        x = trama_square(x);
        network_feed(&net, &s);
        must(trama_run(net.e, net.train));
        y = trama_neg(y);
    }
    demand_value(&a, x, (double[]){6561, 6561}, "3 squared three times");
    demand_value(&b, y, (double[]){-4, -4}, "4 negated three times");
    eager_end_now(&a);
    trama_value *z = trama_neg(y);
    demand_value(&b, z, (double[]){4, 4}, "after the other one ended");
    must(trama_executable_destroy(&b.e)); /* with ops under way */
    demand(trama_neg(z), "a program goes on recording after its executable");
    trama_program_destroy(&b.p);
    samples_free(&s);
    network_free(&net);
    stop();
}
END_TEST

START_TEST(local_boxes_of_eager_values_are_those_of_their_layout)
{
    start();
    eager g = eager_begin();
    trama_mesh *mesh = mesh_of("dp=2,mp=2");
    float data[35];
    for (int i = 0; i < 35; i++)
        data[i] = (float)i;
    static const char *const split[] = {"S(0),S(1)", "S(1),S(1)", "R,S(0)", "S(0)[1],S(0)[0]"};
    for (int i = 0; i < 4; i++) {
        trama_layout l;
        must(trama_layout_parse(mesh, 2, split[i], &l));
        trama_value *x = trama_tensor(g.p, TRAMA_F32, TRAMA_SHAPE(7, 5), data, mesh, split[i]);
        demand_local(g.e, trama_neg(trama_neg(x)), mesh, &l, TRAMA_SHAPE(7, 5), TRAMA_F32, data,
                     (int[]){0, 1, 2, 3, -1});
    }
    eager_end_now(&g);
    trama_mesh_destroy(&mesh);
    stop();
}
END_TEST

/* Steps of an optimizer with state: five recorded ones, or five eager ones, each recorded anew. */
static void fit(bool is_eager, double *result)
{
    trama_program *p = NULL;
    trama_executable *e = NULL;
    trama_target *step = NULL;
    const double data[] = {1, 2, 3, 4, 5, 7};
    trama_init init = {-1, 1, 1, 0};
    trama_optimizer adamw = trama_adamw(0.01);
    if (is_eager)
        must(trama_eager(ctx, &p, &e));
    else
        p = trama_program_create();
    trama_value *w = trama_parameter(p, "w", TRAMA_F64, TRAMA_SHAPE(2, 1), &init);
    int mark = trama_program_mark(p);
    for (int i = 0; i < 5; i++) {
        if (is_eager || i == 0) {
            trama_value *x = trama_constant(p, TRAMA_F64, TRAMA_SHAPE(3, 2), data);
            trama_value *done = trama_minimize(trama_mean(trama_square(trama_matmul(x, w))), &adamw);
            demand(done, "step %d: %s", i, trama_program_error(p));
            step = is_eager ? NULL : trama_target_create(p, "step", done);
        }
        if (is_eager)
            must(trama_program_rewind(p, mark));
        else if (i == 0)
            must(trama_compile(ctx, p, &e));
        if (!is_eager)
            must(trama_run(e, step));
    }
    must(trama_read(e, w, result, 2 * sizeof *result));
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
}

START_TEST(eager_optimizers_find_the_state_of_the_step_before)
{
    double recorded[2], eagerly[2];
    start();
    fit(false, recorded);
    fit(true, eagerly);
    stop();
    demand(!memcmp(recorded, eagerly, sizeof recorded), "%.17g and %.17g", recorded[0], eagerly[0]);
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

TESTS(eager_training_has_the_bits_of_recorded_training, eager_tiles_have_the_bits_of_recorded_tiles,
      values_come_in_go_on_and_out_in_every_layout, scopes_say_where_ops_run, values_cross_meshes,
      host_arrays_mix_in_replicated, random_numbers_are_the_same_on_every_mesh, rewinding_forgets_and_keeping_keeps,
      gradients_are_derived_afresh_after_rewinding, state_is_updated_at_once, a_thousand_iterations_do_not_grow,
      many_ops_may_be_under_way, the_cache_forgets_what_is_not_used,
      a_number_is_not_taken_for_the_copy_of_a_value, every_dtype_and_empty_tensors_work,
      two_eager_programs_and_a_compiled_one_live_together, eager_optimizers_find_the_state_of_the_step_before,
      gradients_come_back_from_another_mesh, local_boxes_of_eager_values_are_those_of_their_layout)
