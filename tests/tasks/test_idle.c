/* SPDX-License-Identifier: Apache-2.0 */
/* A program that has waited for its last run burns no cores, on one rank and on several. */
#include "eager_harness.h"
#include "idleness.h"
#include "network.h"

static void demand_idle(const char *after)
{
    demand(comes_to_rest(), "no rest after %s", after);
}

static void feed_and_train(network *net, int steps)
{
    for (int i = 0; i < steps; i++) {
        samples s = samples_new(net, 11, i);
        network_feed(net, &s);
        must(trama_run(net->e, net->train));
        samples_free(&s);
    }
}

START_TEST(an_idle_eager_program_burns_no_cores)
{
    double data[24] = {1};
    start();
    eager g = eager_begin();
    trama_mesh *mesh = mesh_of("2");
    trama_value *x = trama_tensor(g.p, TRAMA_F64, TRAMA_SHAPE(24), data, mesh, "S(0)");
    trama_value *y = trama_reshard(trama_scale(x, 3), mesh, "R");
    must(trama_read(g.e, y, data, sizeof data));
    demand(data[0] == 3, "%g instead of 3", data[0]);
    demand_idle("trama_read");
    eager_end_now(&g);
    trama_mesh_destroy(&mesh);
    stop();
}
END_TEST

START_TEST(an_idle_program_burns_no_cores)
{
    static const char *const all_or_some[] = {"dp=2,mp=2", "mp=2", "1"};
    start();
    demand_idle("trama_start");
    for (int i = 0; i < 3; i++) {
        network net = network_new(all_or_some[i], TRAMA_F32, false, 3, small_sizes);
        net.e = compile(net.program);
        demand_idle("trama_compile");
        feed_and_train(&net, 20);
        must(trama_wait(net.e));
        demand_idle("trama_wait");
        feed_and_train(&net, 1);
        network_loss(&net);
        demand_idle("trama_read");
        network_free(&net);
        demand_idle("trama_executable_destroy");
    }
    stop();
}
END_TEST

TESTS(an_idle_program_burns_no_cores, an_idle_eager_program_burns_no_cores)
