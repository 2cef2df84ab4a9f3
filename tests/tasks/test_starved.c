/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that the system refuses to Trama while it compiles (StarPU's own requests are granted): E_MEMORY, nothing is
 * left behind, and the context goes on. */
#include "harness.h"
#include "refusal.h"

static trama_program *record(void)
{
    trama_mesh *mesh = trama_mesh_create("dp=2");
    trama_program *p = trama_program_create();
    trama_value *x = trama_input(p, "x", TRAMA_F32, TRAMA_SHAPE(4, 3));
    trama_value *w = trama_parameter(p, "w", TRAMA_F32, TRAMA_SHAPE(3, 2), &(trama_init){.low = 1, .high = 1});
    trama_value *loss = trama_mean(trama_square(trama_matmul(x, w)));
    trama_optimizer sgd = trama_sgd(0.1);
    trama_shard(x, mesh, "S(0)");
    trama_target_create(p, "train", trama_minimize(loss, &sgd), loss);
    trama_mesh_destroy(&mesh);
    return p;
}

START_TEST(each_request_of_compiling_may_fail)
{
    trama_program *p = record();
    trama_executable *e = NULL;
    start();
    must(trama_compile(ctx, p, &e));
    must(trama_executable_destroy(&e));
    refuse(-1, 0);
    must(trama_compile(ctx, p, &e));
    const long all = refusal_asked();
    must(trama_executable_destroy(&e));
    demand(all > 100, "compiling asks for memory %ld times", all);
    for (long n = 0; n < all; n++) {
        refuse(n, 1);
        trama_status status = trama_compile(ctx, p, &e);
        const bool was_refused = refusal_refused() > 0;
        refuse(-1, 0);
        demand(status == (was_refused ? TRAMA_E_MEMORY : TRAMA_OK), "request %ld: status %d, %s", n, (int)status,
               trama_error());
        demand(!status || strstr(trama_error(), "memory"), "request %ld: %s", n, trama_error());
        must(trama_executable_destroy(&e));
    }
    must(trama_compile(ctx, p, &e));
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    stop();
}
END_TEST

TESTS(each_request_of_compiling_may_fail)
