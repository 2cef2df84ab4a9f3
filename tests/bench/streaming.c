/* SPDX-License-Identifier: Apache-2.0 */
/* One unit is one op that reads and writes its data once and computes little, so that memory is what it waits for.
 * Usage: streaming OP [--rows 16384] [--columns 16384] [--dtype f32] [--plan summary|steps]
 *   add: x + y; gelu, softmax, mean: of x, of its rows; norm: sums of squares of its rows; copy: from its second row
 *   on; transpose: rows become columns */
#include <stdio.h>
#include <string.h>

#include "bench.h"

typedef struct operands {
    trama_value *x, *y; /* [rows, columns]; y NULL unless the op has two */
    int rows;
} operands;

static trama_value *add(const operands *o)
{
    return trama_add(o->x, o->y);
}

static trama_value *gelu(const operands *o)
{
    return trama_gelu(o->x);
}

static trama_value *softmax(const operands *o)
{
    return trama_softmax(o->x, 1);
}

static trama_value *mean(const operands *o)
{
    return trama_mean_over(o->x, 1, &(int){1}, false);
}

static trama_value *norm(const operands *o)
{
    return trama_sum_square_over(o->x, 1, &(int){1}, false);
}

static trama_value *transpose(const operands *o)
{
    return trama_transpose(o->x, ((int[]){1, 0}));
}

static trama_value *copy(const operands *o)
{
    return trama_slice(o->x, 0, 1, o->rows);
}

static const struct subject {
    const char *name;
    trama_value *(*record)(const operands *o);
    int two;   /* operands */
    int extra; /* rows that x has more */
} subjects[] = {
    {"add", add, 1, 0},   {"gelu", gelu, 0, 0},           {"softmax", softmax, 0, 0}, {"mean", mean, 0, 0},
    {"norm", norm, 0, 0}, {"transpose", transpose, 0, 0}, {"copy", copy, 0, 1},
};
enum { N_SUBJECTS = sizeof subjects / sizeof *subjects };

static const struct subject *subject_of(const char *name)
{
    for (int i = 0; i < N_SUBJECTS; i++)
        if (!strcmp(name, subjects[i].name))
            return &subjects[i];
    bench_fail("usage: streaming add|gelu|softmax|mean|norm|transpose|copy");
}

int main(int argc, char **argv)
{
    const struct subject *subject = subject_of(argc > 1 ? argv[1] : "");
    int rows = bench_number(argc, argv, "rows", 16384), columns = bench_number(argc, argv, "columns", 16384);
    trama_dtype dtype = bench_dtype(argc, argv);
    trama_program *program = trama_program_create();
    trama_shape shape = TRAMA_SHAPE(rows + subject->extra, columns);
    operands o = {.rows = rows};
    o.x = trama_state(program, "x", dtype, shape, &(trama_init){-1, 1, 1, 0});
    if (subject->two)
        o.y = trama_state(program, "y", dtype, shape, &(trama_init){-1, 1, 1, 1});
    trama_target *target = trama_target_create(program, subject->name, subject->record(&o));
    if (trama_program_status(program))
        bench_fail("%s", trama_program_error(program));
    bench_serve_program(program, target, bench_option(argc, argv, "plan", NULL));
    trama_program_destroy(&program);
    return 0;
}
