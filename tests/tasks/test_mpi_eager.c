/* SPDX-License-Identifier: Apache-2.0 */
/* Eager mode over ranks: meshes as large as the job, smaller and larger. One context for all tests. */
#include "eager_cases.h"
#include "eager_training.h"

START_TEST(it_starts)
{
    start();
    demand(n_ranks > 1, "it takes several ranks");
}
END_TEST

START_TEST(eager_training_has_the_bits_of_recorded_training)
{
    static const char *const meshes[] = {"1", "dp=2", "mp=2", "dp=2,mp=2", "dp=3", "mp=3"};
    for (size_t i = 0; i < sizeof meshes / sizeof *meshes; i++)
        eager_equals_recorded(meshes[i]);
}
END_TEST

START_TEST(values_come_in_go_on_and_out_in_every_layout)
{
    for (int i = 0; i < N_EAGER_LAYOUTS; i++) {
        eager_in_a_layout("dp=2,mp=2", eager_layouts[i]);
        if (i % 4 == 0)
            eager_in_a_layout("2,3", eager_layouts[i]);
    }
}
END_TEST

START_TEST(scopes_say_where_ops_run)
{
    eager_scopes("2", "dp=2,mp=2");
    eager_scopes("3:2,0,1", "dp=1,mp=2");
}
END_TEST

START_TEST(values_cross_meshes)
{
    eager_crosses_meshes("2", "3");
    eager_crosses_meshes("3:2,0,1", "1:1");
    eager_crosses_meshes("2:3,1", "4:0,1,2,3");
    eager_crosses_meshes("1:1", "5");
}
END_TEST

START_TEST(host_arrays_mix_in_replicated)
{
    eager_takes_host_arrays("2");
    eager_takes_host_arrays("2:1,3");
    eager_lends_host_arrays("2", "2:1,0");
    eager_lends_host_arrays("2:1,3", "1");
}
END_TEST

START_TEST(random_numbers_are_the_same_on_every_mesh)
{
    eager_makes_numbers("1:1");
    eager_makes_numbers("3");
}
END_TEST

START_TEST(rewinding_forgets_and_keeping_keeps)
{
    eager_forgets_and_keeps("2");
    eager_forgets_and_keeps("7");
    eager_keeps_updates("2");
}
END_TEST

START_TEST(gradients_are_derived_afresh_after_rewinding)
{
    eager_derives_after_rewinding("2");
}
END_TEST

START_TEST(state_is_updated_at_once)
{
    eager_updates_state("2", "R");
    eager_updates_state("4", "S(0)");
    eager_state_follows_its_use("2");
    eager_state_follows_its_use("3:2,0,1");
}
END_TEST

START_TEST(iterations_do_not_grow)
{
    eager_does_not_grow("dp=2,mp=2", SANITIZED ? 50 : 200);
    eager_does_not_grow("mp=2", SANITIZED ? 50 : 200);
}
END_TEST

START_TEST(many_ops_may_be_under_way)
{
    eager_long_chain("2", SANITIZED ? 300 : 1000);
    eager_long_chain("1:1", SANITIZED ? 300 : 1000);
}
END_TEST

/* Ranks that want nothing, or are not in the mesh, take part in reading. */
START_TEST(ranks_may_decline_to_receive)
{
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
}
END_TEST

START_TEST(it_stops)
{
    stop();
}
END_TEST

TESTS(it_starts, eager_training_has_the_bits_of_recorded_training, values_come_in_go_on_and_out_in_every_layout,
      scopes_say_where_ops_run, values_cross_meshes, host_arrays_mix_in_replicated,
      random_numbers_are_the_same_on_every_mesh, rewinding_forgets_and_keeping_keeps,
      gradients_are_derived_afresh_after_rewinding, state_is_updated_at_once, iterations_do_not_grow,
      many_ops_may_be_under_way, ranks_may_decline_to_receive, it_stops)
