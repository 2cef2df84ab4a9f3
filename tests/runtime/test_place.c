/* SPDX-License-Identifier: Apache-2.0 */
/* Places on described machines: hwloc's synthetic topologies. No StarPU, no MPI. */
#include "harness.h"
#include "place.h"

static hwloc_topology_t machine_of(const char *description)
{
    hwloc_topology_t t;
    ck_assert_int_eq(hwloc_topology_init(&t), 0);
    ck_assert_int_eq(hwloc_topology_set_synthetic(t, description), 0);
    ck_assert_int_eq(hwloc_topology_load(t), 0);
    return t;
}

static place_list find(hwloc_topology_t t, const char *allowed, int sharers, int index, double quota, int workers)
{
    place_list places;
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    if (allowed)
        hwloc_bitmap_list_sscanf(set, allowed);
    else
        hwloc_bitmap_copy(set, hwloc_topology_get_allowed_cpuset(t));
    trama_status status = place_find(t, &(place_claim){set, sharers, index, quota, workers}, &places);
    ck_assert_msg(status == TRAMA_OK, "%s", trama_error());
    hwloc_bitmap_free(set);
    return places;
}

START_TEST(a_rank_alone_has_a_place_per_numa_domain)
{
    hwloc_topology_t t = machine_of("package:2 numa:2 core:4 pu:2");
    place_list p = find(t, NULL, 1, 0, 0, 0);
    ck_assert_int_eq(p.n, 4);
    ck_assert_int_eq(p.workers, 16);
    ck_assert_int_eq(p.cores, 16);
    ck_assert(!p.shared);
    ck_assert_int_eq(p.n_spare, 0);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(p.at[i].domain, i);
        ck_assert_int_eq(p.at[i].package, i / 2);
        ck_assert_int_eq(p.at[i].n, 4);
        for (int w = 0; w < 4; w++) /* the first of the two PUs of each core */
            ck_assert_int_eq(p.at[i].pu[w], 2 * (4 * i + w));
    }
    place_free(&p);
    hwloc_topology_destroy(t);
}
END_TEST

START_TEST(ranks_with_the_same_cores_split_them_without_overlap)
{
    hwloc_topology_t t = machine_of("numa:2 core:5 pu:1");
    int taken[10] = {0}, sizes[3];
    for (int rank = 0; rank < 3; rank++) {
        place_list p = find(t, NULL, 3, rank, 0, 0);
        sizes[rank] = p.workers;
        ck_assert(!p.shared);
        for (int i = 0; i < p.n; i++)
            for (int w = 0; w < p.at[i].n; w++) {
                ck_assert_int_eq(p.at[i].pu[w] / 5, p.at[i].domain);
                taken[p.at[i].pu[w]]++;
            }
        place_free(&p);
    }
    ck_assert_int_eq(sizes[0], 4);
    ck_assert_int_eq(sizes[1], 3);
    ck_assert_int_eq(sizes[2], 3);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(taken[i], 1);
    hwloc_topology_destroy(t);
}
END_TEST

START_TEST(more_ranks_than_cores_share_them_evenly)
{
    hwloc_topology_t t = machine_of("numa:1 core:2 pu:1");
    int ranks_on[2] = {0};
    for (int rank = 0; rank < 5; rank++) {
        place_list p = find(t, NULL, 5, rank, 0, 0);
        ck_assert_int_eq(p.n, 1);
        ck_assert_int_eq(p.workers, 1);
        ck_assert(p.shared);
        ck_assert(!p.even); /* 3 and 2 */
        ranks_on[p.at[0].pu[0]]++;
        place_free(&p);
    }
    ck_assert_int_eq(ranks_on[0], 3);
    ck_assert_int_eq(ranks_on[1], 2);
    hwloc_topology_destroy(t);
}
END_TEST

START_TEST(ranks_that_share_all_cores_alike_are_known)
{
    hwloc_topology_t t = machine_of("numa:1 core:2 pu:1");
    for (int rank = 0; rank < 4; rank++) {
        place_list p = find(t, NULL, 4, rank, 0, 0);
        ck_assert(p.shared && p.even);
        ck_assert_int_eq(p.at[0].pu[0], rank / 2);
        place_free(&p);
    }
    place_list several = find(t, NULL, 4, 0, 0, 2), limited = find(t, NULL, 4, 0, 1.5, 0),
               alone = find(t, NULL, 2, 0, 0, 0);
    ck_assert(!several.even && !limited.even && !alone.even);
    place_free(&several);
    place_free(&limited);
    place_free(&alone);
    hwloc_topology_destroy(t);
}
END_TEST

START_TEST(a_binding_is_kept)
{
    hwloc_topology_t t = machine_of("package:2 numa:1 core:4 pu:2");
    place_list p = find(t, "11-13", 1, 0, 0, 0); /* half of core 5, core 6 whole; both in the second package */
    ck_assert_int_eq(p.n, 1);
    ck_assert_int_eq(p.at[0].package, 1);
    ck_assert_int_eq(p.at[0].domain, 1);
    ck_assert_int_eq(p.workers, 2);
    ck_assert_int_eq(p.at[0].pu[0], 11);
    ck_assert_int_eq(p.at[0].pu[1], 12);
    place_free(&p);
    hwloc_topology_destroy(t);
}
END_TEST

START_TEST(a_quota_limits_the_workers)
{
    hwloc_topology_t t = machine_of("numa:1 core:8 pu:1");
    place_list p = find(t, NULL, 1, 0, 3.5, 0);
    ck_assert_int_eq(p.workers, 3);
    ck_assert(!p.shared);
    place_free(&p);
    p = find(t, NULL, 2, 1, 4, 0); /* two ranks have the time of four cores together */
    ck_assert_int_eq(p.workers, 2);
    ck_assert_int_eq(p.at[0].pu[0], 4);
    place_free(&p);
    p = find(t, NULL, 4, 0, 2, 0); /* half a core's time each: they must yield to each other */
    ck_assert_int_eq(p.workers, 1);
    ck_assert(p.shared);
    place_free(&p);
    p = find(t, NULL, 1, 0, 100, 0);
    ck_assert_int_eq(p.workers, 8);
    place_free(&p);
    hwloc_topology_destroy(t);
}
END_TEST

/* The PUs of a rank's cores, as a list. */
static void expect_cpuset(hwloc_topology_t t, int sharers, int index, int workers, const char *allowed,
                          const char *expected)
{
    place_list p = find(t, allowed, sharers, index, 0, workers);
    hwloc_bitmap_t may = hwloc_bitmap_alloc(), set = hwloc_bitmap_alloc();
    char list[64];
    hwloc_bitmap_list_sscanf(may, allowed);
    place_cpuset(t, &p, may, set);
    hwloc_bitmap_list_snprintf(list, sizeof list, set);
    ck_assert_str_eq(list, expected);
    hwloc_bitmap_free(may);
    hwloc_bitmap_free(set);
    place_free(&p);
}

START_TEST(the_cpuset_of_a_rank_has_all_hardware_threads_of_its_cores)
{
    hwloc_topology_t t = machine_of("package:2 core:3 pu:2");
    expect_cpuset(t, 2, 0, 0, "0-11", "0-5");
    expect_cpuset(t, 2, 1, 0, "0-11", "6-11");
    expect_cpuset(t, 2, 1, 1, "0-11", "6-11"); /* cores without a worker, too */
    expect_cpuset(t, 4, 1, 0, "0-11", "4-7");
    expect_cpuset(t, 12, 5, 0, "0-11", "4-5"); /* shared with rank 4 */
    expect_cpuset(t, 2, 1, 0, "0,2,3,8,9", "8-9");
    expect_cpuset(t, 1, 0, 0, "1-2", "1-2");
    hwloc_topology_destroy(t);
}
END_TEST

START_TEST(the_user_may_ask_for_fewer_or_more_workers_than_cores)
{
    hwloc_topology_t t = machine_of("numa:2 core:2 pu:1");
    place_list p = find(t, NULL, 1, 0, 0, 3);
    ck_assert_int_eq(p.n, 2);
    ck_assert_int_eq(p.at[0].n, 2);
    ck_assert_int_eq(p.at[1].n, 1);
    ck_assert_int_eq(p.spare[0], 3);
    ck_assert(!p.shared);
    place_free(&p);
    p = find(t, NULL, 1, 0, 0, 1);
    ck_assert_int_eq(p.n, 1);
    place_free(&p);
    p = find(t, NULL, 1, 0, 0, 7);
    ck_assert_int_eq(p.workers, 7);
    ck_assert_int_eq(p.at[0].n + p.at[1].n, 7);
    ck_assert(p.shared);
    ck_assert_int_eq(p.n_spare, 0);
    place_free(&p);
    hwloc_topology_destroy(t);
}
END_TEST

START_TEST(a_process_without_processors_is_an_error_that_says_so)
{
    hwloc_topology_t t = machine_of("numa:1 core:2 pu:1");
    hwloc_bitmap_t none = hwloc_bitmap_alloc();
    place_list p;
    ck_assert_int_eq(place_find(t, &(place_claim){none, 1, 0, 0, 0}, &p), TRAMA_E_SYSTEM);
    ck_assert_ptr_nonnull(strstr(trama_error(), "none of the machine's 2 processors"));
    hwloc_bitmap_free(none);
    hwloc_topology_destroy(t);
}
END_TEST

TESTS(a_rank_alone_has_a_place_per_numa_domain, ranks_with_the_same_cores_split_them_without_overlap,
      more_ranks_than_cores_share_them_evenly, ranks_that_share_all_cores_alike_are_known, a_binding_is_kept,
      a_quota_limits_the_workers, the_user_may_ask_for_fewer_or_more_workers_than_cores,
      the_cpuset_of_a_rank_has_all_hardware_threads_of_its_cores, a_process_without_processors_is_an_error_that_says_so)
