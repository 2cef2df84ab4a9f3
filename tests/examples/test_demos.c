/* SPDX-License-Identifier: Apache-2.0 */
/* The small programs: what they print is what they promise. */
#include "programs.h"

START_TEST(a_host_gets_its_product_twice)
{
    static const char *const commands[] = {WHOLE_STACKS "./embed", MPIRUN "2 ./embed", MPIRUN "4 ./embed"};
    const bool has_mpi = TRAMA_HAVE_MPI;
    for (size_t i = 0; i < (has_mpi ? 3 : 1); i++) {
        char line[80];
        const char *text = text_of(run("%s", commands[i]));
        for (int round = 1; round <= 2; round++) {
            snprintf(line, sizeof line, "round %d: %d ranks, largest error ", round, 1 << i);
            ck_assert_msg(contains(text, line), "%s", text);
        }
    }
}
END_TEST

START_TEST(hello_mesh_prints_one_tensor_in_two_layouts)
{
    const char *text = text_of(run("./hello_mesh"));
    ck_assert_msg(contains(text, "x f32[5,4] as S(0),S(1)") && contains(text, "y f32[5,4] as S(1),R"), "%s", text);
    const char *second = strstr(text, "y f32");
    for (int i = 0; i < 20; i++) {
        char number[8];
        snprintf(number, sizeof number, i % 4 ? " %d" : "[%d", i);
        ck_assert_msg(contains(text, number) && contains(second, number), "%s is missing: %s", number, text);
    }
}
END_TEST

/* The numbers of a row of the table; a loss after a step that was not made is NAN. */
typedef struct row {
    char mode[16], how[16], labels[16];
    double loss, norm0, norm1, after;
} row;

static row row_of(const char *line)
{
    row r;
    char after[32];
    int n =
        sscanf(line, "%15s %15s %15s %lf %lf %lf %31s", r.mode, r.how, r.labels, &r.loss, &r.norm0, &r.norm1, after);
    ck_assert_msg(n == 7, "%s", line);
    r.after = after[0] == '-' ? NAN : atof(after);
    return r;
}

/* The same in plain loops: two matmuls, mean squared error, one step of rate 0.02. */
enum { SAMPLES = 16, IN = 784, HIDDEN = 784, OUT = 10 };

/* c [m, n] = a [m, k] b [k, n] */
static double *product(int m, int k, int n, const double *a, const double *b)
{
    double *c = calloc((size_t)m * (size_t)n, sizeof *c);
    for (int i = 0; i < m; i++)
        for (int l = 0; l < k; l++)
            for (int j = 0; j < n; j++)
                c[i * n + j] += a[i * k + l] * b[l * n + j];
    return c;
}

static double *transposed(int m, int n, const double *a)
{
    double *t = malloc((size_t)m * (size_t)n * sizeof *t);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++)
            t[j * m + i] = a[i * n + j];
    return t;
}

static double *weights(uint32_t stream, int in, int out)
{
    double *w = malloc((size_t)in * (size_t)out * sizeof *w), bound = 1 / sqrt(in);
    for (int i = 0; i < in * out; i++)
        w[i] = plain_uniform(1, stream, 0, (uint64_t)i, -bound, bound);
    return w;
}

static double norm(int n, const double *a)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += a[i] * a[i];
    return sqrt(sum);
}

/* Returns the loss of x w0 w1; *h is x w0, d [SAMPLES, OUT] the gradient of the product. */
static double forward(const double *x, const double *w0, const double *w1, double **h, double *d)
{
    double loss = 0;
    *h = product(SAMPLES, IN, HIDDEN, x, w0);
    double *z = product(SAMPLES, HIDDEN, OUT, *h, w1);
    for (int i = 0; i < SAMPLES * OUT; i++) {
        double e = z[i] - sin(2.0 + i);
        loss += e * e / (SAMPLES * OUT);
        d[i] = 2 * e / (SAMPLES * OUT);
    }
    free(z);
    return loss;
}

static row plain_row(void)
{
    row r = {.after = 0};
    double x[SAMPLES * IN], d[SAMPLES * OUT], *h, *w0 = weights(0, IN, HIDDEN), *w1 = weights(1, HIDDEN, OUT);
    for (int i = 0; i < SAMPLES * IN; i++)
        x[i] = sin(1.0 + i);
    r.loss = forward(x, w0, w1, &h, d);
    double *ht = transposed(SAMPLES, HIDDEN, h), *w1t = transposed(HIDDEN, OUT, w1), *xt = transposed(SAMPLES, IN, x);
    double *g1 = product(HIDDEN, SAMPLES, OUT, ht, d), *dh = product(SAMPLES, OUT, HIDDEN, d, w1t);
    double *g0 = product(IN, SAMPLES, HIDDEN, xt, dh);
    r.norm0 = norm(IN * HIDDEN, g0);
    r.norm1 = norm(HIDDEN * OUT, g1);
    for (int i = 0; i < IN * HIDDEN; i++)
        w0[i] -= 0.02 * g0[i];
    for (int i = 0; i < HIDDEN * OUT; i++)
        w1[i] -= 0.02 * g1[i];
    free(h);
    r.after = forward(x, w0, w1, &h, d);
    double *all[] = {h, ht, w1t, xt, g1, dh, g0, w0, w1};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    return r;
}

static void check_row(const row *r, const row *wanted)
{
    ck_assert_msg(fabs(r->loss - wanted->loss) < 1e-10 && fabs(r->norm0 - wanted->norm0) < 1e-10 &&
                      fabs(r->norm1 - wanted->norm1) < 1e-10,
                  "%s %s %s: %.12g %.12g %.12g, not %.12g %.12g %.12g", r->mode, r->how, r->labels, r->loss, r->norm0,
                  r->norm1, wanted->loss, wanted->norm0, wanted->norm1);
    bool host = !strcmp(r->labels, "host");
    ck_assert_int_eq(host, !isnan(r->after));
    ck_assert(!host || fabs(r->after - wanted->after) < 1e-10);
}

START_TEST(demo_mlp_gives_the_loss_and_gradients_of_plain_loops_in_all_variants)
{
    row wanted = plain_row();
    char *text = strdup(text_of(run("./demo_mlp"))), *rest = NULL;
    ck_assert_ptr_nonnull(strtok_r(text, "\n", &rest));
    for (int i = 0; i < 12; i++) {
        row r = row_of(strtok_r(NULL, "\n", &rest));
        check_row(&r, &wanted);
    }
    const char *last = strtok_r(NULL, "\n", &rest);
    ck_assert_msg(!strncmp(last, "largest relative difference ", 28) && atof(last + 28) < 1e-10, "%s", last);
    ck_assert_ptr_null(strtok_r(NULL, "\n", &rest));
    free(text);
}
END_TEST

START_TEST(demo_mlp_runs_the_one_variant_that_is_asked_for)
{
    row r = row_of(last_line(text_of(run("./demo_mlp --mode mp --eager --host"))));
    ck_assert_str_eq(r.mode, "mp");
    ck_assert_str_eq(r.how, "eager");
    ck_assert_str_eq(r.labels, "host");
}
END_TEST

/* ---- A rule of one's own ---- */

/* AdaGrad in plain loops. */
START_TEST(own_rule_fits_as_plain_loops_do)
{
    enum { N = 64 };
    double slope = 0, offset = 0, s[2] = {0}, loss = 0;
    for (int step = 0; step < 40; step++) {
        double g[2] = {0}, last = 0;
        for (int i = 0; i < N; i++) {
            double x = (double)i / N, wrong = slope * x + offset - (3 * x - 1);
            g[0] += 2 * wrong * x / N;
            g[1] += 2 * wrong / N;
            last += i >= N / 2 ? wrong * wrong / (N / 2) : 0; /* of the second micro-step */
        }
        loss = last;
        slope -= g[0] / sqrt(s[0] += g[0] * g[0]);
        offset -= g[1] / sqrt(s[1] += g[1] * g[1]);
    }
    double printed[2];
    ck_assert_int_eq(sscanf(text_of(run("./own_rule")), "after 40 updates the slope is %lf, the last loss %lf",
                            &printed[0], &printed[1]),
                     2);
    ck_assert_msg(fabs(printed[0] - slope) < 1e-11 && fabs(printed[1] - loss) < 1e-11, "%.12f %.12f, not %.12f %.12f",
                  printed[0], printed[1], slope, loss);
    ck_assert(contains(text_of(run("./own_rule --plan=steps")), "the last micro-step of a cycle goes on"));
}
END_TEST

/* ---- Ops of one's own ---- */

/* Both ops, their gradients and plain descent in plain loops. */
START_TEST(own_op_fits_as_plain_loops_do)
{
    enum { N = 64, K = 8 };
    double x[N][K], y[N], w[K] = {0}, scale[K], loss = 0, printed[3];
    for (int k = 0; k < K; k++)
        scale[k] = 1;
    for (int i = 0; i < N; i++) {
        double sum = 0;
        for (int k = 0; k < K; k++) {
            x[i][k] = sin(1 + i * (k + 1));
            sum += x[i][k] * x[i][k];
        }
        y[i] = (2 * x[i][0] - x[i][K - 1]) / sqrt(sum / K + 1e-6) + (i % 8 == 7 ? 50 : 0);
    }
    for (int step = 0; step < 200; step++) {
        double dw[K] = {0}, dscale[K] = {0};
        loss = 0;
        for (int i = 0; i < N; i++) {
            double sum = 0, d = -y[i], along = 0;
            for (int k = 0; k < K; k++)
                sum += x[i][k] * scale[k] * x[i][k] * scale[k];
            double r = sqrt(sum / K + 1e-6);
            for (int k = 0; k < K; k++)
                d += x[i][k] * scale[k] / r * w[k];
            double slope = (d < -1 ? -1 : d > 1 ? 1 : d) / N;
            loss += (fabs(d) <= 1 ? d * d / 2 : fabs(d) - 0.5) / N;
            for (int k = 0; k < K; k++) {
                dw[k] += slope * x[i][k] * scale[k] / r;
                along += slope * w[k] * x[i][k] * scale[k];
            }
            for (int k = 0; k < K; k++) /* of z_k / r by z_k, z = x scale */
                dscale[k] += x[i][k] * (slope * w[k] / r - along * x[i][k] * scale[k] / (K * r * r * r));
        }
        for (int k = 0; k < K; k++) {
            w[k] -= 0.5 * dw[k];
            scale[k] -= 0.5 * dscale[k];
        }
    }
    const char *text = text_of(run("./own_op"));
    ck_assert_msg(contains(text, "huber: ") && contains(text, "unit_rows: ") && contains(text, "tried, 0 wrong"), "%s",
                  text);
    const char *line = strstr(text, "after 200");
    ck_assert_msg(line && sscanf(line, "after 200 steps w is %lf ... %lf, the loss %lf", &printed[0], &printed[1],
                                 &printed[2]) == 3,
                  "%s", text);
    ck_assert_msg(fabs(printed[0] - w[0]) < 1e-8 && fabs(printed[1] - w[K - 1]) < 1e-8 &&
                      fabs(printed[2] - loss) < 1e-8,
                  "%s, not %.9f ... %.9f, %.9f", line, w[0], w[K - 1], loss);
    ck_assert(contains(text_of(run("./own_op --plan=steps")), "huber"));
}
END_TEST

/* ---- Plans ---- */

START_TEST(hello_mesh_shows_its_reshard_instead_of_running)
{
    const char *text = text_of(run("./hello_mesh --plan"));
    ck_assert_msg(!strncmp(text, "rank 0: ", 8) && contains(text, "S(0),S(1) -> S(1),R"), "%s", text);
    ck_assert_msg(contains(text, "its processes lack 120 B") && !contains(text, "x f32[5,4] as"), "%s", text);
    ck_assert(contains(text_of(run("./hello_mesh --plan=steps")), "copy     place 0"));
}
END_TEST

START_TEST(demo_mlp_shows_the_variant_that_is_asked_for)
{
    const char *text = text_of(run("./demo_mlp --plan"));
    ck_assert_msg(!strncmp(text, "rank 0: ", 8) && !contains(text, "->") && !contains(text, "recorded"), "%s", text);
    ck_assert(contains(text_of(run("./demo_mlp --plan --mode mp")), "P(sum) -> R"));
    ck_assert(contains(text_of(run("./demo_mlp --mode dp --plan=steps")), " matmul "));
    ck_assert(contains(text_of(run("./demo_mlp --host --mode dp --plan=dot")), "digraph \"step\""));
}
END_TEST

/* A node for each op, layouts on the edges, a hexagon with its bytes for each change of layout. */
START_TEST(graphs_are_what_graphviz_takes)
{
    static const char *const programs[][4] = {
        {"hello_mesh", "digraph \"move\"", "label=\"S(0),S(1) -> S(1),R\\n0 B in", "S(1),R\"];"},
        {"demo_mlp --mode dp", "digraph \"gradients\"", "label=\"P(sum) -> R\\n0 B in", "label=\"matmul\""},
        {"demo_mlp --mode mp --host", "digraph \"step\"", "label=\"P(sum) -> R\\n0 B in", "label=\"mul\""}};
    bool draws = installed("dot");
    for (int i = 0; i < 3; i++) {
        const char *text = text_of(run("./%s --plan=dot", programs[i][0]));
        for (int k = 1; k < 4; k++)
            ck_assert_msg(contains(text, programs[i][k]), "no '%s' in %.4000s", programs[i][k], text);
        if (draws)
            ck_assert(contains(text_of(run("./%s --plan=dot | dot -Tsvg", programs[i][0])), "</svg>"));
    }
}
END_TEST

START_TEST(trama_info_names_versions_topology_workers_and_places)
{
    const char *text = text_of(run("./trama info"));
    ck_assert(contains(text, "trama ") && contains(text, "rank 0 of 1") && contains(text, "workers"));
    ck_assert_msg(contains(text, "built with: StarPU ") && contains(text, "hwloc ") && contains(text, "NUMA domains"),
                  "%s", text);
    ck_assert(contains(text, "kernels: ") && contains(text, "place 0: rank 0"));
    ck_assert(contains(text_of(run("OPENBLAS_CORETYPE=Haswell ./trama info")), ", as OPENBLAS_CORETYPE says;"));
    ck_assert(!contains(text_of(run("env -u OPENBLAS_CORETYPE ./trama info")), "OPENBLAS_CORETYPE"));
    ck_assert(contains(text_of(run("./trama --version")), "trama "));
    ck_assert(contains(text_of(run("./trama --help")), "info"));
}
END_TEST

TESTS(a_host_gets_its_product_twice, hello_mesh_prints_one_tensor_in_two_layouts,
      demo_mlp_gives_the_loss_and_gradients_of_plain_loops_in_all_variants,
      demo_mlp_runs_the_one_variant_that_is_asked_for, own_rule_fits_as_plain_loops_do, own_op_fits_as_plain_loops_do,
      hello_mesh_shows_its_reshard_instead_of_running, demo_mlp_shows_the_variant_that_is_asked_for,
      graphs_are_what_graphviz_takes, trama_info_names_versions_topology_workers_and_places)
