/* SPDX-License-Identifier: Apache-2.0 */
/* Bugs of ops that other systems have or had, each by its number and with the numbers of its report: small programs on
 * simulated ranks against plain loops. */
#include "open_bugs.h"
#include "trama_array.h"
#include "trama_composed.h"
#include "trama_convolution.h"
#include "trama_network.h"

/* The bytes that processes of the mesh send each other to compute v. */
static int64_t bytes_of(trama_value *v, const trama_mesh *mesh)
{
    machine *m = machine_uniform(trama_mesh_size(mesh), 1);
    simulation *s = run_on(m, target(v));
    const int64_t bytes = simulation_traffic(s).bytes;
    simulation_destroy(&s);
    machine_destroy(&m);
    return bytes;
}

static void fill(double *to, int64_t n, double value)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = value;
}

/* ---- Convolutions ---- */

/* Images split by width, a convolution by patches of 4: the gradient came back split by images, of which there is one.
 */
START_TEST(pytorch_191926_the_gradient_of_a_convolution_lies_as_its_operand)
{
    enum { IN = 3, OUT = 6, SIDE = 8, PATCH = 4 };
    static double w[OUT * IN * PATCH * PATCH], wanted[IN * SIDE * SIDE];
    trama_mesh *mesh = trama_mesh_create("2");
    fill(w, OUT * IN * PATCH * PATCH, 1);
    fill(wanted, IN * SIDE * SIDE, OUT); /* each element is in one patch */
    trama_value *x = constant(TRAMA_SHAPE(1, IN, SIDE, SIDE), counted, mesh, "S(3)");
    trama_value *kernel = constant(TRAMA_SHAPE(OUT, IN, PATCH, PATCH), w, mesh, "R");
    trama_value *y = trama_conv(x, kernel, NULL, (&(trama_windows){.stride = {PATCH, PATCH}}));
    trama_value *d = trama_shard(trama_gradient(trama_sum(y), x), mesh, "S(3)");
    expect(d, 2, wanted, "gradient");
    ck_assert_int_eq(bytes_of(d, mesh), 0); /* patches do not overlap */
    trama_mesh_destroy(&mesh);
}
END_TEST

/* A batch that is split was gathered where channels are in groups. */
START_TEST(xla_47945_a_grouped_convolution_of_a_split_batch_sends_nothing)
{
    enum { BATCH = 8, CHANNELS = 4, LENGTH = 5 };
    static double w[CHANNELS * 3], wanted[BATCH * CHANNELS * LENGTH];
    trama_mesh *mesh = trama_mesh_create("4");
    fill(w, CHANNELS * 3, 1);
    for (int i = 0; i < BATCH * CHANNELS; i++)
        for (int j = 0; j < LENGTH; j++)
            for (int k = j - 1; k <= j + 1; k++)
                wanted[i * LENGTH + j] += k >= 0 && k < LENGTH ? i * LENGTH + k : 0;
    trama_value *x = constant(TRAMA_SHAPE(BATCH, CHANNELS, LENGTH), counted, mesh, "S(0)");
    trama_value *kernel = constant(TRAMA_SHAPE(CHANNELS, 1, 3), w, mesh, "R");
    const trama_windows windows = {.before = {1}, .after = {1}, .groups = CHANNELS};
    trama_value *y = trama_shard(trama_conv(x, kernel, NULL, &windows), mesh, "S(0)");
    expect(y, 4, wanted, "by channel");
    ck_assert_int_eq(bytes_of(y, mesh), 0);
    trama_mesh_destroy(&mesh);
}
END_TEST

/* ---- Elements by index, and scans ---- */

/* Sums along a split dim began anew in each piece. */
START_TEST(jax_21403_cumulative_sums_along_a_split_dim)
{
    enum { ROWS_OF = 8, LENGTH = 128 };
    static double ones[ROWS_OF * LENGTH], wanted[ROWS_OF * LENGTH];
    trama_mesh *mesh = trama_mesh_create("dp=2,sp=2");
    fill(ones, ROWS_OF * LENGTH, 1);
    for (int i = 0; i < ROWS_OF * LENGTH; i++)
        wanted[i] = i % LENGTH + 1;
    trama_value *x = constant(TRAMA_SHAPE(ROWS_OF, LENGTH), ones, mesh, "S(0),S(1)");
    expect(trama_cumsum(x, 1), 4, wanted, "cumsum");
    expect(trama_shard(trama_cumsum(x, -1), mesh, "S(0),S(1)"), 4, wanted, "cumsum, split");
    trama_mesh_destroy(&mesh);
}
END_TEST

/* Tokens are split, and so is the gradient of the table: it leaked to rows that no token names. */
START_TEST(xla_42481_the_gradient_of_a_split_table_is_in_the_rows_of_the_tokens)
{
    enum { TABLE = 10, WIDTH = 3, TOKENS = 8 };
    static const double tokens[TOKENS] = {1, 3, 1, 8, 3, 1, 0, 8};
    double wanted[TABLE * WIDTH] = {0};
    trama_mesh *mesh = trama_mesh_create("2,2");
    for (int i = 0; i < TOKENS; i++)
        for (int j = 0; j < WIDTH; j++)
            wanted[(int)tokens[i] * WIDTH + j] += i;
    static const char *const tables[] = {"R,R", "S(0),R", "R,S(0)", "S(1),S(0)"};
    for (int i = 0; i < 4; i++) {
        trama_value *table = constant(TRAMA_SHAPE(TABLE, WIDTH), counted, mesh, tables[i]);
        trama_value *index = trama_cast(constant(TRAMA_SHAPE(TOKENS), tokens, mesh, "R,S(0)"), TRAMA_I64);
        trama_value *by = constant(TRAMA_SHAPE(TOKENS, 1), counted, mesh, "R,S(0)");
        trama_value *loss = trama_sum(trama_mul(trama_embedding(table, index), by));
        expect(trama_shard(trama_gradient(loss, table), mesh, tables[i]), 4, wanted, tables[i]);
    }
    trama_mesh_destroy(&mesh);
}
END_TEST

/* Global indices were used in pieces: out of range, or in the wrong piece. */
START_TEST(pytorch_170934_puts_along_a_split_dim)
{
    enum { N = 16 };
    double index[N], ones[N], wanted[N];
    trama_mesh *mesh = trama_mesh_create("2");
    fill(ones, N, 1);
    for (int i = 0; i < N; i++) {
        index[i] = (5 * i) % N;
        wanted[(int)index[i]] = i;
    }
    trama_value *x = constant(TRAMA_SHAPE(N), ones, mesh, "S(0)");
    trama_value *at = trama_cast(constant(TRAMA_SHAPE(N), index, mesh, "S(0)"), TRAMA_I64);
    trama_value *values = constant(TRAMA_SHAPE(N), counted, mesh, "S(0)");
    expect(trama_shard(trama_scatter(x, at, values, 0, TRAMA_SCATTER_SET), mesh, "S(0)"), 3, wanted, "scatter");
    trama_mesh_destroy(&mesh);
}
END_TEST

/* ---- Shapes and products ---- */

/* [12, 8] split by columns as [16, 6] took pieces for rows. */
START_TEST(pytorch_179502_a_view_that_moves_elements_between_processes)
{
    trama_mesh *mesh = trama_mesh_create("4");
    trama_value *x = constant(TRAMA_SHAPE(12, 8), counted, mesh, "S(1)");
    expect(trama_reshape(x, TRAMA_SHAPE(16, 6)), 4, counted, "view");
    expect(trama_shard(trama_reshape(x, TRAMA_SHAPE(16, 6)), mesh, "S(0)"), 4, counted, "view, split");
    trama_mesh_destroy(&mesh);
}
END_TEST

/* The contracted dim of one operand is cut by the axes in another order than that of the other. */
START_TEST(pytorch_166598_a_product_of_operands_cut_in_another_order)
{
    static const double wanted[] = {56, 62, 68, 74, 152, 174, 196, 218, 248, 286, 324, 362, 344, 398, 452, 506};
    trama_mesh *mesh = trama_mesh_create("2,2");
    trama_value *x = constant(TRAMA_SHAPE(4, 4), counted, mesh, "S(1),S(1)");
    trama_value *y = constant(TRAMA_SHAPE(4, 4), counted, mesh, "S(0)[1],S(0)[0]");
    expect(trama_matmul(x, y), 4, wanted, "product");
    trama_mesh_destroy(&mesh);
}
END_TEST

/* Two rolls of a vector of which each process holds one element: a concatenation had the wrong length. */
START_TEST(jax_39301_rolls_of_one_element_a_process)
{
    static const double a[] = {3, 0, 1, 2}, b[] = {1, 2, 3, 0};
    trama_mesh *mesh = trama_mesh_create("4");
    trama_value *x = constant(TRAMA_SHAPE(4), counted, mesh, "S(0)");
    trama_value *by_a = constant(TRAMA_SHAPE(4), a, mesh, "S(0)"), *by_b = constant(TRAMA_SHAPE(4), b, mesh, "S(0)");
    trama_value *tail[] = {trama_slice(x, 0, 3, 1), trama_slice(x, 0, 0, 3)};
    trama_value *head[] = {trama_slice(x, 0, 1, 3), trama_slice(x, 0, 0, 1)};
    trama_value *right = trama_concat(0, 2, tail), *left = trama_concat(0, 2, head);
    expect(trama_shard(right, mesh, "S(0)"), 4, a, "to the right");
    expect(trama_shard(left, mesh, "S(0)"), 4, b, "to the left");
    expect(trama_shard(trama_roll(x, 0, 1), mesh, "S(0)"), 4, a, "roll");
    /* d/dx of sum(right a + left b): element j has a[j + 1] + b[j - 1] */
    trama_value *loss = trama_sum(trama_add(trama_mul(right, by_a), trama_mul(left, by_b)));
    double wanted[4];
    for (int j = 0; j < 4; j++)
        wanted[j] = a[(j + 1) % 4] + b[(j + 3) % 4];
    expect(trama_shard(trama_gradient(loss, x), mesh, "S(0)"), 4, wanted, "gradient");
    trama_mesh_destroy(&mesh);
}
END_TEST

/* Of a whole vector and one split over one of two axes: elements were multiplied by the other axis' processes. */
START_TEST(jax_19106_concatenation_of_a_whole_and_a_split_vector)
{
    double ones[12], wanted[12];
    trama_mesh *mesh = trama_mesh_create("data=4,model=2");
    fill(ones, 12, 1);
    fill(wanted, 12, 1);
    trama_value *pair[] = {constant(TRAMA_SHAPE(2), ones, mesh, "R,R"), constant(TRAMA_SHAPE(10), ones, mesh, "R,S(0)")};
    expect(trama_concat(0, 2, pair), 8, wanted, "concatenation");
    pair[0] = constant(TRAMA_SHAPE(4), ones, mesh, "S(0),R"); /* jax 24576 */
    pair[1] = constant(TRAMA_SHAPE(8), ones, mesh, "S(0),R");
    expect(trama_concat(0, 2, pair), 8, wanted, "of two split ones");
    trama_mesh_destroy(&mesh);
}
END_TEST

/* The maxima of the pieces were added, so that all exponentials became 0, and their quotients no numbers. */
START_TEST(tt_xla_6075_softmax_along_a_split_dim_before_a_product)
{
    enum { LINES_OF = 3, CLASSES = 16, WIDTH = 2 };
    static double logits[LINES_OF * CLASSES], wanted[LINES_OF * WIDTH];
    trama_mesh *mesh = trama_mesh_create("8");
    for (int i = 0; i < LINES_OF; i++) {
        double sum = 0, e[CLASSES];
        for (int j = 0; j < CLASSES; j++) {
            logits[i * CLASSES + j] = 200 + (7 * j + 3 * i) % 5;
            sum += e[j] = exp(logits[i * CLASSES + j] - 204);
        }
        for (int k = 0; k < WIDTH; k++) {
            wanted[i * WIDTH + k] = 0;
            for (int j = 0; j < CLASSES; j++)
                wanted[i * WIDTH + k] += e[j] / sum * (j * WIDTH + k);
        }
    }
    trama_value *x = constant(TRAMA_SHAPE(LINES_OF, CLASSES), logits, mesh, "S(1)");
    trama_value *table = constant(TRAMA_SHAPE(CLASSES, WIDTH), counted, mesh, "S(0)");
    expect(trama_matmul(trama_shard(trama_softmax(x, 1), mesh, "S(1)"), table), 8, wanted, "softmax, then a product");
    expect(trama_matmul(trama_exp(trama_log_softmax(x, 1)), table), 8, wanted, "its logarithm");
    trama_mesh_destroy(&mesh);
}
END_TEST

/* ---- Norms ---- */

/* The gradient of a layer norm without a weight or a bias failed. */
START_TEST(pytorch_133499_the_gradient_of_a_layer_norm_without_weights)
{
    enum { LINES_OF = 4, LENGTH = 3 };
    static const double numbers[LINES_OF * LENGTH] = {1, 2, 4, 0, 1, -1, 3, 3, 6, 5, 0, 1};
    double wanted[LINES_OF * LENGTH];
    trama_mesh *mesh = trama_mesh_create("2");
    for (int i = 0; i < LINES_OF; i++) {
        double mean = 0, square = 0, sum = 0, along = 0, g[LENGTH], y[LENGTH];
        for (int j = 0; j < LENGTH; j++)
            mean += numbers[i * LENGTH + j] / LENGTH;
        for (int j = 0; j < LENGTH; j++)
            square += (numbers[i * LENGTH + j] - mean) * (numbers[i * LENGTH + j] - mean) / LENGTH;
        for (int j = 0; j < LENGTH; j++) {
            y[j] = (numbers[i * LENGTH + j] - mean) / sqrt(square + 0.5);
            g[j] = i * LENGTH + j;
            sum += g[j] / LENGTH;
            along += g[j] * y[j] / LENGTH;
        }
        for (int j = 0; j < LENGTH; j++)
            wanted[i * LENGTH + j] = (g[j] - sum - y[j] * along) / sqrt(square + 0.5);
    }
    static const char *const texts[] = {"S(0)", "S(1)", "R"};
    for (int i = 0; i < 3; i++) {
        trama_value *x = constant(TRAMA_SHAPE(LINES_OF, LENGTH), numbers, mesh, texts[i]);
        trama_value *by = constant(TRAMA_SHAPE(LINES_OF, LENGTH), counted, mesh, "S(0)");
        trama_value *loss = trama_sum(trama_mul(trama_layer_norm(x, 1, NULL, NULL, 0.5), by));
        expect(trama_gradient(loss, x), 2, wanted, texts[i]);
    }
    trama_mesh_destroy(&mesh);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        pytorch_191926_the_gradient_of_a_convolution_lies_as_its_operand,
        xla_47945_a_grouped_convolution_of_a_split_batch_sends_nothing,
        jax_21403_cumulative_sums_along_a_split_dim,
        xla_42481_the_gradient_of_a_split_table_is_in_the_rows_of_the_tokens,
        pytorch_170934_puts_along_a_split_dim,
        pytorch_179502_a_view_that_moves_elements_between_processes,
        pytorch_166598_a_product_of_operands_cut_in_another_order,
        jax_39301_rolls_of_one_element_a_process,
        jax_19106_concatenation_of_a_whole_and_a_split_vector,
        tt_xla_6075_softmax_along_a_split_dim_before_a_product,
        pytorch_133499_the_gradient_of_a_layer_norm_without_weights,
    };
    return suite_run("open_op_bugs", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
