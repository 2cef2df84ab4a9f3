/* SPDX-License-Identifier: Apache-2.0 */
/* The worked example of dist/README.md: what the page prints is what planning says. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simulation.h"
#include "suite.h"
#include "trama_complete.h"
#include "trama_ops.h"
#include "trama_optimizer.h"

static char *read_page(void)
{
    FILE *file = fopen(TRAMA_TEST_FOLDER "/../../dist/README.md", "r");
    ck_assert_ptr_nonnull(file);
    char *page = calloc(1, 1 << 20);
    ck_assert_uint_gt(fread(page, 1, (1 << 20) - 1, file), 0);
    fclose(file);
    return page;
}

/* Every line of the text stands in the page, behind the one before it. */
static int expect_lines(const char *page, const char *lines)
{
    int n = 0;
    for (const char *line = lines; *line; n++) {
        int length = (int)strcspn(line, "\n");
        char wanted[400];
        ck_assert_int_lt(length, (int)sizeof wanted - 2);
        snprintf(wanted, sizeof wanted, "\n%.*s\n", length, line);
        const char *at = strstr(page, wanted);
        ck_assert_msg(at != NULL, "dist/README.md lacks the line, or has it too early: %.*s", length, line);
        page = at + length;
        line += length + (line[length] == '\n');
    }
    return n;
}

START_TEST(the_page_prints_what_planning_says)
{
    trama_mesh *mesh = trama_mesh_create("dp=2");
    trama_program *p = trama_program_create();
    trama_value *x = trama_input(p, "x", TRAMA_F32, TRAMA_SHAPE(5, 3));
    trama_value *w = trama_parameter(p, "w", TRAMA_F32, TRAMA_SHAPE(3, 2), NULL);
    trama_value *y = trama_matmul_at(trama_where_of("main.c", 5), x, w, false, false);
    trama_value *loss = trama_mean_at(trama_where_of("main.c", 6), y, 0, NULL, false);
    trama_shard(x, mesh, "S(0)");
    trama_optimizer sgd = trama_sgd(0.1);
    trama_target *train =
        trama_target_create(p, "train", trama_minimize_at(trama_where_of("main.c", 9), loss, &sgd), loss);
    char *page = read_page(), *completed;
    ck_assert_int_eq(trama_complete_text(p, 64, &completed), TRAMA_OK);
    ck_assert_int_eq(expect_lines(page, completed), 10);

    machine *m = simulation_machine(2, 1, 1);
    simulation_options options = {.plan = {.grain_flops = 2000000, .grain_bytes = 65536}};
    simulation *s = simulation_new(p, m, &options);
    dense data = dense_random(TRAMA_SHAPE(5, 3), 1, -1, 1, false);
    simulation_feed(s, x, &data);
    simulation_run(s, train);
    text steps = {0};
    plan_describe(simulation_plan(s, 0), p, &steps);
    ck_assert_int_eq(expect_lines(page, steps.at), 7);
    ck_assert_int_eq(simulation_traffic(s).bytes, 2 * 6 * (int)sizeof(float));

    free(steps.at);
    free(completed);
    free(page);
    dense_free(&data);
    simulation_destroy(&s);
    machine_destroy(&m);
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {the_page_prints_what_planning_says};
    return suite_run("worked example", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
