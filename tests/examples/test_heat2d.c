/* SPDX-License-Identifier: Apache-2.0 */
/* The heat equation: errors as plain loops have them, one state on every mesh, a picture that is one, wrong uses. */
#include "programs.h"
#include "strict.h"
#include "suite.h"

enum { N = 33, HEAT_STEPS = 150 };
#define SIZES "--n 33 --steps 150 "

static const double PI = 3.14159265358979323846;

/* The exact solution at time t. */
static double exact(double x, double y, double t)
{
    return exp(-2 * PI * PI * t) * sin(PI * x) * sin(PI * y) +
           exp(-13 * PI * PI * t) * sin(2 * PI * x) * sin(3 * PI * y) / 2;
}

/* The largest error of the scheme against the equation. */
static double plain_error(void)
{
    static double u[N][N], next[N][N];
    double h = 1.0 / (N - 1), most = 0;
    for (int i = 1; i < N - 1; i++)
        for (int j = 1; j < N - 1; j++)
            u[i][j] = exact(i * h, j * h, 0);
    for (int s = 0; s < HEAT_STEPS; s++) {
        for (int i = 1; i < N - 1; i++)
            for (int j = 1; j < N - 1; j++)
                next[i][j] = 0.2 * (u[i][j] + u[i - 1][j] + u[i + 1][j] + u[i][j - 1] + u[i][j + 1]);
        memcpy(u, next, sizeof u);
    }
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            most = fmax(most, fabs(u[i][j] - exact(i * h, j * h, HEAT_STEPS * 0.2 * h * h)));
    return most;
}

/* The output but for the first line, which names the mesh, and the last one, which has the speed. */
static const char *middle_of(const char *text)
{
    static char middle[1024];
    const char *from = strchr(text, '\n');
    ck_assert_msg(from && contains(last_line(text), "million point updates a second"), "%s", text);
    snprintf(middle, sizeof middle, "%.*s", (int)(last_line(text) - from - 1), from + 1);
    return middle;
}

START_TEST(errors_are_those_of_plain_loops)
{
    double error, allowed, scheme, rounding;
    const char *text = text_of(run("./heat2d " SIZES));
    ck_assert_msg(!strncmp(text, "n 33, mesh 1, 150 steps, time 0.0292969\n", 40), "%s", text);
    ck_assert_msg(sscanf(middle_of(text),
                         "against the equation: error %lf, at most %lf allowed\n"
                         "against the scheme: error %lf, at most %lf allowed",
                         &error, &allowed, &scheme, &rounding) == 4,
                  "%s", text);
    double wanted = plain_error();
    ck_assert_msg(fabs(error - wanted) < 1e-3 * wanted, "%g, not %g", error, wanted);
    ck_assert_msg(error < allowed && allowed < 10 * error, "%g is no bound of %g", allowed, error);
    ck_assert_msg(scheme < rounding && rounding < 1e-12, "%g of %g", scheme, rounding);
}
END_TEST

/* Of a quarter of h^2 there is a quarter of the error, at one time. */
START_TEST(the_error_is_of_second_order)
{
    double coarse, fine;
    sscanf(middle_of(text_of(run("./heat2d --n 21 --steps 100"))), "against the equation: error %lf", &coarse);
    sscanf(middle_of(text_of(run("./heat2d --n 41 --steps 400"))), "against the equation: error %lf", &fine);
    ck_assert_msg(fabs(coarse / fine - 4) < 0.2, "%g, then %g", coarse, fine);
}
END_TEST

START_TEST(every_mesh_gives_the_same_bits)
{
    static const struct {
        const char *launcher, *mesh;
    } tries[] = {{"", "2"},          {"", "2,2"},          {"", "3,5"},
                 {"", "[2,1],1"},    {"", "1,3"},          {"", "y=2,x=2:3,1,0,2"},
                 {MPIRUN "2 ", "2"}, {MPIRUN "2 ", "2,2"}, {MPIRUN "4 ", "2,2"},
                 {MPIRUN "4 ", "4"}};
    char wanted[1024];
    snprintf(wanted, sizeof wanted, "%s", middle_of(text_of(run("./heat2d " SIZES))));
    ck_assert_msg(contains(wanted, "\nchecksum "), "%s", wanted);
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        if (*tries[i].launcher && !TRAMA_HAVE_MPI) {
            printf("skipped: several ranks, this build has no MPI\n");
            return;
        }
        const char *text =
            text_of(run("%s./heat2d " SIZES "--mesh '%s' 2>/dev/null", tries[i].launcher, tries[i].mesh));
        const char *middle = middle_of(text);
        ck_assert_msg(!strcmp(middle, wanted), "%s%s: %s, not %s", tries[i].launcher, tries[i].mesh, middle, wanted);
    }
}
END_TEST

static const char *drawing(void)
{
    static char text[1 << 20];
    FILE *file = fopen(in_scratch("heat.svg"), "rb");
    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    return text;
}

/* With 4 processes that only links delay, blocks receive half of the bytes of rows: the search finds them. */
START_TEST(layouts_are_chosen_by_their_times)
{
    static const char links[] = "kind n\n core memory 1000GB/s\n core f64 1000Gflop/s\n task 0s\n message 0s\n"
                                " switch s\n nodes 4 n in s 10MB/s 0s\n";
    FILE *file = fopen(in_scratch("links"), "wb");
    ck_assert(file && fwrite(links, sizeof links - 1, 1, file) == 1 && !fclose(file));
    char wanted[1024];
    snprintf(wanted, sizeof wanted, "%s", middle_of(text_of(run("./heat2d " SIZES))));
    for (int ranks = 1; ranks <= (TRAMA_HAVE_MPI ? 4 : 1); ranks *= 2) {
        const char *text = text_of(run("%s./heat2d " SIZES "--auto '%s' --picture '%s' 2>/dev/null",
                                       ranks == 1   ? ""
                                       : ranks == 2 ? MPIRUN "2 "
                                                    : MPIRUN "4 ",
                                       in_scratch("links"), in_scratch("heat.svg"))),
                   *run_of = strstr(text, "n 33, mesh ");
        ck_assert_msg(contains(text, "  chosen\n") && run_of, "%s", text);
        ck_assert_msg(!strcmp(middle_of(run_of), wanted), "%s", text);
        ck_assert(contains(run_of, ranks == 1 ? "mesh dp=1," : ranks == 2 ? "mesh dp=2," : "mesh dp=2,mp=2,"));
        ck_assert(ranks < 4 || contains(drawing(), "<title>process 3: rows 17 to 32, columns 17 to 32</title>"));
    }
}
END_TEST

START_TEST(a_square_of_one_inner_point_on_more_processes_than_rows)
{
    char wanted[1024];
    snprintf(wanted, sizeof wanted, "%s", middle_of(text_of(run("./heat2d --n 3 --steps 5"))));
    ck_assert_str_eq(middle_of(text_of(run("./heat2d --n 3 --steps 5 --mesh 5,2"))), wanted);
}
END_TEST

/* ---- The picture ---- */

static int count_of(const strict *s, const char *element, const char *attribute)
{
    int n = 0;
    for (int i = 0; i < s->n; i++)
        n += xml_is(s, i, element) && (!attribute || xml_attribute(s, i, attribute));
    return n;
}

START_TEST(the_picture_has_cells_a_scale_and_the_borders_of_processes)
{
    text_of(run("%s./heat2d --n 80 --steps 10 --mesh y=2,x=3 --picture '%s' 2>/dev/null",
                TRAMA_HAVE_MPI ? MPIRUN "2 " : "", in_scratch("heat.svg")));
    const char *svg = drawing();
    strict s = xml_parse(svg);
    ck_assert(xml_is(&s, 0, "svg") && contains(svg, "xmlns=\"http://www.w3.org/2000/svg\""));
    ck_assert(contains(svg, "<title>heat on 80 x 80 points, mesh y=2,x=3, time 0.000320461</title>"));
    ck_assert_int_eq(count_of(&s, "rect", "class"), 6);
    ck_assert(contains(svg, "<title>process 5: rows 40 to 79, columns 54 to 79</title>"));
    ck_assert_int_eq(count_of(&s, "rect", NULL), 1 + 64 * 64 + 6 + 64); /* background, cells, processes, scale */
    ck_assert_int_eq(count_of(&s, "text", NULL), 1 + 5);
    free(s.nodes);
    if (installed("xmllint"))
        text_of(run("xmllint --noout '%s'", in_scratch("heat.svg")));
}
END_TEST

/* Of 3 x 3 points only the one in the middle is warm. */
START_TEST(the_warmest_cell_is_the_lightest)
{
    text_of(run("./heat2d --n 3 --steps 1 --picture '%s'", in_scratch("heat.svg")));
    strict s = xml_parse(drawing());
    int cells = 0, warm = 0;
    for (int i = 0; i < s.n; i++) {
        const char *fill = xml_is(&s, i, "rect") ? xml_attribute(&s, i, "fill") : NULL;
        if (!fill || fabs(xml_double(&s, i, "width") - 512 / 3.0) > 0.01)
            continue;
        bool middle = fabs(xml_double(&s, i, "x") - 190.67) < 0.01 && fabs(xml_double(&s, i, "y") - 214.67) < 0.01;
        ck_assert_msg(!strncmp(fill, middle ? "#fde725" : "#440154", 7), "cell %d is %.7s", cells, fill);
        cells++;
        warm += middle;
    }
    ck_assert(cells == 9 && warm == 1);
    free(s.nodes);
}
END_TEST

/* ---- Uses ---- */

START_TEST(the_plan_is_shown_instead_of_running)
{
    const char *text = text_of(run("./heat2d --n 40 --mesh 2,2 --plan=steps"));
    ck_assert_msg(contains(text, "diffuse") && !contains(text, "checksum"), "%s", text);
    ck_assert(!strncmp(text_of(run("./heat2d --plan")), "rank 0: ", 8));
}
END_TEST

START_TEST(wrong_uses_are_told)
{
    static const wrong_use wrongs[] = {
        {" --auto builtin --mesh 2", "--mesh and --auto", "leave one of them out"},
        {" --n 2", "--n", "'2'"},
        {" --n 1e3", "--n", "'1e3'"},
        {" --steps 0", "--steps", "'0'"},
        {" --mesh 2,2,2", "--mesh", "one or two axes"},
        {" --mesh 0", "--mesh", "'0'"},
        {" --picture ''", "--picture", "name of a file"},
        {" --n 9 --steps 1 --picture /nowhere/heat.svg", "--picture", "/nowhere/heat.svg"},
        {" heat", "heat", "heat"},
        {" --plan=all", "--plan", "'all'"}};
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i += suite_stride())
        run_wrong("heat2d", &wrongs[i]);
}
END_TEST

TESTS(errors_are_those_of_plain_loops, the_error_is_of_second_order, every_mesh_gives_the_same_bits,
      layouts_are_chosen_by_their_times, a_square_of_one_inner_point_on_more_processes_than_rows,
      the_picture_has_cells_a_scale_and_the_borders_of_processes, the_warmest_cell_is_the_lightest,
      the_plan_is_shown_instead_of_running, wrong_uses_are_told)
