/* SPDX-License-Identifier: Apache-2.0 */
/* One unit is a chain of tiny adds x1 = x0 + b, x2 = x1 + b, ... through Trama.
 * Usage: chain replay|fused|eager [--ops 1000] [--elements 16] */
#include <string.h>

#include "bench.h"

typedef struct chain {
    trama_program *program;
    bench_target run; /* without a target: eager */
    trama_value *x, *b;
    int ops, mark;
} chain;

static trama_value *vector(trama_program *program, const char *name, int elements, uint64_t stream)
{
    trama_init init = {0, 1, 1, stream};
    return trama_state(program, name, TRAMA_F32, TRAMA_SHAPE(elements), &init);
}

static trama_value *append(const chain *c)
{
    trama_value *x = c->x;
    for (int i = 0; i < c->ops; i++)
        x = trama_add(x, c->b);
    return x;
}

static void run_eager(void *arg, int n)
{
    const chain *c = arg;
    for (int i = 0; i < n; i++) {
        if (!append(c))
            bench_fail("%s", trama_program_error(c->program));
        bench_try(trama_program_rewind(c->program, c->mark), "rewind");
    }
    bench_try(trama_wait(c->run.executable), "wait");
}

static void begin_compiled(chain *c, trama_context *context, int elements)
{
    c->program = trama_program_create();
    c->x = vector(c->program, "x", elements, 0);
    c->b = vector(c->program, "b", elements, 1);
    c->run.target = trama_target_create(c->program, "chain", append(c));
    bench_try(trama_compile(context, c->program, &c->run.executable), "compile");
}

static void begin_eager(chain *c, trama_context *context, int elements)
{
    bench_try(trama_eager(context, &c->program, &c->run.executable), "eager");
    c->x = vector(c->program, "x", elements, 0);
    c->b = vector(c->program, "b", elements, 1);
    c->mark = trama_program_mark(c->program);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    bool eager = !strcmp(mode, "eager"), fused = !strcmp(mode, "fused");
    int elements = bench_number(argc, argv, "elements", 16);
    chain c = {.ops = bench_number(argc, argv, "ops", 1000)};
    trama_context *context;
    if (!eager && !fused && strcmp(mode, "replay"))
        bench_fail("usage: chain replay|fused|eager");
    bench_try(trama_start(&(trama_config){.no_fusion = !fused}, &context), "start");
    (eager ? begin_eager : begin_compiled)(&c, context, elements);
    bench_serve(trama_context_rank(context), trama_context_ranks(context), eager ? run_eager : bench_run_target,
                eager ? (void *)&c : &c.run);
    bench_try(trama_executable_destroy(&c.run.executable), "destroy");
    bench_try(trama_stop(&context), "stop");
    trama_program_destroy(&c.program);
    return 0;
}
