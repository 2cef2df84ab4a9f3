/* SPDX-License-Identifier: Apache-2.0 */
/* examples/cg: the plain algorithm's iterations and solution, on every mesh and number of ranks. */
#include <math.h>

#include "programs.h"

typedef struct printed {
    char mesh[32];
    long long iterations, submitted;
    double residual, error;
} printed;

static printed printed_by(const outcome *o)
{
    printed p;
    const char *line = last_line(text_of(o));
    int n =
        sscanf(line,
               "n %*d, mesh %31[^:]: %lld iterations, relative residual %lf, largest error %lf, %*f ms an iteration "
               "(%lld submitted)",
               p.mesh, &p.iterations, &p.residual, &p.error, &p.submitted);
    ck_assert_msg(n == 5, "%s", o->text);
    return p;
}

/* ---- The same in plain loops ---- */

static double entry(int i, int j, int band)
{
    const int far = abs(i - j);
    return far > band ? 0 : 1.0 / ((1 + far) * (1 + far));
}

static double product(int n, int band, const double *p, double *q)
{
    double dot = 0;
    for (int i = 0; i < n; i++) {
        q[i] = 0;
        for (int j = 0; j < n; j++)
            q[i] += entry(i, j, band) * p[j];
        dot += q[i] * p[i];
    }
    return dot;
}

/* Iterations to that tolerance; x [n] is the solution. */
static int plain_cg(int n, int band, double tolerance, double *x)
{
    double *memory = calloc(3 * (size_t)n, sizeof *memory), *r = memory, *p = r + n, *q = p + n, rho = 0;
    int taken = 0;
    for (int i = 0; i < n; i++)
        x[i] = sin(i) + 0.5;
    product(n, band, x, r);
    for (int i = 0; i < n; i++) {
        x[i] = 0;
        p[i] = r[i];
        rho += r[i] * r[i];
    }
    const double limit = tolerance * tolerance * rho;
    for (; rho > limit; taken++) {
        double alpha = rho / product(n, band, p, q), next = 0;
        for (int i = 0; i < n; i++) {
            x[i] += alpha * p[i];
            r[i] -= alpha * q[i];
            next += r[i] * r[i];
        }
        for (int i = 0; i < n; i++)
            p[i] = r[i] + next / rho * p[i];
        rho = next;
    }
    free(memory);
    return taken;
}

/* ---- */

typedef struct system_of {
    int n, band;
    double tolerance;
} system_of;

static void check_on(const system_of *s, int ranks, const char *mesh, int lag)
{
    static char file[4096];
    double *x = calloc((size_t)s->n, sizeof *x), *got = calloc((size_t)s->n, sizeof *got), largest = 0;
    const int iterations = plain_cg(s->n, s->band, s->tolerance, x);
    char launcher[512] = "";
    snprintf(file, sizeof file, "cg-%d.x", (int)getpid());
    if (ranks > 1)
        snprintf(launcher, sizeof launcher, MPIRUN "%d ", ranks);
    const printed p = printed_by(run("%s./cg --n %d --band %d --tolerance %g --mesh %s --lag %d --solution %s",
                                     launcher, s->n, s->band, s->tolerance, mesh, lag, file));
    ck_assert_msg(p.iterations == iterations, "mesh %s, %d ranks: %lld iterations instead of %d", mesh, ranks,
                  p.iterations, iterations);
    ck_assert_msg(p.submitted == iterations + lag, "a lag of %d: %lld steps for %d iterations", lag, p.submitted,
                  iterations);
    ck_assert_msg(!strcmp(p.mesh, mesh) && p.residual <= s->tolerance, "mesh %s, residual %g", p.mesh, p.residual);
    char path[8192];
    snprintf(path, sizeof path, "%s/%s", getenv("TRAMA_EXAMPLES_DIR"), file);
    FILE *f = fopen(path, "rb");
    ck_assert(f && fread(got, sizeof *got, (size_t)s->n, f) == (size_t)s->n);
    fclose(f);
    remove(path);
    for (int i = 0; i < s->n; i++) {
        ck_assert_msg(fabs(got[i] - x[i]) < 2e-12, "mesh %s, %d ranks: x[%d] is %.17g instead of %.17g", mesh, ranks, i,
                      got[i], x[i]);
        largest = fmax(largest, fabs(got[i] - sin(i) - 0.5));
    }
    ck_assert_msg(fabs(p.error - largest) <= 0.01 * largest + 1e-14, "error %g instead of %g", p.error, largest);
    free(x);
    free(got);
}

static const system_of dense = {333, 1 << 20, 1e-10}, banded = {401, 3, 1e-12};

START_TEST(iterations_and_solution_are_the_plain_ones_on_every_mesh)
{
    static const char *const meshes[] = {"1", "2", "3", "2,2", "1,3", "2,1,2", "[3,1]"};
    for (size_t i = 0; i < sizeof meshes / sizeof *meshes; i++) {
        check_on(&dense, 1, meshes[i], 2);
        check_on(&banded, 1, meshes[i], 2);
    }
}
END_TEST

#if TRAMA_HAVE_MPI
START_TEST(and_on_every_number_of_ranks)
{
    check_on(&dense, 2, "2", 2);
    check_on(&dense, 2, "1,2", 1);
    check_on(&dense, 4, "4", 3);
    check_on(&dense, 4, "2,2", 2);
    check_on(&banded, 4, "2", 2); /* two ranks have nothing */
    check_on(&banded, 2, "3", 0);
}
END_TEST
#endif

/* Without a mesh, on layouts that are chosen for a machine. */
START_TEST(chosen_layouts_take_the_iterations_of_plain_loops)
{
    double *x = calloc((size_t)dense.n, sizeof *x);
    const int iterations = plain_cg(dense.n, dense.band, dense.tolerance, x);
    for (int ranks = 1; ranks <= (TRAMA_HAVE_MPI ? 2 : 1); ranks++) {
        const outcome *o =
            run("%s./cg --n %d --tolerance %g --auto builtin", ranks > 1 ? MPIRUN "2 " : "", dense.n, dense.tolerance);
        ck_assert_msg(contains(text_of(o), ranks > 1 ? "dp=2" : "dp=1") && contains(o->text, "chosen"), "%s", o->text);
        const printed p = printed_by(o);
        ck_assert_msg(p.iterations == iterations && !strcmp(p.mesh, "chosen"), "%s", o->text);
        ck_assert_msg(p.error < 1e-8, "error %g", p.error);
    }
    free(x);
}
END_TEST

/* Steps after the end change nothing, not even where r has become 0. */
START_TEST(late_steps_do_no_harm)
{
    static const system_of small = {3, 1 << 20, 1e-14}, one = {1, 1 << 20, 1e-10};
    check_on(&small, 1, "2", 40);
    check_on(&one, 1, "4", 40);
    check_on(&dense, 1, "2", 0);
    check_on(&dense, 1, "2", 7);
}
END_TEST

START_TEST(what_is_not_solved_says_so)
{
    const outcome *o = run("./cg --n 100 --most 3");
    ck_assert_msg(o->status == 1 && contains(o->text, "not solved in 3 steps"), "status %d: %s", o->status, o->text);
    ck_assert(contains(text_of(run("./cg --plan=steps --mesh 2")), "matmul"));
    static const wrong_use wrong[] = {{" --n 0", "--n", "0"},       {" --mesh 0", "--mesh", "0"},
                                      {" --lag -1", "--lag", "-1"}, {" --tolerance 0", "--tolerance", "0"},
                                      {" --band x", "--band", "x"}, {" more", "cg", "more"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        run_wrong("cg", &wrong[i]);
}
END_TEST

#if TRAMA_HAVE_MPI
TESTS(iterations_and_solution_are_the_plain_ones_on_every_mesh, and_on_every_number_of_ranks,
      chosen_layouts_take_the_iterations_of_plain_loops, late_steps_do_no_harm, what_is_not_solved_says_so)
#else
TESTS(iterations_and_solution_are_the_plain_ones_on_every_mesh, chosen_layouts_take_the_iterations_of_plain_loops,
      late_steps_do_no_harm, what_is_not_solved_says_so)
#endif
