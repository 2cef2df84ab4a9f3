/* SPDX-License-Identifier: Apache-2.0 */
/* Permutations that are computed element by element: each is one, it is what its description says, and epochs and seeds
 * have unlike ones. */
#include "permutation.h"

#include "reference.h"
#include "suite.h"

enum { MOST = 70000 };

static void expect_permutation(uint64_t seed, uint64_t epoch, int64_t n)
{
    static unsigned char seen[MOST];
    memset(seen, 0, sizeof seen);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = permutation_at(seed, epoch, n, i);
        ck_assert_msg(at >= 0 && at < n && !seen[at], "n %d: %d at %d", (int)n, (int)at, (int)i);
        seen[at] = 1;
    }
}

START_TEST(every_number_comes_once)
{
    for (int64_t n = 1; n < 270; n++)
        for (uint64_t epoch = 0; epoch < 3; epoch++)
            expect_permutation(n == 7 ? UINT64_MAX : 5, epoch, n);
    expect_permutation(1, 0, 65535);
    expect_permutation(1, UINT64_MAX, 65537);
    expect_permutation(3, 1, 69997);
}
END_TEST

/* The network as its papers draw it, with halves as numbers of a list. */
static int64_t plain(uint64_t seed, uint64_t epoch, int64_t n, int64_t i)
{
    int bits = 2;
    while ((1LL << bits) < n)
        bits++;
    do {
        int width[2] = {bits / 2, bits - bits / 2};
        uint64_t half[2] = {(uint64_t)i >> width[1], (uint64_t)i & ((1ULL << width[1]) - 1)};
        for (int k = 0; k < 8; k++) {
            uint32_t counter[4] = {(uint32_t)half[1], (uint32_t)k, (uint32_t)epoch, (uint32_t)(epoch >> 32)}, word[4];
            uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
            reference_philox(counter, key, word);
            uint64_t other = (half[0] ^ word[0]) % (1ULL << width[0]);
            int swapped = width[0];
            half[0] = half[1];
            half[1] = other;
            width[0] = width[1];
            width[1] = swapped;
        }
        i = (int64_t)(half[0] << width[1] | half[1]);
    } while (i >= n);
    return i;
}

START_TEST(it_is_the_network_that_is_described)
{
    const int64_t sizes[] = {1, 2, 3, 17, 1000, 60000, INT64_C(5000000000), INT64_C(1) << 40};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        for (int64_t i = 0; i < sizes[k] && i < 50; i++)
            for (uint64_t seed = 0; seed < 3; seed++)
                ck_assert_int_eq(permutation_at(seed << 33 | 1, seed + 7, sizes[k], sizes[k] - 1 - i),
                                 plain(seed << 33 | 1, seed + 7, sizes[k], sizes[k] - 1 - i));
}
END_TEST

/* Of n numbers about 1 stays, and neighbours follow each other about once; rising halves would be many. */
START_TEST(orders_look_random)
{
    enum { N = 10007 };
    for (uint64_t epoch = 0; epoch < 4; epoch++) {
        int stay = 0, follow = 0, rise = 0, equal = 0;
        double product = 0;
        for (int64_t i = 0; i < N; i++) {
            int64_t at = permutation_at(9, epoch, N, i), next = permutation_at(9, epoch, N, (i + 1) % N);
            stay += at == i;
            follow += next == at + 1;
            rise += next > at;
            equal += at == permutation_at(9, epoch + 1, N, i) || at == permutation_at(10, epoch, N, i);
            product += (i / (double)N - 0.5) * (at / (double)N - 0.5) * 12;
        }
        ck_assert_msg(stay < 8 && follow < 8 && equal < 12, "%d stay, %d follow, %d equal", stay, follow, equal);
        ck_assert_msg(rise > N / 2 - 200 && rise < N / 2 + 200, "%d rise", rise); /* 29 is one deviation */
        ck_assert_msg(product / N > -0.05 && product / N < 0.05, "correlation %g", product / N); /* of 0.01 */
    }
}
END_TEST

int main(void)
{
    const TTest *tests[] = {every_number_comes_once, it_is_the_network_that_is_described, orders_look_random};
    return suite_run("permutation", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
