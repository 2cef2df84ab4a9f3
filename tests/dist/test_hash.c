/* SPDX-License-Identifier: Apache-2.0 */
/* The hash by which ranks are compared: equal contents have equal hashes, and small differences show. And the table of
 * numbers by hash. */
#include <stdint.h>
#include <string.h>

#include "hash.h"
#include "hash_table.h"
#include "suite.h"

enum { MOST = 100 };

START_TEST(equal_bytes_have_one_hash_wherever_they_lie)
{
    unsigned char room[2][MOST + 8];
    for (int shift = 0; shift < 8; shift++)
        for (size_t n = 0; n <= MOST; n++) {
            for (size_t i = 0; i < n; i++)
                room[0][i] = room[1][i + (size_t)shift] = (unsigned char)(37 * i + n);
            ck_assert_uint_eq(hash_bytes(1, room[0], n), hash_bytes(1, room[1] + shift, n));
        }
}
END_TEST

START_TEST(every_bit_counts)
{
    unsigned char bytes[MOST] = {0};
    for (size_t n = 1; n <= MOST; n++) {
        uint64_t zeros = hash_bytes(HASH_START, bytes, n);
        for (size_t bit = 0; bit < 8 * n; bit++) {
            bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
            ck_assert_msg(hash_bytes(HASH_START, bytes, n) != zeros, "bit %zu of %zu bytes", bit, n);
            bytes[bit / 8] = 0;
        }
    }
}
END_TEST

START_TEST(length_and_order_count)
{
    const unsigned char zeros[MOST] = {0};
    uint64_t words[8] = {1, 2, 3, 4, 5, 6, 7, 8}, swapped[8];
    for (size_t n = 0; n < MOST; n++)
        ck_assert_uint_ne(hash_bytes(HASH_START, zeros, n), hash_bytes(HASH_START, zeros, n + 1));
    for (int a = 0; a < 8; a++)
        for (int b = 0; b < a; b++) {
            memcpy(swapped, words, sizeof words);
            swapped[a] = words[b];
            swapped[b] = words[a];
            ck_assert_uint_ne(hash_bytes(HASH_START, words, sizeof words),
                              hash_bytes(HASH_START, swapped, sizeof words));
        }
    ck_assert_uint_ne(hash_text(hash_text(HASH_START, "ab"), "c"), hash_text(hash_text(HASH_START, "a"), "bc"));
}
END_TEST

/* Hashes that meet in one place of the table, at its end too, and each added three times while it grows. */
START_TEST(a_table_finds_all_numbers_of_a_hash_in_their_order)
{
    enum { N = 500, TIMES = 3 };
    hash_table t = {0};
    int none = 0;
    ck_assert_int_eq(hash_table_find(&t, 7, &none), -1);
    for (int time = 0; time < TIMES; time++)
        for (int i = 0; i < N; i++)
            hash_table_add(&t, (uint64_t)(i % 2 ? i : i * 1024 - 1), time * N + i);
    for (int i = 0; i < N; i++) {
        int probe = 0;
        for (int time = 0; time < TIMES; time++)
            ck_assert_int_eq(hash_table_find(&t, (uint64_t)(i % 2 ? i : i * 1024 - 1), &probe), time * N + i);
        ck_assert_int_eq(hash_table_find(&t, (uint64_t)(i % 2 ? i : i * 1024 - 1), &probe), -1);
    }
    hash_table_clear(&t);
    none = 0;
    ck_assert_int_eq(hash_table_find(&t, 7, &none), -1);
    hash_table_add(&t, 7, 0);
    ck_assert_int_eq(hash_table_find(&t, 7, &none), 0);
    hash_table_free(&t);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {equal_bytes_have_one_hash_wherever_they_lie, every_bit_counts, length_and_order_count,
                            a_table_finds_all_numbers_of_a_hash_in_their_order};
    return suite_run("hash", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
