/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that the system refuses to Trama while it compiles or a kernel runs (StarPU's own requests are granted):
 * E_MEMORY, nothing is left behind, and the context goes on. */
#include "harness.h"
#include "refusal.h"
#include "trama_op_define.h"

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

static long refused_requests; /* of the worker's thread, from when `refuser` runs; 0: none */

static trama_status refuser(const trama_call *call)
{
    memset(call->out[0].data, 0, 2 * sizeof(float));
    refuse(refused_requests ? 0 : -1, refused_requests);
    return TRAMA_OK;
}

/* Runs an op on the one worker, whose requests of memory are refused from then on, or are not. */
static void refuse_on_worker(trama_executable *e, const trama_target *t, long n)
{
    refused_requests = n;
    must(trama_run(e, t));
    must(trama_wait(e));
}

START_TEST(a_product_without_scratch_memory_is_an_error_of_its_executable_alone)
{
    const trama_op *op = NULL;
    trama_program *other = trama_program_create(), *p = trama_program_create();
    trama_executable *refusing = NULL, *e = NULL;
    must(trama_op_define(
        &(trama_op_definition){.name = "refuser", .n_in = 1, .n_out = 1, .rule = "...->...", .cpu = refuser}, &op));
    trama_value *in = trama_parameter(other, "in", TRAMA_F32, TRAMA_SHAPE(2), &(trama_init){.low = 1, .high = 1});
    trama_target *run = trama_target_create(other, "run", trama_apply(op, 1, &in, NULL));
    trama_value *w = trama_parameter(p, "w", TRAMA_BF16, TRAMA_SHAPE(3, 3), &(trama_init){.low = 1, .high = 1});
    const int line = __LINE__ + 1;
    trama_value *square = trama_matmul(w, w);
    trama_target *t = trama_target_create(p, "t", square);
    uint16_t got[9];
    char place[300];
    start_with(&(trama_config){.workers = 1});
    must(trama_compile(ctx, other, &refusing));
    must(trama_compile(ctx, p, &e));
    refuse_on_worker(refusing, run, 1 << 30);
    must(trama_run(e, t));
    trama_status status = trama_read(e, square, got, sizeof got);
    snprintf(place, sizeof place, "%s:%d:", __FILE__, line);
    refuse_on_worker(refusing, run, 0);
    demand(status == TRAMA_E_MEMORY && strstr(trama_error(), place) && strstr(trama_error(), "matmul"), "%d: %s",
           (int)status, trama_error());
    expect(trama_run(e, t), TRAMA_E_MEMORY, place, "bytes of memory");
    must(trama_executable_destroy(&e));
    must(trama_compile(ctx, p, &e));
    must(trama_run(e, t));
    must(trama_read(e, square, got, sizeof got));
    for (int i = 0; i < 9; i++)
        demand(got[i] == 0x4040, "%#x is not 3 in bf16", got[i]);
    must(trama_executable_destroy(&e));
    must(trama_executable_destroy(&refusing));
    stop();
    trama_program_destroy(&p);
    trama_program_destroy(&other);
    trama_op_destroy(&op);
}
END_TEST

TESTS(each_request_of_compiling_may_fail, a_product_without_scratch_memory_is_an_error_of_its_executable_alone)
