/* SPDX-License-Identifier: Apache-2.0 */
/* Cards: who shares a node, and the limits of control groups, read from folders made here. */
#include <sys/stat.h>

#include "harness.h"
#include "node.h"

static node_card card(const char *node, const char *kind, uint64_t cores)
{
    node_card c;
    memset(&c, 0, sizeof c);
    snprintf(c.node, sizeof c.node, "%s", node);
    snprintf(c.cpu_kind, sizeof c.cpu_kind, "%s", kind);
    c.allowed[0] = cores;
    return c;
}

START_TEST(ranks_of_a_node_with_equal_cores_are_sharers)
{
    node_card cards[] = {card("a", "x", 3), card("b", "x", 3), card("a", "x", 3), card("a", "y", 12),
                         card("b", "z", 2)};
    int index = -1;
    ck_assert_int_eq(node_sharers(cards, 5, 2, &index), 2);
    ck_assert_int_eq(index, 1);
    ck_assert_int_eq(node_sharers(cards, 5, 3, &index), 1);
    ck_assert_int_eq(index, 0);
    ck_assert_int_eq(node_ranks(cards, 5, 0), 3);
    ck_assert_int_eq(node_local_rank(cards, 3), 2);
    ck_assert_int_eq(node_index(cards, 3), 0);
    ck_assert_int_eq(node_index(cards, 4), 1);
    ck_assert(!node_overlap(cards, 5, 0));
    ck_assert(!node_overlap(cards, 5, 3));
    ck_assert(node_overlap(cards, 5, 1)); /* rank 4 has one of its cores */
}
END_TEST

/* A rank that sees GPUs, each told by a letter; all of one kind. */
static node_card with_gpus(node_card c, const char *letters)
{
    for (; letters[c.n_gpus]; c.n_gpus++) {
        strcpy(c.gpu[c.n_gpus].kind, "gpu");
        c.gpu[c.n_gpus].uuid[3] = (uint8_t)letters[c.n_gpus];
    }
    return c;
}

START_TEST(ranks_divide_the_gpus_that_they_all_see)
{
    node_card cards[] = {with_gpus(card("a", "x", 1), "pqrst"), with_gpus(card("a", "x", 1), "pqrst"),
                         with_gpus(card("b", "x", 1), "pqrst"), card("a", "x", 1)};
    int mine[NODE_MAX_GPUS];
    ck_assert_int_eq(node_gpus(cards, 4, 0, mine), 3);
    ck_assert_int_eq(mine[0], 0);
    ck_assert_int_eq(mine[2], 2);
    ck_assert_int_eq(node_gpus(cards, 4, 1, mine), 2);
    ck_assert_int_eq(mine[0], 3);
    ck_assert_int_eq(mine[1], 4);
    ck_assert_int_eq(node_gpus(cards, 4, 2, mine), 5);
    ck_assert_int_eq(node_gpus(cards, 4, 3, mine), 0);
    for (int g = 0; g < 3; g++)
        ck_assert_int_eq(node_gpu_sharers(cards, 4, 0, g), 1);
}
END_TEST

START_TEST(more_ranks_than_gpus_share_them)
{
    node_card cards[3];
    int mine[NODE_MAX_GPUS], of[] = {0, 0, 1}, sharers[] = {2, 2, 1};
    for (int r = 0; r < 3; r++)
        cards[r] = with_gpus(card("a", "x", 1), "pq");
    for (int r = 0; r < 3; r++) {
        ck_assert_int_eq(node_gpus(cards, 3, r, mine), 1);
        ck_assert_int_eq(mine[0], of[r]);
        ck_assert_int_eq(node_gpu_sharers(cards, 3, r, mine[0]), sharers[r]);
    }
}
END_TEST

START_TEST(a_launcher_that_gives_each_rank_its_gpu_is_followed)
{
    node_card cards[] = {with_gpus(card("a", "x", 1), "q"), with_gpus(card("a", "x", 1), "p"),
                         with_gpus(card("a", "x", 1), "pq")};
    int mine[NODE_MAX_GPUS];
    for (int r = 0; r < 2; r++)
        ck_assert_int_eq(node_gpus(cards, 3, r, mine), 1);
    ck_assert_int_eq(node_gpus(cards, 3, 2, mine), 2);
    ck_assert_int_eq(node_gpu_sharers(cards, 3, 0, 0), 2);
    ck_assert_int_eq(node_gpu_sharers(cards, 3, 2, 0), 2);
}
END_TEST

START_TEST(gpus_are_of_other_kinds_than_cpus)
{
    node_card cards[] = {with_gpus(card("a", "x", 1), "p"), with_gpus(card("b", "y", 1), "pq"), card("c", "x", 1)};
    strcpy(cards[1].gpu[1].kind, "older");
    ck_assert_int_eq(node_kind(cards, 3, 0, -1), 0);
    ck_assert_int_eq(node_kind(cards, 3, 1, -1), 1);
    ck_assert_int_eq(node_kind(cards, 3, 2, -1), 0);
    ck_assert_int_eq(node_kind(cards, 3, 0, 0), 2);
    ck_assert_int_eq(node_kind(cards, 3, 1, 0), 2);
    ck_assert_int_eq(node_kind(cards, 3, 1, 1), 3);
}
END_TEST

START_TEST(equal_kinds_get_equal_numbers)
{
    node_card cards[] = {card("a", "x", 1), card("a", "y", 1), card("b", "x", 1), card("b", "z", 1), card("c", "y", 1)};
    const int expected[] = {0, 1, 0, 2, 1};
    for (int r = 0; r < 5; r++)
        ck_assert_int_eq(node_kind(cards, 5, r, -1), expected[r]);
}
END_TEST

START_TEST(the_own_card_names_processors_that_exist)
{
    hwloc_topology_t t;
    node_card mine;
    hwloc_topology_init(&t);
    hwloc_topology_load(t);
    node_card_fill(&mine, t, "cpu:test");
    ck_assert_str_eq(mine.cpu_kind, "cpu:test");
    ck_assert(*mine.node);
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    node_allowed(&mine, set);
    ck_assert(!hwloc_bitmap_iszero(set));
    ck_assert(hwloc_bitmap_isincluded(set, hwloc_topology_get_allowed_cpuset(t)));
    hwloc_bitmap_free(set);
    hwloc_topology_destroy(t);
}
END_TEST

static char root[64];

static void put(const char *path, const char *content)
{
    char full[256];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *slash = full + strlen(root); (slash = strchr(slash + 1, '/'));) {
        *slash = '\0';
        mkdir(full, 0700);
        *slash = '/';
    }
    FILE *file = fopen(full, "w");
    ck_assert_ptr_nonnull(file);
    fputs(content, file);
    fclose(file);
}

static void make_root(void)
{
    strcpy(root, "/tmp/trama-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
}

static void remove_root(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", root);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(the_least_quota_of_nested_groups_counts)
{
    make_root();
    put("/cpu.max", "max 100000\n");
    put("/job/cpu.max", "250000 100000\n");
    put("/job/step/cpu.max", "400000 100000\n");
    ck_assert_double_eq_tol(node_quota(root, "0::/job/step\n"), 2.5, 1e-9);
    ck_assert_double_eq_tol(node_quota(root, "0::/\n"), 0, 1e-9);
    put("/cpu.max", "150000 100000\n"); /* as a container sees its own group */
    ck_assert_double_eq_tol(node_quota(root, "0::/\n"), 1.5, 1e-9);
    ck_assert_double_eq_tol(node_quota(root, "0::/job/step\n"), 1.5, 1e-9);
    remove_root();
}
END_TEST

START_TEST(version_1_of_control_groups_is_read_too)
{
    make_root();
    put("/cpu/box/cpu.cfs_quota_us", "300000\n");
    put("/cpu/box/cpu.cfs_period_us", "100000\n");
    put("/cpu/free/cpu.cfs_quota_us", "-1\n");
    put("/cpu/free/cpu.cfs_period_us", "100000\n");
    ck_assert_double_eq_tol(node_quota(root, "4:memory:/box\n3:cpu,cpuacct:/box\n0::/\n"), 3, 1e-9);
    ck_assert_double_eq_tol(node_quota(root, "4:memory:/box\n3:cpuacct,cpu:/free\n0::/\n"), 0, 1e-9);
    ck_assert_double_eq_tol(node_quota(root, ""), 0, 1e-9);
    ck_assert_double_eq_tol(node_quota(root, "nonsense\n\n::\n12"), 0, 1e-9);
    remove_root();
}
END_TEST

TESTS(ranks_divide_the_gpus_that_they_all_see, more_ranks_than_gpus_share_them,
      a_launcher_that_gives_each_rank_its_gpu_is_followed, gpus_are_of_other_kinds_than_cpus,
      ranks_of_a_node_with_equal_cores_are_sharers, equal_kinds_get_equal_numbers,
      the_own_card_names_processors_that_exist, the_least_quota_of_nested_groups_counts,
      version_1_of_control_groups_is_read_too)
