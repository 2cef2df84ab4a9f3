/* SPDX-License-Identifier: Apache-2.0 */
/* Every pair of layouts on one, two and three axes, planned and interpreted. */
#include <check.h>
#include <string.h>

#include "change.h"
#include "choose.h"
#include "partition.h"
#include "suite.h"
#include "trama_reshard_plan.h"

static const int64_t shapes[][4] = {/* ndim, extents */
                                    {0},          {1, 0},       {1, 1},       {1, 2},       {1, 5},
                                    {1, 7},       {1, 8},       {1, 13},      {2, 5, 3},    {2, 4, 6},
                                    {2, 1, 7},    {2, 0, 3},    {2, 3, 2},    {2, 11, 1},   {2, 13, 8},
                                    {3, 5, 3, 2}, {3, 2, 2, 2}, {3, 1, 3, 7}, {3, 4, 0, 2}, {3, 7, 5, 3}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

static trama_shape shape_number(int i)
{
    return trama_shape_of((int)shapes[i][0], shapes[i] + 1);
}

/* All pairs of layouts on one mesh; every `stride`-th of them. One process a rank. */
static int64_t try_pairs_on(const trama_mesh *mesh, int64_t stride)
{
    machine *m[MACHINE_VARIANTS];
    for (int v = 0; v < MACHINE_VARIANTS; v++)
        machine_vary(m[v] = machine_uniform(mesh->size, 2), v);
    process_map *map = map_by_order(mesh->size, NULL, m[0]);
    int64_t tried = 0, at = 0;
    for (int s = 0; s < N_SHAPES; s++) {
        layout_list list = {0};
        every_layout(mesh, (int)shapes[s][0], true, &list);
        for (; at < (int64_t)list.n * list.n; at += stride, tried++) {
            change c = {.from_mesh = mesh, .to_mesh = mesh, .shape = shape_number(s), .map = map};
            c.machine = m[(tried >> 1) % MACHINE_VARIANTS];
            c.from = list.at[at / list.n];
            c.to = list.at[at % list.n];
            c.seed = (uint64_t)tried;
            c.fresh = tried % 5 == 0;
            c.staging_bytes = change_window(c.shape, (int)(tried % 60));
            c.max_tiles = 1 + (int)(tried % 3);
            change_try(&c, NULL);
        }
        at -= (int64_t)list.n * list.n;
        ARRAY_FREE(&list);
    }
    map_destroy(&map);
    for (int v = 0; v < MACHINE_VARIANTS; v++)
        machine_destroy(&m[v]);
    return tried;
}

static int64_t try_pairs(const char *mesh_name, int64_t stride)
{
    trama_mesh *mesh = trama_mesh_create(mesh_name);
    int64_t tried = try_pairs_on(mesh, stride);
    trama_mesh_destroy(&mesh);
    return tried;
}

START_TEST(every_pair_on_one_axis)
{
    ck_assert_int_gt(try_pairs("2", 1), 900);
    ck_assert_int_gt(try_pairs("3", 1), 900);
    ck_assert_int_gt(try_pairs("1,3", suite_is_long() ? 1 : 23), 1000);
}
END_TEST

START_TEST(every_pair_on_two_axes)
{
    ck_assert_int_gt(try_pairs("2,2", suite_is_long() ? 1 : 7), 1000);
    ck_assert_int_gt(try_pairs("2,3", suite_is_long() ? 1 : 11), 1000);
}
END_TEST

START_TEST(every_pair_on_three_axes)
{
    ck_assert_int_gt(try_pairs("2,2,2", suite_is_long() ? 1 : 499), 1000);
}
END_TEST

/* Weights of one size, or of up to 2^20, by which most pieces are empty. */
static trama_mesh *random_weights(trama_mesh *mesh, uint64_t *seed)
{
    for (int a = 0; a < mesh->ndim; a++) {
        int weights[8];
        for (int i = 0; i < mesh->shape[a]; i++)
            weights[i] = 1 + random_below(seed, 1 << random_below(seed, 21));
        trama_mesh *weighted = trama_mesh_weighted(mesh, a, weights);
        ck_assert_msg(weighted != NULL, "%s", trama_error());
        trama_mesh_destroy(&mesh);
        mesh = weighted;
    }
    return mesh;
}

START_TEST(every_pair_on_axes_with_weights)
{
    static const char *const meshes[] = {"2", "3", "2,2", "2,3"};
    uint64_t seed = 20;
    int draws = suite_is_long() ? 12 : suite_is_sanitized() ? 1 : 3;
    for (int i = 0; i < 4; i++)
        for (int draw = 0; draw < draws; draw++) {
            trama_mesh *mesh = random_weights(trama_mesh_create(meshes[i]), &seed);
            ck_assert_int_gt(try_pairs_on(mesh, i < 2 ? 1 : suite_is_long() ? 5 : 31), 200);
            trama_mesh_destroy(&mesh);
        }
    ck_assert_int_gt(try_pairs("[20,1]", 1), 900);
    ck_assert_int_gt(try_pairs("[1,1048576,1]", 1), 900);
    ck_assert_int_gt(try_pairs("[1,20],[5,1,1]", suite_is_long() ? 1 : 11), 1000);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        every_pair_on_one_axis,
        every_pair_on_two_axes,
        every_pair_on_three_axes,
        every_pair_on_axes_with_weights,
    };
    return suite_run("reshard", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
