/* SPDX-License-Identifier: Apache-2.0 */
/* One unit is two steps of the heat equation on n x n points of f64, the border fixed, as examples/heat2d.c makes them:
 * a state is written from another and that one from it.
 * Usage: heat2d [--mesh SPEC] [--n 2048] [--how turns|assign] [--plan summary|steps]
 *   --how  assign: one state instead, to which the result is assigned */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "stencil.h"

typedef struct heat {
    trama_executable *executable;
    trama_target *step[2];
} heat;

static trama_status step_cpu(const trama_call *call)
{
    const trama_view *u = &call->in[call->n_in - 1], *next = &call->out[0];
    const int64_t left = next->offset[1], right = left + next->extent[1], last_row = u->global[0] - 1,
                  last_column = u->global[1] - 1;
    const int64_t first = left > 0 ? left : 1, end = right <= last_column ? right : last_column;
    for (int64_t i = next->offset[0]; i < next->offset[0] + next->extent[0]; i++) {
        const double *from = (double *)u->data + (i - u->offset[0]) * u->stride[0] - u->offset[1];
        double *to = (double *)next->data + (i - next->offset[0]) * next->stride[0] - left;
        if (i == 0 || i == last_row) {
            memcpy(to + left, from + left, sizeof *to * (size_t)(right - left));
            continue;
        }
        if (left == 0)
            to[0] = from[0];
        if (right > last_column)
            to[last_column] = from[last_column];
        stencil_row(end - first, from + first, u->stride[0], to + first);
    }
    return TRAMA_OK;
}

static const trama_op *define(bool updates)
{
    const trama_op_definition d = {.name = "five_points",
                                   .n_in = updates ? 2 : 1,
                                   .n_out = 1,
                                   .rule = updates ? "ij,i{1:1}j{1:1}->ij" : "i{1:1}j{1:1}->ij",
                                   .updates = updates,
                                   .flops = 7,
                                   .cpu = step_cpu};
    const trama_op *op;
    bench_try(trama_op_define(&d, &op), "define");
    return op;
}

static trama_value *state(trama_program *p, const char *name, int n, const trama_mesh *mesh)
{
    trama_value *u = trama_state(p, name, TRAMA_F64, TRAMA_SHAPE(n, n), NULL);
    return trama_shard(u, mesh, trama_mesh_ndim(mesh) == 1 ? "S(0)" : "S(0),S(1)");
}

static void run(void *arg, int n)
{
    heat *h = arg;
    for (int i = 0; i < 2 * n; i++)
        bench_try(trama_run(h->executable, h->step[i % 2]), "run");
    bench_try(trama_wait(h->executable), "wait");
}

static void write_start(trama_executable *e, const trama_value *u, int n)
{
    double *data = malloc(sizeof *data * (size_t)n * (size_t)n);
    for (int64_t i = 0; i < (int64_t)n * n; i++)
        data[i] = stencil_start(i / n, i % n);
    bench_try(trama_write(e, u, data, sizeof *data * (size_t)n * (size_t)n), "write");
    free(data);
}

/* Two states write each other; or one is assigned what the op makes of it. */
static heat record(trama_program *p, const trama_op *op, int n, const trama_mesh *mesh, bool turns, trama_value **u)
{
    static const char *const names[] = {"u", "v"}, *const steps[] = {"u_to_v", "v_to_u"};
    trama_value *of[2];
    heat h = {0};
    for (int i = 0; i < 2; i++)
        of[i] = i && !turns ? of[0] : state(p, names[i], n, mesh);
    for (int i = 0; i < 2; i++) {
        trama_value *in[] = {of[1 - i], of[i]};
        trama_value *next = turns ? trama_apply(op, 2, in, NULL) : trama_assign(in[0], trama_apply(op, 1, in, NULL));
        h.step[i] = trama_target_create(p, steps[i], next);
    }
    *u = of[0];
    return h;
}

int main(int argc, char **argv)
{
    bool turns = strcmp(bench_option(argc, argv, "how", "turns"), "assign");
    int n = bench_number(argc, argv, "n", 2048);
    const trama_op *op = define(turns);
    trama_mesh *mesh = trama_mesh_create(bench_option(argc, argv, "mesh", "1"));
    trama_program *program = trama_program_create();
    trama_value *u;
    heat h = record(program, op, n, mesh, turns, &u);
    trama_context *context;
    bench_try(trama_start(NULL, &context), "start");
    bench_try(trama_compile(context, program, &h.executable), "compile");
    write_start(h.executable, u, n);
    bench_print_plan(&(bench_target){h.executable, h.step[0]}, bench_option(argc, argv, "plan", NULL));
    bench_serve(trama_context_rank(context), trama_context_ranks(context), run, &h);
    bench_try(trama_executable_destroy(&h.executable), "destroy");
    bench_try(trama_stop(&context), "stop");
    trama_program_destroy(&program);
    trama_mesh_destroy(&mesh);
    trama_op_destroy(&op);
    return 0;
}
