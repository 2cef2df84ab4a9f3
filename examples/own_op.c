/* SPDX-License-Identifier: Apache-2.0 */
/* Ops of one's own: Huber's loss (1964), element by element, and rows divided by their root mean square (Zhang and
 * Sennrich 2019), which must be whole. Their rules are tried first; then a line is fitted to 64 rows, split over two
 * processes, of which one in eight is far off. examples/run own_op, or examples/run --ranks 2 own_op; with --plan,
 * it prints the messages of a step. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "run_options.h"
#include "trama.h"

enum { ROWS = 64, WIDTH = 8, STEPS = 200 };
static const double EPS = 1e-6;

/* ---- Huber's loss: d = prediction - target; d^2 / 2 where |d| <= 1, else |d| - 1/2 ---- */

static trama_status huber_cpu(const trama_call *call)
{
    const trama_view *x = &call->in[0], *y = &call->in[1], *out = &call->out[0];
    int64_t i[TRAMA_MAX_NDIM];
    if (x->dtype != TRAMA_F64)
        return trama_kernel_fail("it takes f64, not %s", trama_dtype_name(x->dtype));
    for (bool more = trama_first(out, i); more; more = trama_next(out, i)) {
        double prediction = *(double *)trama_element(x, out->ndim, i),
               target = *(double *)trama_element(y, out->ndim, i);
        double d = fabs(prediction - target);
        *(double *)trama_element(out, out->ndim, i) = d <= 1 ? d * d / 2 : d - 0.5;
    }
    return TRAMA_OK;
}

static void huber_gradient(const trama_op_gradient *g)
{
    trama_value *d = trama_sub(trama_op_operand(g, 0), trama_op_operand(g, 1));
    trama_value *slope = trama_mul(trama_op_result_gradient(g, 0), trama_clamp(d, -1, 1));
    trama_op_set_gradient(g, 0, slope);
    trama_op_set_gradient(g, 1, trama_op_wants(g, 1) ? trama_neg(slope) : NULL);
}

static const trama_op_definition huber = {.name = "huber",
                                          .n_in = 2,
                                          .n_out = 1,
                                          .rule = "...,...->...",
                                          .pointwise = true,
                                          .flops = 4,
                                          .cpu = huber_cpu,
                                          .gradient = huber_gradient};

/* ---- Rows: y = x / r, and r = sqrt(mean(x^2) + eps), for each row ---- */

static trama_status unit_rows_cpu(const trama_call *call)
{
    const trama_view *x = &call->in[0], *y = &call->out[0], *r = &call->out[1];
    int64_t n = x->extent[1]; /* brackets in the rule: all of a row */
    if (x->dtype != TRAMA_F64)
        return trama_kernel_fail("it takes f64, not %s", trama_dtype_name(x->dtype));
    for (int64_t b = 0; b < x->extent[0]; b++) {
        const double *from = (const double *)x->data + b * x->stride[0];
        double *to = (double *)y->data + b * y->stride[0], sum = 0;
        for (int64_t k = 0; k < n; k++)
            sum += from[k * x->stride[1]] * from[k * x->stride[1]];
        double root = sqrt(sum / (double)n + EPS);
        for (int64_t k = 0; k < n; k++)
            to[k * y->stride[1]] = from[k * x->stride[1]] / root;
        ((double *)r->data)[b * r->stride[0]] = root;
    }
    return TRAMA_OK;
}

/* dx = (dy - y mean(dy y)) / r + dr y / n */
static void unit_rows_gradient(const trama_op_gradient *g)
{
    trama_value *y = trama_op_result(g, 0), *r = trama_op_result(g, 1), *dy = trama_op_result_gradient(g, 0);
    trama_value *mean = trama_mean_over(trama_mul(dy, y), 1, (int[]){1}, true);
    trama_value *along = trama_div(trama_sub(dy, trama_mul(y, mean)), r);
    double n = (double)trama_value_shape(y).dim[1];
    trama_op_set_gradient(g, 0, trama_add(along, trama_scale(trama_mul(trama_op_result_gradient(g, 1), y), 1 / n)));
}

static const trama_op_definition unit_rows = {.name = "unit_rows",
                                              .n_in = 1,
                                              .n_out = 2,
                                              .rule = "b[n] -> b[n], b[k=1]",
                                              .flops = 4,
                                              .cpu = unit_rows_cpu,
                                              .gradient = unit_rows_gradient};

/* ---- Their rules, tried on small tensors ---- */

static trama_status try_rule(const trama_op *op, const char *name, int n_in, bool quiet)
{
    trama_program *p = trama_program_create();
    trama_value *operands[] = {trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(7, 5)),
                               trama_input(p, "y", TRAMA_F64, TRAMA_SHAPE(7, 5))};
    trama_validation found = {0};
    trama_status status = trama_op_validate(trama_apply(op, n_in, operands, NULL), NULL, &found);
    if (!status && !quiet)
        printf("%s: %d placements tried, %d wrong, %d missing\n%s", name, found.tried, found.wrong, found.missing,
               found.text);
    free(found.text);
    trama_program_destroy(&p);
    return status;
}

/* ---- The fit ---- */

typedef struct fit {
    trama_program *program;
    trama_value *x, *y, *w, *loss;
    trama_target *train;
} fit;

static fit record(const trama_mesh *mesh, const trama_op *rows, const trama_op *loss)
{
    fit f = {.program = trama_program_create()};
    trama_optimizer sgd = trama_sgd(0.5);
    f.x = trama_input(f.program, "x", TRAMA_F64, TRAMA_SHAPE(TRAMA_ANY, WIDTH));
    f.y = trama_input(f.program, "y", TRAMA_F64, TRAMA_SHAPE(TRAMA_ANY, 1));
    f.w = trama_parameter(f.program, "w", TRAMA_F64, TRAMA_SHAPE(WIDTH, 1), NULL);
    trama_value *scale =
        trama_parameter(f.program, "scale", TRAMA_F64, TRAMA_SHAPE(WIDTH), &(trama_init){.low = 1, .high = 1});
    trama_shard(f.x, mesh, "S(0)");
    trama_value *unit = trama_apply(rows, 1, (trama_value *[]){trama_mul(f.x, scale)}, NULL);
    trama_value *operands[] = {trama_matmul(unit, f.w), f.y};
    f.loss = trama_mean(trama_apply(loss, 2, operands, NULL));
    f.train = trama_target_create(f.program, "train", trama_minimize(f.loss, &sgd), f.loss);
    return f;
}

/* Feeds row i and its target: twice its first element minus its last, and far from that in each eighth row. */
static trama_status feed(trama_executable *e, const fit *f)
{
    double x[ROWS][WIDTH], y[ROWS];
    for (int i = 0; i < ROWS; i++) {
        double sum = 0;
        for (int k = 0; k < WIDTH; k++) {
            x[i][k] = sin(1 + i * (k + 1));
            sum += x[i][k] * x[i][k];
        }
        y[i] = (2 * x[i][0] - x[i][WIDTH - 1]) / sqrt(sum / WIDTH + EPS) + (i % 8 == 7 ? 50 : 0);
    }
    trama_status status = trama_feed(e, f->x, x, TRAMA_SHAPE(ROWS, WIDTH));
    return status ? status : trama_feed(e, f->y, y, TRAMA_SHAPE(ROWS, 1));
}

static trama_status train(trama_executable *e, const fit *f)
{
    trama_status status = TRAMA_OK;
    for (int i = 0; i < STEPS && !status; i++)
        status = trama_run(e, f->train);
    return status;
}

int main(int argc, char **argv)
{
    plan_form plan = plan_asked_for(argc, argv, "Fits a line through ops of its own.");
    const trama_op *loss_op = NULL, *rows_op = NULL;
    trama_context *context = NULL;
    trama_executable *executable = NULL;
    trama_mesh *mesh = trama_mesh_create("dp=2");
    fit f = {0};
    double w[WIDTH], loss = 0;
    bool failed =
        trama_start(NULL, &context) || trama_op_define(&huber, &loss_op) || trama_op_define(&unit_rows, &rows_op);
    bool quiet = failed || plan || trama_context_rank(context);
    failed = failed || try_rule(loss_op, huber.name, 2, quiet) || try_rule(rows_op, unit_rows.name, 1, quiet);
    if (!failed) {
        f = record(mesh, rows_op, loss_op);
        failed = trama_compile(context, f.program, &executable) || feed(executable, &f) ||
                 (plan ? plan_print(context, executable, f.train, plan, ROWS)
                       : train(executable, &f) || trama_read(executable, f.w, w, sizeof w) ||
                             trama_read(executable, f.loss, &loss, sizeof loss));
    }
    if (failed)
        fprintf(stderr, "own_op: %s\n", trama_error());
    else if (!quiet)
        printf("after %d steps w is %.9f ... %.9f, the loss %.9f\n", STEPS, w[0], w[WIDTH - 1], loss);
    trama_executable_destroy(&executable);
    trama_stop(&context);
    trama_program_destroy(&f.program);
    trama_op_destroy(&loss_op);
    trama_op_destroy(&rows_op);
    trama_mesh_destroy(&mesh);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
