/* SPDX-License-Identifier: Apache-2.0 */
/* Each rank feeds its boxes, which it asks for before anything was fed. */
#include "context.h"
#include "harness.h"

enum { COLUMNS = 5, MOST_ROWS = 11, MOST_BOXES = 16 };

typedef struct work {
    trama_mesh *mesh;
    trama_program *p;
    trama_value *x, *y;
    trama_target *t;
    trama_executable *e;
} work;

static work work_new(const char *mesh, const char *layout, int64_t rows)
{
    work w = {.mesh = mesh_of(mesh), .p = trama_program_create()};
    w.x = trama_shard(trama_input(w.p, "x", TRAMA_I32, TRAMA_SHAPE(rows, COLUMNS)), w.mesh, layout);
    w.y = trama_neg(w.x);
    w.t = trama_target_create(w.p, "t", w.y);
    w.e = compile(w.p);
    return w;
}

static void work_free(work *w)
{
    must(trama_executable_destroy(&w->e));
    trama_program_destroy(&w->p);
    trama_mesh_destroy(&w->mesh);
}

typedef struct asked {
    int n;
    int64_t offset[MOST_BOXES][2], extent[MOST_BOXES][2];
} asked;

static asked ask(const work *w, int rows)
{
    asked a;
    must(trama_feed_local_count(w->e, w->x, TRAMA_SHAPE(rows, COLUMNS), &a.n));
    demand(a.n <= MOST_BOXES, "%d boxes", a.n);
    for (int i = 0; i < a.n; i++)
        must(trama_feed_local_box(w->e, w->x, TRAMA_SHAPE(rows, COLUMNS), i, a.offset[i], a.extent[i]));
    return a;
}

/* Element (i, j) is 100 i + j + 1 + salt. */
static void feed(const work *w, const asked *a, int rows, int salt)
{
    static int32_t numbers[MOST_BOXES][MOST_ROWS * COLUMNS];
    const void *pieces[MOST_BOXES];
    for (int k = 0; k < a->n; k++) {
        int at = 0;
        for (int64_t i = 0; i < a->extent[k][0]; i++)
            for (int64_t j = 0; j < a->extent[k][1]; j++)
                numbers[k][at++] = (int32_t)(100 * (a->offset[k][0] + i) + a->offset[k][1] + j) + 1 + salt;
        pieces[k] = at ? numbers[k] : NULL;
    }
    must(trama_feed_local(w->e, w->x, TRAMA_SHAPE(rows, COLUMNS), a->n, pieces));
}

static void check(const work *w, int rows, int salt, const char *name)
{
    int32_t y[MOST_ROWS * COLUMNS];
    must(trama_run(w->e, w->t));
    must(trama_read(w->e, w->y, y, (size_t)(rows * COLUMNS) * sizeof *y));
    for (int i = 0; i < rows * COLUMNS; i++)
        demand(y[i] == -(100 * (i / COLUMNS) + i % COLUMNS + 1 + salt), "%s, %d rows: element %d is %d", name, rows, i,
               y[i]);
}

/* After the feed the boxes are told as before. */
static void compare(const work *w, const asked *a, const char *name)
{
    int n;
    must(trama_local_count(w->e, w->x, &n));
    demand(n == a->n, "%s: %d boxes were told, there are %d", name, a->n, n);
    for (int i = 0; i < n; i++) {
        int64_t offset[2], extent[2];
        must(trama_local_box(w->e, w->x, i, offset, extent));
        demand(!memcmp(offset, a->offset[i], sizeof offset) && !memcmp(extent, a->extent[i], sizeof extent),
               "%s: box %d is another one", name, i);
    }
}

static const struct {
    const char *mesh, *layout;
} cases[] = {{"1", "R"},
             {"2", "S(0)"},
             {"2", "S(1)"},
             {"4", "S(0)"},
             {"3", "S(0)"},
             {"4", "R"},
             {"2,2", "S(0),S(1)"},
             {"2,2", "S(0)[1],S(0)[0]"},
             {"2,2", "R,S(0)"},
             {"[20,1]", "S(0)"},
             {"[1,3],[2,1]", "S(1),S(0)"},
             {"8", "S(0)"},
             {"2:1,0", "S(0)"},
             {"3,2", "S(1),S(0)"},
             {"7", "S(1)"}};

START_TEST(boxes_are_told_before_the_first_feed)
{
    static const int rows[] = {7, 0, 1, MOST_ROWS, 8, 3};
    start_with(&(trama_config){.check_calls = true});
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        work w = work_new(cases[i].mesh, cases[i].layout, TRAMA_ANY);
        shard_pool_state before = shard_pool(ctx);
        for (int k = 0; k < 6; k++)
            ask(&w, rows[k]);
        demand(shards_equal(before, shard_pool(ctx)), "%s: asking makes buffers", cases[i].mesh);
        for (int k = 0; k < 6; k++) {
            asked a = ask(&w, rows[k]);
            feed(&w, &a, rows[k], k);
            check(&w, rows[k], k, cases[i].layout);
            compare(&w, &a, cases[i].layout);
        }
        work_free(&w);
    }
    stop();
}
END_TEST

START_TEST(boxes_of_known_extents_are_told_too)
{
    start();
    for (int rows = 0; rows <= MOST_ROWS; rows += 3) {
        work w = work_new("4", "S(0)", rows);
        asked a = ask(&w, rows);
        feed(&w, &a, rows, 0);
        check(&w, rows, 0, "known");
        work_free(&w);
    }
    stop();
}
END_TEST

START_TEST(one_rank_may_ask_alone_and_as_often_as_it_likes)
{
    start_with(&(trama_config){.check_calls = true});
    work w = work_new("4", "S(0)", TRAMA_ANY);
    for (int round = 0; round < 3; round++) {
        for (int rows = 0; rows < 60 && my_rank == 0; rows++)
            must(trama_feed_local_count(w.e, w.x, TRAMA_SHAPE(rows, COLUMNS), &(int){0}));
        asked a = ask(&w, 9);
        feed(&w, &a, 9, round);
        check(&w, 9, round, "alone");
    }
    work_free(&w);
    stop();
}
END_TEST

START_TEST(boxes_of_what_cannot_be_fed_are_refused)
{
    start();
    work w = work_new("2", "S(0)", TRAMA_ANY);
    trama_shape fits = TRAMA_SHAPE(4, COLUMNS), other = TRAMA_SHAPE(4, COLUMNS + 1);
    int64_t offset[2], extent[2];
    int n;
    expect_here(trama_feed_local_count(w.e, w.x, other, &n), TRAMA_E_SHAPE, "trama_feed_local_count", "[4,6]", "x");
    expect_here(trama_feed_local_count(w.e, w.x, TRAMA_SHAPE(-1, COLUMNS), &n), TRAMA_E_SHAPE, "x");
    expect_here(trama_feed_local_count(w.e, w.y, fits, &n), TRAMA_E_ARGUMENT, "is no input");
    expect_here(trama_feed_local_count(NULL, w.x, fits, &n), TRAMA_E_ARGUMENT, "the executable is NULL");
    expect_here(trama_feed_local_count(w.e, NULL, fits, &n), TRAMA_E_ARGUMENT, "the value is NULL");
    expect_here(trama_feed_local_count(w.e, w.x, fits, NULL), TRAMA_E_ARGUMENT, "number's address is NULL");
    must(trama_feed_local_count(w.e, w.x, fits, &n));
    expect_here(trama_feed_local_box(w.e, w.x, fits, n, offset, extent), TRAMA_E_ARGUMENT, "there is no box");
    expect_here(trama_feed_local_box(w.e, w.x, fits, -1, offset, extent), TRAMA_E_ARGUMENT, "there is no box -1");
    if (n) {
        expect_here(trama_feed_local_box(w.e, w.x, fits, 0, NULL, extent), TRAMA_E_ARGUMENT,
                    "offset or extent is NULL");
        expect_here(trama_feed_local_box(w.e, w.x, fits, 0, offset, NULL), TRAMA_E_ARGUMENT,
                    "offset or extent is NULL");
    }
    work_free(&w);
    stop();
}
END_TEST

TESTS(boxes_are_told_before_the_first_feed, boxes_of_known_extents_are_told_too,
      one_rank_may_ask_alone_and_as_often_as_it_likes, boxes_of_what_cannot_be_fed_are_refused)
