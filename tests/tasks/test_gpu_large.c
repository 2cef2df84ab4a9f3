/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of more than 2^31 elements on a GPU: pointwise, turned, summed along rows and columns, cut. Every number is a
 * whole one below 2^24, so that f32 holds it and sums of any order are equal. */
#include "harness.h"

#if TRAMA_HAVE_CUDA
#include <cuda_runtime_api.h>

enum { ROWS = 65537, COLUMNS = 40003, CUT = 3, ROW_PERIOD = 101, COLUMN_PERIOD = 97 };
static const size_t needed = (size_t)30 << 30; /* bytes: two such tensors, and what the start leaves free */

static float row_number(int64_t i)
{
    return (float)(i % ROW_PERIOD);
}

static float column_number(int64_t j)
{
    return (float)(j % COLUMN_PERIOD);
}

static float *numbers(int64_t n, float (*number)(int64_t), double *sum)
{
    float *data = malloc((size_t)n * sizeof *data);
    *sum = 0;
    for (int64_t i = 0; i < n; i++) {
        data[i] = number(i);
        *sum += data[i];
    }
    return data;
}

static void check_sums(trama_executable *e, trama_value *sums, int64_t n, int64_t terms, float (*number)(int64_t),
                       double others)
{
    float *got = malloc((size_t)n * sizeof *got);
    must(trama_read(e, sums, got, (size_t)n * sizeof *got));
    for (int64_t i = 0; i < n; i++)
        demand(got[i] == (double)terms * number(i) + others, "sum %" PRId64 " is %.9g, not %.9g", i, (double)got[i],
               (double)terms * number(i) + others);
    free(got);
}

START_TEST(tensors_of_more_than_2_to_the_31_elements_are_computed_and_copied)
{
    double row_sum, column_sum;
    float *rows = numbers(ROWS, row_number, &row_sum), *columns = numbers(COLUMNS, column_number, &column_sum);
    trama_program *p = trama_program_create();
    trama_value *a = trama_input(p, "a", TRAMA_F32, TRAMA_SHAPE(ROWS, 1)),
                *b = trama_input(p, "b", TRAMA_F32, TRAMA_SHAPE(COLUMNS));
    trama_value *c = trama_add(a, b), *turned = trama_transpose(c, ((const int[]){1, 0}));
    trama_value *of_rows = trama_sum_over(c, TRAMA_DIMS(1), false),
                *of_columns = trama_sum_over(turned, TRAMA_DIMS(1), false),
                *down = trama_sum_over(c, TRAMA_DIMS(0), false),
                *cut = trama_slice(trama_slice(c, 0, ROWS - CUT, CUT), 1, COLUMNS - CUT, CUT);
    trama_target *t = trama_target_create(p, "t", of_rows, of_columns, down, cut);
    trama_executable *e = NULL;
    must(trama_compile(ctx, p, &e));
    must(trama_feed(e, a, rows, TRAMA_SHAPE(ROWS, 1)));
    must(trama_feed(e, b, columns, TRAMA_SHAPE(COLUMNS)));
    must(trama_run(e, t));
    check_sums(e, of_rows, ROWS, COLUMNS, row_number, column_sum);
    check_sums(e, of_columns, COLUMNS, ROWS, column_number, row_sum);
    check_sums(e, down, COLUMNS, ROWS, column_number, row_sum);
    float corner[CUT][CUT];
    must(trama_read(e, cut, corner, sizeof corner));
    for (int64_t i = 0; i < CUT; i++)
        for (int64_t j = 0; j < CUT; j++)
            demand(corner[i][j] == row_number(ROWS - CUT + i) + column_number(COLUMNS - CUT + j),
                   "corner %" PRId64 ", %" PRId64 " is %g", i, j, (double)corner[i][j]);
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    free(rows);
    free(columns);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {tensors_of_more_than_2_to_the_31_elements_are_computed_and_copied};
    size_t available = 0, total = 0;
    if (cudaMemGetInfo(&available, &total) || available < needed) {
        printf("skipped: no GPU has %zu GB free\n", needed >> 30);
        return 77;
    }
    trama_config config = {.device = TRAMA_GPU};
    must(trama_start(&config, &ctx));
    const int status = run_tests(__FILE__, tests, 1);
    must(trama_stop(&ctx));
    return status;
}

#else

NO_TESTS("this Trama was built without CUDA")

#endif
