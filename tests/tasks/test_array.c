/* SPDX-License-Identifier: Apache-2.0 */
/* Elements by index, joins and other arrangements, in several layouts, against their definitions. */
#include "small_matrix.h"

/* The element of the wanted result at an index. */
typedef double wanted_at(const int64_t *at);

static void check_all(setting *s, trama_value *v, trama_shape shape, wanted_at *at, const char *what)
{
    double wanted[ROWS * COLUMNS * COLUMNS];
    int64_t i[TRAMA_MAX_NDIM] = {0}, n = trama_shape_count(shape);
    for (int64_t k = 0; k < n; k++) {
        wanted[k] = at(i);
        for (int d = shape.ndim - 1; d >= 0 && ++i[d] == shape.dim[d]; d--)
            i[d] = 0;
    }
    check(s, v, shape, wanted, what);
}

#define EACH_FORM(s)                                                                                                   \
    for (size_t form_ = 0; form_ < sizeof forms / sizeof *forms; form_++)                                              \
        for (setting s = setting_of(forms[form_]), *once_ = &s; once_; end(&s), once_ = NULL)

#define WANTED(name, ...)                                                                                              \
    static double name(const int64_t *at)                                                                              \
    {                                                                                                                  \
        return __VA_ARGS__;                                                                                            \
    }

/* ---- Elements by index ---- */

static const int64_t picks[2][3] = {{1, -1, 0}, {4, 1, -5}};
static const int64_t there[2][3] = {{1, 4, 0}, {4, 1, 0}};
WANTED(gathered_rows, numbers[there[at[0]][at[1]]][at[2]])
WANTED(gathered_columns, numbers[at[0]][(int64_t[]){1, 6, 0, 4, 1, 2}[at[1] * 3 + at[2]]])

START_TEST(a_gather_takes_parts_in_the_order_of_the_index)
{
    start();
    EACH_FORM(s)
    {
        trama_value *rows =
            trama_tensor(s.g.p, TRAMA_I64, TRAMA_SHAPE(2, 3), picks, s.mesh, form_ % 2 ? "S(1),R" : "R,R");
        check_all(&s, trama_gather(s.x, rows, 0), TRAMA_SHAPE(2, 3, COLUMNS), gathered_rows, "gather of rows");
        check_all(&s, trama_gather(s.x, rows, -1), TRAMA_SHAPE(ROWS, 2, 3), gathered_columns, "gather of columns");
        check_all(&s, trama_embedding(s.x, trama_cast(rows, TRAMA_I16)), TRAMA_SHAPE(2, 3, COLUMNS), gathered_rows,
                  "embedding");
    }
    stop();
}
END_TEST

START_TEST(an_index_that_is_not_there_reads_nan_and_writes_nothing)
{
    const int32_t far[] = {5, 2, -6, 1 << 30};
    start();
    EACH_FORM(s)
    {
        trama_value *index = trama_tensor(s.g.p, TRAMA_I32, TRAMA_SHAPE(4), far, s.mesh, "R,R");
        trama_value *read = trama_isnan(trama_gather(s.x, index, 0));
        double is_nan[4][COLUMNS], set[ROWS][COLUMNS];
        memcpy(set, numbers, sizeof set);
        for (int j = 0; j < COLUMNS; j++) {
            for (int i = 0; i < 4; i++)
                is_nan[i][j] = i != 1;
            set[2][j] = 9;
        }
        check(&s, read, TRAMA_SHAPE(4, COLUMNS), is_nan[0], "gather");
        trama_value *nines = trama_fill(s.g.p, TRAMA_F64, TRAMA_SHAPE(4, COLUMNS), 9);
        check(&s, trama_scatter(s.x, index, nines, 0, TRAMA_SCATTER_SET), TRAMA_SHAPE(ROWS, COLUMNS), set[0],
              "scatter");
        trama_value *whole = trama_gather(trama_cast(s.x, TRAMA_I64), index, 0);
        double zeros[4][COLUMNS] = {{0}};
        for (int j = 0; j < COLUMNS; j++)
            zeros[1][j] = trunc(numbers[2][j]);
        check(&s, whole, TRAMA_SHAPE(4, COLUMNS), zeros[0], "gather of integers");
    }
    stop();
}
END_TEST

static const int64_t along[ROWS][2] = {{0, 6}, {-1, 3}, {2, 2}, {5, 0}, {1, -7}};
static int64_t column_of(int64_t i, int64_t j)
{
    return along[i][j] < 0 ? along[i][j] + COLUMNS : along[i][j];
}
WANTED(gathered_along, numbers[at[0]][column_of(at[0], at[1])])

START_TEST(a_gather_along_a_dim_takes_element_by_element)
{
    start();
    EACH_FORM(s)
    {
        trama_value *index = trama_tensor(s.g.p, TRAMA_I64, TRAMA_SHAPE(ROWS, 2), along, s.mesh, "R,R");
        check_all(&s, trama_gather_along(s.x, index, 1), TRAMA_SHAPE(ROWS, 2), gathered_along, "gather_along");
        int perm[] = {1, 0};
        trama_value *turned = trama_gather_along(trama_transpose(s.x, perm), trama_transpose(index, perm), 0);
        check_all(&s, trama_transpose(turned, perm), TRAMA_SHAPE(ROWS, 2), gathered_along, "gather_along of dim 0");
    }
    stop();
}
END_TEST

static const int64_t tuples[3][2] = {{4, -1}, {0, 3}, {-2, 0}};
WANTED(gathered_tuples, numbers[(int64_t[]){4, 0, 3}[at[0]]][(int64_t[]){6, 3, 0}[at[0]]])
WANTED(gathered_in_batch, numbers[at[0]][column_of(at[0], at[1])])

START_TEST(tuples_of_indices_take_elements_within_batches_or_of_all)
{
    start();
    EACH_FORM(s)
    {
        trama_value *at = trama_tensor(s.g.p, TRAMA_I64, TRAMA_SHAPE(3, 2), tuples, s.mesh, "R,R");
        check_all(&s, trama_gather_nd(s.x, at, 0), TRAMA_SHAPE(3), gathered_tuples, "gather_nd");
        trama_value *of_row = trama_tensor(s.g.p, TRAMA_I64, TRAMA_SHAPE(ROWS, 2, 1), along, s.mesh, "R,R");
        check_all(&s, trama_gather_nd(s.x, of_row, 1), TRAMA_SHAPE(ROWS, 2), gathered_in_batch, "gather_nd in batches");
        double set[ROWS][COLUMNS];
        memcpy(set, numbers, sizeof set);
        set[4][6] = set[0][3] = set[3][0] = -8;
        trama_value *u = trama_fill(s.g.p, TRAMA_F64, TRAMA_SHAPE(3), -8);
        check(&s, trama_scatter_nd(s.x, at, u, TRAMA_SCATTER_SET), TRAMA_SHAPE(ROWS, COLUMNS), set[0], "scatter_nd");
    }
    stop();
}
END_TEST

static double joined(double old, double new, int how)
{
    const double all[] = {new, old + new, old *new, fmax(old, new), fmin(old, new)};
    return all[how];
}

START_TEST(a_scatter_joins_the_elements_of_one_index_in_their_order)
{
    const int64_t rows[] = {2, 0, 2, -3};
    start();
    for (int how = TRAMA_SCATTER_SET; how <= TRAMA_SCATTER_MIN; how++)
        EACH_FORM(s)
        {
            double u[4][COLUMNS], wanted[ROWS][COLUMNS], u_along[ROWS][2], wanted_along[ROWS][COLUMNS];
            memcpy(wanted, numbers, sizeof wanted);
            memcpy(wanted_along, numbers, sizeof wanted);
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < COLUMNS; j++) {
                    double *to = &wanted[(rows[i] + ROWS) % ROWS][j];
                    *to = joined(*to, u[i][j] = i - 0.5 * j, how);
                }
            for (int i = 0; i < ROWS; i++)
                for (int j = 0; j < 2; j++) {
                    double *to = &wanted_along[i][column_of(i, j)];
                    *to = joined(*to, u_along[i][j] = 2 * j - i, how);
                }
            trama_value *index = trama_tensor(s.g.p, TRAMA_I64, TRAMA_SHAPE(4), rows, s.mesh, "R,R");
            trama_value *new = trama_tensor(s.g.p, TRAMA_F64, TRAMA_SHAPE(4, COLUMNS), u, s.mesh, "R,R");
            check(&s, trama_scatter(s.x, index, new, 0, (trama_scatter_how)how), TRAMA_SHAPE(ROWS, COLUMNS), wanted[0],
                  "scatter");
            trama_value *at = trama_tensor(s.g.p, TRAMA_I64, TRAMA_SHAPE(ROWS, 2), along, s.mesh, "R,R");
            trama_value *new_along = trama_tensor(s.g.p, TRAMA_F64, TRAMA_SHAPE(ROWS, 2), u_along, s.mesh, "R,R");
            check(&s, trama_scatter_along(s.x, at, new_along, 1, (trama_scatter_how)how), TRAMA_SHAPE(ROWS, COLUMNS),
                  wanted_along[0], "scatter_along");
        }
    stop();
}
END_TEST

/* PyTorch 2.15, x.scatter_reduce(0, index, u, how) with ties and zeros, of the gradient 1, 10, 100, 1000. */
START_TEST(gradients_of_scatters_that_join_are_those_of_pytorch)
{
    static const int64_t index[] = {0, 0, 1, 1, 2, 3, 2};
    static const double x[] = {2, 0, 3, -1}, u[] = {0, 5, 0, 0, 3, 4, 3}, g[] = {1, 10, 100, 1000};
    static const struct {
        trama_scatter_how how;
        double x[4], u[7];
    } cases[] = {
        {TRAMA_SCATTER_MULTIPLY, {0, 0, 900, 4000}, {10, 0, 0, 0, 900, -1000, 900}},
        {TRAMA_SCATTER_MAX, {0, 10. / 3, 100. / 3, 0}, {0, 1, 10. / 3, 10. / 3, 100. / 3, 1000, 100. / 3}},
        {TRAMA_SCATTER_MIN, {0, 10. / 3, 100. / 3, 1000}, {1, 0, 10. / 3, 10. / 3, 100. / 3, 0, 100. / 3}},
    };
    start();
    for (int k = 0; k < 6; k++)
        EACH_FORM(s)
        {
            trama_value *to = trama_tensor(s.g.p, TRAMA_F64, TRAMA_SHAPE(4), x, s.mesh, form_ % 2 ? "S(0),R" : "R,R");
            trama_value *at = trama_tensor(s.g.p, TRAMA_I64, TRAMA_SHAPE(7), index, s.mesh, "R,R");
            trama_value *from = trama_tensor(s.g.p, TRAMA_F64, TRAMA_SHAPE(7), u, s.mesh, "R,R");
            trama_value *by = trama_tensor(s.g.p, TRAMA_F64, TRAMA_SHAPE(4), g, s.mesh, "R,R");
            trama_value *y = (k < 3 ? trama_scatter_at : trama_scatter_along_at)(TRAMA_HERE, to, at, from, 0,
                                                                                 cases[k % 3].how);
            trama_value *loss = trama_sum(trama_mul(y, by));
            check(&s, trama_gradient(loss, to), TRAMA_SHAPE(4), cases[k % 3].x, "the gradient of x");
            check(&s, trama_gradient(loss, from), TRAMA_SHAPE(7), cases[k % 3].u, "the gradient of u");
        }
    stop();
}
END_TEST

WANTED(times_taken, at[0] == 1 ? 2 : at[0] == 0 || at[0] == 4 ? 2 : 0)

START_TEST(the_gradient_of_a_table_adds_up_what_each_row_was_taken_for)
{
    start();
    EACH_FORM(s)
    {
        trama_value *rows =
            trama_tensor(s.g.p, TRAMA_I64, TRAMA_SHAPE(2, 3), picks, s.mesh, form_ % 2 ? "S(0),R" : "R,R");
        trama_value *sum = trama_sum(trama_embedding(s.x, rows));
        check_all(&s, trama_gradient(sum, s.x), TRAMA_SHAPE(ROWS, COLUMNS), times_taken, "the gradient of embedding");
    }
    stop();
}
END_TEST

/* ---- Joins and parts ---- */

WANTED(ten_times, numbers[at[0]][at[1] % COLUMNS] * (double)(1 + at[1] / COLUMNS))
WANTED(stacked, numbers[at[0]][at[2]] + (double)at[1])
WANTED(backwards, numbers[at[0]][5 - 2 * at[1]])
WANTED(every_third, numbers[1 + 3 * at[0]][at[1]])

START_TEST(values_are_joined_and_taken_apart)
{
    start();
    EACH_FORM(s)
    {
        trama_value *ten[10], *parts[3];
        for (int i = 0; i < 10; i++)
            ten[i] = trama_scale(s.x, i + 1);
        trama_value *all = trama_concat(1, 7, ten);
        check_all(&s, all, TRAMA_SHAPE(ROWS, 7 * COLUMNS), ten_times, "concat");
        trama_value *back = trama_slice_by(all, -1, 0, COLUMNS, 1);
        check(&s, back, TRAMA_SHAPE(ROWS, COLUMNS), numbers[0], "the first of a concat");
        trama_value *three[] = {s.x, trama_add_scalar(s.x, 1), trama_add_scalar(s.x, 2)};
        check_all(&s, trama_stack(1, 3, three), TRAMA_SHAPE(ROWS, 3, COLUMNS), stacked, "stack");
        for (int i = 0; i < 3; i++)
            parts[i] = trama_part(s.x, 1, 3, i);
        check(&s, trama_concat(1, 3, parts), TRAMA_SHAPE(ROWS, COLUMNS), numbers[0], "the concat of a split");
        check_all(&s, trama_slice_by(s.x, 1, 5, 3, -2), TRAMA_SHAPE(ROWS, 3), backwards, "a slice backwards");
        check_all(&s, trama_slice_by(s.x, 0, 1, 2, 3), TRAMA_SHAPE(2, COLUMNS), every_third, "a slice by steps");
    }
    stop();
}
END_TEST

WANTED(weights_of_parts, at[1] < 3 ? 1 : at[1] % 2 ? 5 : 0)

START_TEST(gradients_go_through_joins_and_steps)
{
    start();
    EACH_FORM(s)
    {
        trama_value *two[] = {trama_slice(s.x, 1, 0, 3), trama_scale(trama_slice_by(s.x, 1, 3, 2, 2), 5)};
        trama_value *sum = trama_sum(trama_concat(1, 2, two));
        check_all(&s, trama_gradient(sum, s.x), TRAMA_SHAPE(ROWS, COLUMNS), weights_of_parts, "the gradient of concat");
    }
    stop();
}
END_TEST

/* ---- Arrangements ---- */

WANTED(flipped, numbers[ROWS - 1 - at[0]][COLUMNS - 1 - at[1]])
WANTED(rolled, numbers[(at[0] + ROWS - 2) % ROWS][at[1]])
WANTED(rolled_back, numbers[at[0]][(at[1] + 10) % COLUMNS])
WANTED(repeated, numbers[at[0]][at[1] % COLUMNS])
WANTED(repeated_each, numbers[at[0] / 3][at[1]])
WANTED(broadcast, numbers[at[1]][at[2]])
WANTED(diagonal, numbers[at[0]][at[0] + 1])
WANTED(low_diagonal, numbers[at[0] + 3][at[0]])

START_TEST(elements_change_their_order_and_are_repeated)
{
    start();
    EACH_FORM(s)
    {
        check_all(&s, trama_flip(s.x, TRAMA_DIMS(0, -1)), TRAMA_SHAPE(ROWS, COLUMNS), flipped, "flip");
        check_all(&s, trama_roll(s.x, 0, 7), TRAMA_SHAPE(ROWS, COLUMNS), rolled, "roll");
        check_all(&s, trama_roll(s.x, 1, -10), TRAMA_SHAPE(ROWS, COLUMNS), rolled_back, "roll back");
        check_all(&s, trama_repeat(s.x, 1, 3), TRAMA_SHAPE(ROWS, 3 * COLUMNS), repeated, "repeat");
        check_all(&s, trama_repeat_each(s.x, 0, 3), TRAMA_SHAPE(3 * ROWS, COLUMNS), repeated_each, "repeat_each");
        check_all(&s, trama_broadcast_to(s.x, TRAMA_SHAPE(4, ROWS, COLUMNS)), TRAMA_SHAPE(4, ROWS, COLUMNS), broadcast,
                  "broadcast_to");
        check_all(&s, trama_diagonal(s.x, 1), TRAMA_SHAPE(ROWS), diagonal, "diagonal");
        check_all(&s, trama_diagonal(s.x, -3), TRAMA_SHAPE(2), low_diagonal, "a diagonal below");
        check_all(&s, trama_diagonal(s.x, 7), TRAMA_SHAPE(0), diagonal, "a diagonal beyond");
    }
    stop();
}
END_TEST

static int64_t reflected(int64_t i, int64_t n)
{
    const int64_t period = 2 * (n - 1), at = ((i % period) + period) % period;
    return at < n ? at : period - at;
}
WANTED(constant_around, at[0] < 2 || at[0] >= ROWS + 2 ? -3 : numbers[at[0] - 2][at[1]])
WANTED(edges, numbers[at[0] < 2 ? 0 : at[0] - 2 < ROWS ? at[0] - 2 : ROWS - 1][at[1]])
WANTED(reflections, numbers[reflected(at[0] - 11, ROWS)][at[1]])
WANTED(round_again, numbers[at[0]][(at[1] - 9 + 14) % COLUMNS])

START_TEST(pads_hold_a_number_or_repeat_the_tensor)
{
    start();
    EACH_FORM(s)
    {
        check_all(&s, trama_pad_with(s.x, 0, 2, 2, TRAMA_PAD_CONSTANT, -3), TRAMA_SHAPE(ROWS + 4, COLUMNS),
                  constant_around, "a constant pad");
        check_all(&s, trama_pad_with(s.x, 0, 2, 1, TRAMA_PAD_EDGE, 0), TRAMA_SHAPE(ROWS + 3, COLUMNS), edges,
                  "a pad of edges");
        check_all(&s, trama_pad_with(s.x, 0, 11, 9, TRAMA_PAD_REFLECT, 0), TRAMA_SHAPE(ROWS + 20, COLUMNS), reflections,
                  "a pad that reflects");
        check_all(&s, trama_pad_with(s.x, 1, 9, 8, TRAMA_PAD_WRAP, 0), TRAMA_SHAPE(ROWS, COLUMNS + 17), round_again,
                  "a pad that wraps");
        trama_value *image = trama_reshape(trama_slice(s.x, 1, 0, 4), TRAMA_SHAPE(1, ROWS, 2, 2));
        trama_value *deep = trama_space_to_depth(image, 2);
        check(&s, trama_sub(trama_depth_to_space(deep, 2), image), TRAMA_SHAPE(1, ROWS, 2, 2),
              (const double[ROWS * 4]){0}, "depth_to_space");
    }
    stop();
}
END_TEST

/* ---- Wrong calls ---- */

START_TEST(wrong_calls_are_refused_with_the_reason)
{
    trama_program *p = trama_program_create();
    trama_value *x = trama_input(p, "x", TRAMA_F32, TRAMA_SHAPE(3, 4));
    trama_value *fed = trama_input(p, "fed", TRAMA_F32, TRAMA_SHAPE(TRAMA_ANY, 4));
    trama_value *index = trama_input(p, "index", TRAMA_I64, TRAMA_SHAPE(5));
    trama_value *two[] = {x, fed}, *again[] = {x, trama_transpose(x, NULL)};
    REFUSED(trama_gather(x, index, 2), "gather of x: dim 2 is not there (2 dims)");
    REFUSED(trama_gather(x, x, 0), "the index x is f32; an index is i32 or i64");
    REFUSED(trama_gather_along(x, index, 0), "the index index has 1 dims; it needs those of the tensor");
    REFUSED(trama_scatter(x, index, x, 0, TRAMA_SCATTER_SET), "the shape of x does not fit those of the others");
    REFUSED(trama_scatter(x, index, index, 0, TRAMA_SCATTER_ADD), "x is f32, and index is i64");
    REFUSED(trama_gather_nd(x, index, 0), "the last dim of the index is the number of dims");
    REFUSED(trama_concat(1, 2, two), "differ in more than dim 1");
    REFUSED(trama_concat(0, 2, again), "differ in more than dim 0");
    demand(!trama_concat(0, 0, two) && strstr(trama_error(), "0 values; it joins 1 or more"), "concat: %s",
           trama_error());
    REFUSED(trama_part(x, 1, 2, 2), "part of x: part 2 of 2; parts count from 0");
    REFUSED(trama_slice_by(x, 1, 3, 2, 1), "2 elements from 3 by steps of 1 are not within the 4 of dim 1");
    REFUSED(trama_slice_by(x, 1, 3, 2, INT64_MIN), "are not within the 4 of dim 1");
    REFUSED(trama_slice_by(x, 1, 3, 2, 0), "by steps of 0");
    REFUSED(trama_flip(x, TRAMA_DIMS(5)), "flip of x: dim 5 is not there");
    REFUSED(trama_roll(fed, 0, 1), "roll of fed: dim 0 is only known when fed");
    REFUSED(trama_broadcast_to(x, TRAMA_SHAPE(3, 5)), "dims align at the right");
    REFUSED(trama_broadcast_to(x, TRAMA_SHAPE(TRAMA_ANY, 3, 4)), "dims align at the right");
    REFUSED(trama_repeat(x, 0, -1), "repeat of x: -1 times");
    REFUSED(trama_pad_with(x, 0, 1, -1, TRAMA_PAD_WRAP, 0), "trama_slice takes elements away");
    REFUSED(trama_pad_with(trama_slice(x, 0, 0, 0), 0, 1, 1, TRAMA_PAD_EDGE, 0), "dim 0 has no elements to repeat");
    REFUSED(trama_space_to_depth(x, 2), "it needs 4 dims, not 2");
    trama_program_destroy(&p);
}
END_TEST

TESTS(a_gather_takes_parts_in_the_order_of_the_index, an_index_that_is_not_there_reads_nan_and_writes_nothing,
      a_gather_along_a_dim_takes_element_by_element, tuples_of_indices_take_elements_within_batches_or_of_all,
      a_scatter_joins_the_elements_of_one_index_in_their_order,
      gradients_of_scatters_that_join_are_those_of_pytorch,
      the_gradient_of_a_table_adds_up_what_each_row_was_taken_for, values_are_joined_and_taken_apart,
      gradients_go_through_joins_and_steps, elements_change_their_order_and_are_repeated,
      pads_hold_a_number_or_repeat_the_tensor, wrong_calls_are_refused_with_the_reason)
