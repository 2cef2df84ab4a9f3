/* SPDX-License-Identifier: Apache-2.0 */
/* One unit is an iteration of conjugate gradients as examples/cg.c records it, A [n, n] f64 split by rows over the
 * mesh, while the host looks at the residual two steps late. A solve begins anew after some iterations. Usage: cg [--n
 * 8192] [--solve 16] [--plan summary|steps] */
#include <stdlib.h>

#include "bench.h"

typedef struct solver {
    trama_program *program;
    trama_mesh *mesh;
    trama_value *matrix, *x, *r, *p, *rho, *limit;
    trama_target *begin;
    bench_target step;
    trama_watch *watch;
    int n, solve, taken;
} solver;

static trama_value *state(solver *s, const char *name, trama_shape shape, const char *layout)
{
    trama_value *v = trama_state(s->program, name, TRAMA_F64, shape, NULL);
    return layout ? trama_shard(v, s->mesh, layout) : v;
}

static void record_state(solver *s)
{
    s->matrix = state(s, "A", TRAMA_SHAPE(s->n, s->n), "S(0)");
    s->x = state(s, "x", TRAMA_SHAPE(s->n, 1), "S(0)");
    s->r = state(s, "r", TRAMA_SHAPE(s->n, 1), "S(0)");
    s->p = state(s, "p", TRAMA_SHAPE(s->n, 1), "S(0)");
    s->rho = state(s, "rho", TRAMA_SCALAR, NULL);
    s->limit = state(s, "limit", TRAMA_SCALAR, NULL);
}

/* 1 / (1 + |i - j|)^2 in this rank's box. */
static void make_matrix(trama_context *context, solver *s)
{
    trama_wrapped *wrapped;
    trama_host_box piece = {.offset = {0}};
    bench_try(trama_local_box(s->step.executable, s->matrix, 0, piece.offset, piece.extent), "box");
    double *data = malloc(piece.bytes = sizeof *data * (size_t)(piece.extent[0] * piece.extent[1]));
    for (int64_t i = 0; i < piece.extent[0]; i++)
        for (int64_t j = 0; j < piece.extent[1]; j++) {
            const double far = 1 + (double)llabs(piece.offset[0] + i - j);
            data[i * piece.extent[1] + j] = 1 / (far * far);
        }
    piece.data = data;
    bench_try(trama_wrap(context, "A", TRAMA_F64, TRAMA_SHAPE(s->n, s->n), 1, &piece, TRAMA_READ_ONLY, &wrapped),
              "wrap");
    bench_try(trama_write_wrapped(s->step.executable, s->matrix, wrapped), "write");
    bench_try(trama_release(&wrapped), "release");
    free(data);
}

/* b is 1 everywhere. */
static trama_target *record_begin(solver *s)
{
    trama_value *zero = trama_fill(s->program, TRAMA_F64, TRAMA_SHAPE(s->n, 1), 0);
    trama_value *b = trama_fill(s->program, TRAMA_F64, TRAMA_SHAPE(s->n, 1), 1), *rho = trama_sum_square(b);
    return trama_target_create(s->program, "begin", trama_assign(s->x, zero), trama_assign(s->r, b),
                               trama_assign(s->p, b), trama_assign(s->rho, rho),
                               trama_assign(s->limit, trama_scale(rho, 1e-40)));
}

static trama_target *record_step(solver *s)
{
    trama_value *go_on = trama_cast(trama_sign(trama_relu(trama_sub(s->rho, s->limit))), TRAMA_U8);
    trama_value *q = trama_matmul(s->matrix, s->p);
    trama_value *alpha = trama_div(s->rho, trama_sum(trama_mul(s->p, q)));
    trama_value *x = trama_add(s->x, trama_mul(alpha, s->p)), *r = trama_sub(s->r, trama_mul(alpha, q));
    trama_value *rho = trama_sum_square(r), *p = trama_add(r, trama_mul(trama_div(rho, s->rho), s->p));
    return trama_target_create(s->program, "step", trama_assign_if(s->x, x, go_on), trama_assign_if(s->r, r, go_on),
                               trama_assign_if(s->p, p, go_on), trama_assign_if(s->rho, rho, go_on));
}

static void run(void *arg, int n)
{
    solver *s = arg;
    for (int i = 0; i < n; i++) {
        double rho;
        bool known;
        if (s->taken++ % s->solve == 0)
            bench_try(trama_run(s->step.executable, s->begin), "begin");
        bench_try(trama_run(s->step.executable, s->step.target), "step");
        bench_try(trama_watch_next(s->watch, s->rho, &rho, sizeof rho, &known), "watch");
        if (known && !(rho >= 0))
            bench_fail("the residual is no number");
    }
    bench_try(trama_wait(s->step.executable), "wait");
}

int main(int argc, char **argv)
{
    solver s = {.program = trama_program_create(), .mesh = trama_mesh_create("2")};
    trama_context *context;
    if (!s.mesh)
        bench_fail("%s", trama_error());
    s.n = bench_number(argc, argv, "n", 8192);
    s.solve = bench_number(argc, argv, "solve", 16);
    record_state(&s);
    s.begin = record_begin(&s);
    s.step.target = record_step(&s);
    bench_try(trama_start(NULL, &context), "start");
    bench_try(trama_compile(context, s.program, &s.step.executable), "compile");
    bench_print_plan(&s.step, bench_option(argc, argv, "plan", NULL));
    make_matrix(context, &s);
    bench_try(trama_watch_create(s.step.executable, 2, &s.watch), "watch");
    bench_serve(trama_context_rank(context), trama_context_ranks(context), run, &s);
    bench_try(trama_watch_destroy(&s.watch), "watch");
    bench_try(trama_executable_destroy(&s.step.executable), "destroy");
    bench_try(trama_stop(&context), "stop");
    trama_program_destroy(&s.program);
    trama_mesh_destroy(&s.mesh);
    return 0;
}
