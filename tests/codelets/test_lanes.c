/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes of works: a naive search of all ways through random works finds every pair in order that must be, and works
 * that share nothing are side by side. */
#include "lanes.h"

#include <stdint.h>

#include "views.h"

enum { MOST_WORKS = 120, MOST_BUFFERS = 12, MOST_USES = 4 };

typedef struct trial {
    int n, n_buffers;
    int n_uses[MOST_WORKS];
    lane_use uses[MOST_WORKS][MOST_USES];
    lane_place places[MOST_WORKS];
    bool before[MOST_WORKS][MOST_WORKS]; /* [i][j]: there is a way from i to j */
} trial;

static uint64_t state;

static int chance(int of)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)of);
}

static trial trial_new(int n, int n_buffers, int of_ten_write)
{
    trial t = {.n = n, .n_buffers = n_buffers};
    for (int i = 0; i < n; i++) {
        t.n_uses[i] = chance(MOST_USES + 1);
        for (int k = 0; k < t.n_uses[i]; k++)
            t.uses[i][k] = (lane_use){chance(n_buffers), chance(10) < of_ten_write};
    }
    return t;
}

static void reach(trial *t, int from, int to)
{
    if (from < 0)
        return;
    t->before[from][to] = true;
    for (int i = 0; i < from; i++)
        t->before[i][to] |= t->before[i][from];
}

/* Each lane in order, and after what it waits for. */
static void place(trial *t)
{
    int last[GPU_LANES] = {-1, -1, -1, -1};
    lanes *l = lanes_begin(t->n, t->n_buffers);
    for (int i = 0; i < t->n; i++) {
        const lane_place p = t->places[i] = lanes_add(l, t->n_uses[i], t->uses[i]);
        ck_assert(p.lane >= 0 && p.lane < GPU_LANES);
        reach(t, last[p.lane], i);
        last[p.lane] = i;
        for (int k = 0; k < GPU_LANES; k++) {
            ck_assert_int_lt(p.after[k], i);
            for (int m = 0; m < GPU_LANES && p.after[k] >= 0; m++)
                ck_assert_msg(!t->before[p.after[k]][i] && (p.after[m] < 0 || !t->before[p.after[k]][p.after[m]]),
                              "work %d waits for %d, which it need not", i, p.after[k]);
        }
        for (int k = 0; k < GPU_LANES; k++)
            reach(t, p.after[k], i);
    }
    for (int k = 0; k < GPU_LANES; k++)
        ck_assert_int_eq(lanes_last(l, k), last[k]);
    lanes_end(l);
}

static bool conflict(const trial *t, int i, int j)
{
    for (int a = 0; a < t->n_uses[i]; a++)
        for (int b = 0; b < t->n_uses[j]; b++)
            if (t->uses[i][a].buffer == t->uses[j][b].buffer && (t->uses[i][a].writes || t->uses[j][b].writes))
                return true;
    return false;
}

START_TEST(works_that_share_a_written_buffer_keep_their_order)
{
    for (int seed = 0; seed < 400; seed++) {
        state = (uint64_t)seed;
        trial t = trial_new(1 + chance(MOST_WORKS), 1 + chance(MOST_BUFFERS), chance(11));
        place(&t);
        for (int j = 0; j < t.n; j++)
            for (int i = 0; i < j; i++)
                ck_assert_msg(!conflict(&t, i, j) || t.before[i][j], "trial %d: %d may run after %d", seed, i, j);
    }
}
END_TEST

/* Four chains of ten works each, in turns. */
START_TEST(chains_that_share_nothing_are_side_by_side)
{
    trial t = {.n = 40, .n_buffers = 8};
    for (int i = 0; i < t.n; i++) {
        const int chain = i % 4;
        t.n_uses[i] = 2;
        t.uses[i][0] = (lane_use){2 * chain + i / 4 % 2, false};
        t.uses[i][1] = (lane_use){2 * chain + 1 - i / 4 % 2, true};
    }
    place(&t);
    for (int i = 0; i < t.n; i++) {
        ck_assert_int_eq(t.places[i].lane, i % 4);
        for (int k = 0; k < GPU_LANES; k++)
            ck_assert_int_eq(t.places[i].after[k], -1);
    }
}
END_TEST

/* A gradient that two works read: the next layer's goes on in its lane, the update in another, and the loss's end waits
 * for both. */
START_TEST(a_side_branch_leaves_its_lane_and_is_waited_for)
{
    const lane_use gradient[] = {{0, true}}, next[] = {{0, false}, {1, true}}, update[] = {{0, false}, {2, true}};
    const lane_use both[] = {{1, false}, {2, false}, {3, true}};
    lanes *l = lanes_begin(4, 4);
    const lane_place a = lanes_add(l, 1, gradient), b = lanes_add(l, 2, next), c = lanes_add(l, 2, update),
                     d = lanes_add(l, 3, both);
    ck_assert(a.lane == 0 && b.lane == 0 && c.lane == 1 && d.lane == 1);
    ck_assert_int_eq(c.after[0], 0);
    ck_assert_int_eq(d.after[0], 1);
    lanes_end(l);
}
END_TEST

RUN_TESTS("lanes", works_that_share_a_written_buffer_keep_their_order, chains_that_share_nothing_are_side_by_side,
          a_side_branch_leaves_its_lane_and_is_waited_for)
