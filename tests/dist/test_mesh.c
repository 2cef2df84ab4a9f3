/* SPDX-License-Identifier: Apache-2.0 */
/* Meshes: text both ways, children, coordinates, wrong input. And the map from processes to places. */
#include <check.h>
#include <string.h>

#include "dense.h"
#include "map.h"
#include "mesh.h"
#include "suite.h"

static void round_trip(const char *source, const char *printed, int ndim, int size)
{
    trama_mesh *m = trama_mesh_create(source);
    ck_assert_msg(m != NULL, "'%s': %s", source, trama_error());
    ck_assert_int_eq(trama_mesh_ndim(m), ndim);
    ck_assert_int_eq(trama_mesh_size(m), size);
    char *again = trama_mesh_text(m);
    ck_assert_str_eq(again, printed);
    trama_mesh *n = trama_mesh_create(again);
    ck_assert(trama_mesh_equal(m, n));
    for (int a = 0; a < ndim; a++) {
        const char *one = trama_mesh_axis_name(m, a), *other = trama_mesh_axis_name(n, a);
        ck_assert((!one && !other) || (one && other && !strcmp(one, other)));
    }
    free(again);
    trama_mesh_destroy(&m);
    trama_mesh_destroy(&n);
}

START_TEST(a_mesh_is_its_text)
{
    round_trip("dp=2,mp=2", "dp=2,mp=2", 2, 4);
    round_trip("1", "1", 1, 1);
    round_trip("4", "4", 1, 4);
    round_trip("2,3", "2,3", 2, 6);
    round_trip("dp=2,3", "dp=2,3", 2, 6);
    round_trip("dp=2,mp=2:0,1,2,3", "dp=2,mp=2", 2, 4);
    round_trip("dp=2,mp=2:4,5,6,7", "dp=2,mp=2:4,5,6,7", 2, 4);
    round_trip("2:1,0", "2:1,0", 1, 2);
    round_trip("1:7", "1:7", 1, 1);
    round_trip("a_1=2,_b=1", "a_1=2,_b=1", 2, 2);
    round_trip("1,1,1,1,1,1,1,2", "1,1,1,1,1,1,1,2", 8, 2);
    round_trip("dp=[3,1],mp=2", "dp=[3,1],mp=2", 2, 4);
    round_trip("[1,2,3]:5,3,4", "[1,2,3]:5,3,4", 1, 3);
    round_trip("dp=[6,2],[5,5]", "dp=[3,1],2", 2, 4); /* lowest terms; equal weights are none */
}
END_TEST

/* Wrong text, and a part of the message. */
static const char *const wrong[][2] = {
    {"", "not understood"},
    {"0", "at least one process"},
    {"-2", "not understood"},
    {"2,", "not understood"},
    {",2", "not understood"},
    {"2;3", "not understood at ';3'"},
    {"dp2", "not understood"},
    {"dp=", "not understood"},
    {"=2", "not understood"},
    {"dp=2,dp=2", "two axes are named 'dp'"},
    {"2:0", "names 1 ids for 2 processes"},
    {"2:0,1,2", "names 3 ids for 2 processes"},
    {"2:0,0", "process id 0 is there twice"},
    {"2:0,-1", "not understood"},
    {"2:0,16777216", "process id 16777216 is not below 2^24"},
    {"2:2147483647,0", "process id 2147483647 is not below 2^24"},
    {"2:0,4294967296", "not understood at '4294967296'"},
    {"[", "not understood"},
    {"[]", "not understood"},
    {"[3,1", "not understood"},
    {"[3,-1]", "not understood"},
    {"[3,,1]", "not understood"},
    {"dp=[3,1]2", "not understood at '2'"},
    {"dp=[3,0]", "weight 1 of axis 0 is 0"},
    {"dp=[3,1]:1", "names 1 ids for 2 processes"},
    {"[2147483647,2]", "more than 2^31-1"},
    {"2:", "not understood"},
    {"2:0,", "not understood"},
    {"2:0,1x", "not understood at 'x'"},
    {"1,1,1,1,1,1,1,1,1", "more than 8 axes"},
    {"99999999999", "not understood at '99999999999'"},
    {"20000,20000", "more than 2^24 processes"},
    {"a_name_that_is_much_too_long_for_an_axis=2", "not understood"},
    {"2 ,3", "not understood"},
};

START_TEST(wrong_texts_are_refused_with_the_place)
{
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        trama_mesh *m = trama_mesh_create(wrong[i][0]);
        ck_assert_msg(!m, "'%s' is taken for a mesh", wrong[i][0]);
        ck_assert_msg(strstr(trama_error(), wrong[i][1]), "'%s' answers: %s", wrong[i][0], trama_error());
    }
    ck_assert_ptr_null(trama_mesh_create(NULL));
}
END_TEST

START_TEST(wrong_numbers_are_refused)
{
    ck_assert_ptr_null(trama_mesh_create_ids(0, (int[]){2}, NULL, NULL));
    ck_assert_ptr_null(trama_mesh_create_ids(9, (int[]){1, 1, 1, 1, 1, 1, 1, 1, 1}, NULL, NULL));
    ck_assert_ptr_null(trama_mesh_create_ids(1, NULL, NULL, NULL));
    ck_assert_ptr_null(trama_mesh_create_ids(2, (int[]){2, 0}, NULL, NULL));
    ck_assert_ptr_null(trama_mesh_create_ids(1, (int[]){2}, NULL, (int[]){3, 3}));
    ck_assert_ptr_nonnull(strstr(trama_error(), "3 is there twice"));
    ck_assert_ptr_null(trama_mesh_create_ids(1, (int[]){2}, NULL, (int[]){0, -1}));
    ck_assert_ptr_nonnull(strstr(trama_error(), "negative"));
}
END_TEST

START_TEST(names_must_print_and_parse)
{
    static const char *const names[] = {"a b", "2", "x=1", "a,b", "é", "-"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        ck_assert_msg(!trama_mesh_create_ids(1, (int[]){2}, &names[i], NULL), "'%s' is taken for a name", names[i]);
}
END_TEST

START_TEST(a_child_has_processes_of_its_parent_in_any_shape)
{
    trama_mesh *parent = trama_mesh_create("2,3:5,4,3,2,1,0");
    trama_mesh *child = trama_mesh_child(parent, 1, (int[]){4}, NULL, (int[]){0, 5, 2, 3});
    ck_assert_ptr_nonnull(child);
    ck_assert_int_eq(trama_mesh_id(child, 1), 5);
    ck_assert_int_eq(trama_mesh_id(child, 4), -1);
    ck_assert_int_eq(trama_mesh_extent(child, 0), 4);
    ck_assert_int_eq(trama_mesh_extent(child, 1), 0);
    ck_assert_ptr_null(trama_mesh_child(parent, 1, (int[]){2}, NULL, (int[]){0, 6}));
    ck_assert_ptr_nonnull(strstr(trama_error(), "6 of the child is not in its parent"));
    ck_assert_ptr_null(trama_mesh_child(NULL, 1, (int[]){1}, NULL, (int[]){0}));
    trama_mesh_destroy(&parent);
    ck_assert_int_eq(trama_mesh_id(child, 0), 0); /* lives on */
    trama_mesh_destroy(&child);
    ck_assert_ptr_null(child);
}
END_TEST

/* The text of a child of the mesh. */
static void expect_child(const char *parent_text, int ndim, const int *shape, const int *ids, const char *expected)
{
    trama_mesh *parent = trama_mesh_create(parent_text);
    trama_mesh *child = trama_mesh_child(parent, ndim, shape, NULL, ids);
    ck_assert_msg(child != NULL, "%s", trama_error());
    char *got = trama_mesh_text(child);
    ck_assert_msg(!strcmp(got, expected), "of %s: %s instead of %s", parent_text, got, expected);
    free(got);
    trama_mesh_destroy(&parent);
    trama_mesh_destroy(&child);
}

START_TEST(a_child_keeps_the_weights_of_the_axes_that_it_keeps)
{
    const char *parent = "dp=[3,1],mp=[1,5,2]";
    expect_child(parent, 1, (int[]){3}, (int[]){3, 4, 5}, "[1,5,2]:3,4,5");
    expect_child(parent, 1, (int[]){2}, (int[]){1, 4}, "[3,1]:1,4");
    expect_child(parent, 1, (int[]){2}, (int[]){4, 1}, "[1,3]:4,1");
    expect_child(parent, 1, (int[]){2}, (int[]){2, 1}, "[2,5]:2,1");
    expect_child(parent, 2, (int[]){2, 2}, (int[]){0, 3, 2, 5}, "[1,2],[3,1]:0,3,2,5");
    expect_child(parent, 3, (int[]){2, 1, 3}, (int[]){0, 1, 2, 3, 4, 5}, "[3,1],1,[1,5,2]");
    expect_child(parent, 1, (int[]){6}, (int[]){0, 1, 2, 3, 4, 5}, "6");        /* along both */
    expect_child(parent, 1, (int[]){2}, (int[]){0, 4}, "2:0,4");                /* across */
    expect_child(parent, 2, (int[]){2, 2}, (int[]){0, 1, 5, 4}, "2,2:0,1,5,4"); /* 1 and 5 beside 2 and 5 */
    expect_child("[4,1,2,1]", 2, (int[]){2, 2}, (int[]){0, 1, 2, 3}, "2,2");    /* 4 and 1 beside 2 and 1 */
    expect_child("[4,1,4,1]", 2, (int[]){2, 2}, (int[]){0, 1, 2, 3}, "2,[4,1]");
    expect_child("2,3", 1, (int[]){3}, (int[]){3, 4, 5}, "3:3,4,5");
}
END_TEST

START_TEST(equal_means_shape_and_ids_in_order_not_names)
{
    trama_mesh *a = trama_mesh_create("dp=2,mp=2"), *b = trama_mesh_create("2,2"), *c = trama_mesh_create("4"),
               *d = trama_mesh_create("2,2:0,2,1,3");
    ck_assert(trama_mesh_equal(a, b));
    ck_assert(!trama_mesh_equal(a, c));
    ck_assert(!trama_mesh_equal(a, d));
    ck_assert(!trama_mesh_equal(a, NULL));
    trama_mesh_destroy(&a);
    trama_mesh_destroy(&b);
    trama_mesh_destroy(&c);
    trama_mesh_destroy(&d);
}
END_TEST

START_TEST(coordinates_are_row_major)
{
    trama_mesh *m = trama_mesh_create("2,3,2:11,10,9,8,7,6,5,4,3,2,1,0");
    int position = 0;
    for (int a = 0; a < 2; a++)
        for (int b = 0; b < 3; b++)
            for (int c = 0; c < 2; c++, position++) {
                int coordinate[3];
                mesh_coordinate(m, position, coordinate);
                ck_assert(coordinate[0] == a && coordinate[1] == b && coordinate[2] == c);
                ck_assert_int_eq(mesh_position(m, coordinate), position);
                ck_assert_int_eq(mesh_find(m, 11 - position), position);
            }
    ck_assert_int_eq(mesh_find(m, 12), -1);
    ck_assert_int_eq(mesh_find(m, -1), -1);
    trama_mesh_destroy(&m);
}
END_TEST

/* dist/README.md: mesh [[0,1,2],[3,4,5]], order [5,4,3,2,1,0] -> {0:5,1:4,2:3,3:2,4:1,5:0}. */
START_TEST(an_order_maps_process_i_to_place_order_i)
{
    machine *m = machine_uniform(6, 1);
    process_map *map = map_by_order(6, (int[]){5, 4, 3, 2, 1, 0}, m);
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(map_place(map, i), 5 - i);
    map_destroy(&map);
    machine_destroy(&m);
}
END_TEST

START_TEST(many_processes_fill_few_places_in_blocks)
{
    static const int expected[] = {0, 0, 0, 1, 1, 2, 2, 2, 3, 3};
    machine *m = machine_uniform(4, 1), *large = machine_uniform(16, 1);
    process_map *map = map_by_order(10, NULL, m), *few = map_by_order(10, NULL, large);
    int each[4] = {0};
    for (int i = 0; i < 10; i++) {
        ck_assert_int_eq(map_place(map, i), expected[i]);
        ck_assert_int_eq(map_place(few, i), i);
        each[map_place(map, i)]++;
    }
    for (int i = 0; i < 4; i++)
        ck_assert(each[i] == 2 || each[i] == 3);
    map_destroy(&map);
    map_destroy(&few);
    machine_destroy(&m);
    machine_destroy(&large);
}
END_TEST

START_TEST(distance_grows_with_the_level_that_differs)
{
    machine_place places[] = {{.rank = 0, .workers = 1, .path = {0, 0, 0, 0}},
                              {.rank = 0, .workers = 2, .path = {0, 0, 1, 0}},
                              {.rank = 1, .workers = 4, .path = {0, 0, 0, 1}},
                              {.rank = 2, .workers = 8, .path = {0, 1, 0, 0}},
                              {.rank = 3, .workers = 16, .path = {1, 0, 0, 0}}};
    static const int first[] = {0, 2, 3, 4}, workers[] = {3, 4, 8, 16};
    machine m = {.n_ranks = 4, .n_places = 5, .places = places};
    ck_assert_int_eq(machine_distance(&m, 0, 0), 0);
    for (int i = 1; i < 5; i++) {
        ck_assert_int_lt(machine_distance(&m, 0, i - 1), machine_distance(&m, 0, i));
        ck_assert_int_eq(machine_distance(&m, 0, i), machine_distance(&m, i, 0));
    }
    for (int r = 0; r < 4; r++) {
        ck_assert_int_eq(machine_first_place(&m, r), first[r]);
        ck_assert_int_eq(machine_workers(&m, r), workers[r]);
    }
}
END_TEST

START_TEST(pieces_follow_the_weights_and_the_rest_goes_to_the_first)
{
    static const struct {
        const char *mesh;
        int64_t n, pieces[4];
    } cases[] = {{"[3,1]", 8, {6, 2}},           {"[3,1]", 9, {7, 2}}, /* 6 and 2, one left */
                 {"[3,1]", 3, {3, 0}},                                 /* 2 and 0, one left */
                 {"[1,3]", 3, {1, 2}},                                 /* 0 and 2, one left */
                 {"[1,2,4]", 10, {2, 3, 5}},                           /* 1, 2, 5 and two left */
                 {"[1,1,1,5]", 0, {0, 0, 0, 0}}, {"[2147483646,1]", (int64_t)1 << 40, {((int64_t)1 << 40) - 512, 512}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        trama_mesh *m = trama_mesh_create(cases[i].mesh);
        int64_t next = 0;
        for (int k = 0; k < trama_mesh_size(m); k++) {
            int64_t lo, length;
            mesh_piece(m, 0, cases[i].n, k, &lo, &length);
            ck_assert_int_eq(lo, next);
            ck_assert_int_eq(length, cases[i].pieces[k]);
            if (length) {
                ck_assert_int_eq(mesh_piece_find(m, 0, cases[i].n, lo), k);
                ck_assert_int_eq(mesh_piece_find(m, 0, cases[i].n, lo + length - 1), k);
            }
            next += length;
        }
        ck_assert_int_eq(next, cases[i].n);
        trama_mesh_destroy(&m);
    }
}
END_TEST

/* From the definition, in 128 bits: what is left goes one by one to the first. */
static void naive_pieces(int p, const int *weights, int64_t n, int64_t *length)
{
    __int128 sum = 0;
    int64_t left = n;
    for (int i = 0; i < p; i++)
        sum += weights[i];
    for (int i = 0; i < p; i++)
        left -= length[i] = (int64_t)((__int128)n * weights[i] / sum);
    for (int i = 0; left > 0; i++, left--)
        length[i]++;
}

/* They follow each other from 0 to n, are as defined, and differ from the exact share by 1 at most; and each element is
 * found in its piece. */
static void check_pieces(const trama_mesh *m, int p, const int *weights, int64_t n)
{
    int64_t next = 0, wanted[64];
    __int128 sum = 0;
    for (int i = 0; i < p; i++)
        sum += weights[i];
    naive_pieces(p, weights, n, wanted);
    for (int i = 0; i < p; i++) {
        int64_t lo, length;
        mesh_piece(m, 0, n, i, &lo, &length);
        __int128 off = length * sum - (__int128)n * weights[i];
        ck_assert_int_eq(lo, next);
        ck_assert_int_eq(length, wanted[i]);
        ck_assert(off <= sum && -off < sum);
        ck_assert(n % (int64_t)sum || off == 0);
        for (int k = 0; k < 3 && length; k++)
            ck_assert_int_eq(mesh_piece_find(m, 0, n, lo + (length - 1) * k / 2), i);
        next += length;
    }
    ck_assert_int_eq(next, n);
}

START_TEST(pieces_of_random_weights_are_the_shares)
{
    uint64_t seed = 3;
    for (int i = 0; i < 400; i++) {
        int p = 1 + random_below(&seed, 64), weights[64], sum = 0;
        int most = 1 << random_below(&seed, 21);
        for (int k = 0; k < p; k++)
            sum += weights[k] = 1 + random_below(&seed, most);
        trama_mesh *plain = trama_mesh_create_ids(1, &p, NULL, NULL), *m = trama_mesh_weighted(plain, 0, weights);
        check_pieces(m, p, weights, random_below(&seed, 3 * p));
        check_pieces(m, p, weights, random_below(&seed, 100000));
        check_pieces(m, p, weights, (int64_t)(random_next(&seed) >> 2));
        check_pieces(m, p, weights, (int64_t)sum * random_below(&seed, 1000)); /* each is its share, exactly */
        trama_mesh_destroy(&plain);
        trama_mesh_destroy(&m);
    }
}
END_TEST

/* By dealing the elements: the first n mod p get one more, as without weights. */
START_TEST(equal_weights_are_none)
{
    for (int p = 1; p < 9; p++)
        for (int64_t n = 0; n < 40; n++) {
            int weights[] = {7, 7, 7, 7, 7, 7, 7, 7};
            trama_mesh *plain = trama_mesh_create_ids(1, &p, NULL, NULL), *m = trama_mesh_weighted(plain, 0, weights);
            ck_assert(trama_mesh_equal(plain, m));
            for (int i = 0; i < p; i++) {
                int64_t lo, length, dealt = 0;
                mesh_piece(m, 0, n, i, &lo, &length);
                for (int64_t k = i; k < n; k += p)
                    dealt++;
                ck_assert_int_eq(length, dealt);
            }
            trama_mesh_destroy(&plain);
            trama_mesh_destroy(&m);
        }
}
END_TEST

START_TEST(weights_count_in_equality)
{
    trama_mesh *plain = trama_mesh_create("a=2,b=2"), *parsed = trama_mesh_create("a=[3,1],b=2");
    trama_mesh *made = trama_mesh_weighted(plain, 0, (int[]){9, 3}),
               *back = trama_mesh_weighted(made, 0, (int[]){4, 4});
    ck_assert(trama_mesh_equal(parsed, made));
    ck_assert(!trama_mesh_equal(plain, made));
    ck_assert(trama_mesh_equal(plain, back));
    ck_assert_int_eq(trama_mesh_weight(made, 0, 0), 3);
    ck_assert_int_eq(trama_mesh_weight(made, 1, 1), 1);
    ck_assert(!trama_mesh_weighted(plain, 2, (int[]){1, 2}) && strstr(trama_error(), "weights"));
    ck_assert(!trama_mesh_weighted(plain, 0, NULL) && !trama_mesh_weighted(NULL, 0, (int[]){1, 2}));
    ck_assert(!trama_mesh_weighted(plain, 0, (int[]){1, -1}) && strstr(trama_error(), "-1"));
    trama_mesh_destroy(&plain);
    trama_mesh_destroy(&parsed);
    trama_mesh_destroy(&made);
    trama_mesh_destroy(&back);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        a_mesh_is_its_text,
        wrong_texts_are_refused_with_the_place,
        wrong_numbers_are_refused,
        names_must_print_and_parse,
        a_child_has_processes_of_its_parent_in_any_shape,
        a_child_keeps_the_weights_of_the_axes_that_it_keeps,
        equal_means_shape_and_ids_in_order_not_names,
        pieces_follow_the_weights_and_the_rest_goes_to_the_first,
        pieces_of_random_weights_are_the_shares,
        equal_weights_are_none,
        weights_count_in_equality,
        coordinates_are_row_major,
        an_order_maps_process_i_to_place_order_i,
        many_processes_fill_few_places_in_blocks,
        distance_grows_with_the_level_that_differs,
    };
    return suite_run("mesh", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
