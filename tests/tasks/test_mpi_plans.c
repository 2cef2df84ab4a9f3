/* SPDX-License-Identifier: Apache-2.0 */
/* Plans that come and go: all ranks keep and forget the same ones. */
#include "harness.h"

enum { MOST = 64 };

typedef struct two_targets {
    trama_program *p;
    trama_value *x, *y, *z;
    trama_target *doubled, *squared;
    trama_executable *e;
} two_targets;

static void feed(const two_targets *t, int n)
{
    double in[MOST];
    for (int i = 0; i < n; i++)
        in[i] = n + i;
    must(trama_feed(t->e, t->x, in, TRAMA_SHAPE(n)));
}

static void run(const two_targets *t, bool squares, int n)
{
    double at[MOST];
    must(trama_run(t->e, squares ? t->squared : t->doubled));
    must(trama_read(t->e, squares ? t->z : t->y, at, (size_t)n * sizeof *at));
    for (int i = 0; i < n; i++) {
        double x = n + i, wanted = squares ? x * x : 2 * x;
        demand(at[i] == wanted, "element %d of %d is %g instead of %g", i, n, at[i], wanted);
    }
}

/* Only rank 0 has a piece of x: there the plans of runs import its buffers, on other ranks they import nothing. */
START_TEST(ranks_without_a_piece_forget_the_plans_that_others_forget)
{
    start();
    trama_mesh *mesh = mesh_of("1");
    two_targets t = {.p = trama_program_create()};
    t.x = trama_shard(trama_input(t.p, "x", TRAMA_F64, TRAMA_SHAPE(TRAMA_ANY)), mesh, "R");
    t.y = trama_add(t.x, t.x);
    t.z = trama_square(t.x);
    t.doubled = trama_target_create(t.p, "doubled", t.y);
    t.squared = trama_target_create(t.p, "squared", t.z);
    t.e = compile(t.p);
    for (int n = 1; n <= 2; n++) {
        feed(&t, n);
        run(&t, n == 2, n); /* which holds the inputs of 1 and 2 elements, where they are */
    }
    for (int n = 3; n <= 17; n++)
        feed(&t, n);
    for (int squares = 0; squares < 2; squares++)
        run(&t, squares, 17);
    for (int n = 18; n <= 30; n++) /* the first shapes are held no more, and others crowd them out */
        feed(&t, n);
    for (int n = 1; n <= 2; n++) {
        feed(&t, n);
        run(&t, n == 2, n);
    }
    must(trama_executable_destroy(&t.e));
    trama_program_destroy(&t.p);
    trama_mesh_destroy(&mesh);
    stop();
}
END_TEST

TESTS(ranks_without_a_piece_forget_the_plans_that_others_forget)
