/* SPDX-License-Identifier: Apache-2.0 */
/* Eager programs in one rank: several of them at a time, plans of more shapes than are kept, and local boxes of values.
 */
#include "eager_harness.h"

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

TESTS(the_cache_forgets_what_is_not_used, two_eager_programs_and_a_compiled_one_live_together,
      local_boxes_of_eager_values_are_those_of_their_layout)
