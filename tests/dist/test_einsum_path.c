/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which an einsum joins its operands, by its multiplications. */
#include <check.h>
#include <string.h>

#include "einsum_path.h"
#include "suite.h"

/* The multiplications of a sum such as "ab,bc->ac" in the order that is chosen; extent: of the letters from 'a' on. */
static double multiplications(const char *sum, const int64_t *extent)
{
    label_set terms[16] = {0}, result = 0;
    int n = 0;
    const char *arrow = strstr(sum, "->");
    for (const char *c = sum; c < arrow; c++) {
        if (*c == ',')
            n++;
        else
            terms[n] |= label_bit(*c - 'a');
    }
    for (const char *c = arrow + 2; *c; c++)
        result |= label_bit(*c - 'a');
    double count = 0;
    for (n++; n > 1; n--) {
        const label_pair p = einsum_next_pair(n, terms, result, extent);
        ck_assert(0 <= p.a && p.a < p.b && p.b < n);
        const label_set all = terms[p.a] | terms[p.b];
        double points = 1;
        for (int label = 0; label < LABELS; label++)
            points *= all & label_bit(label) ? (double)extent[label] : 1;
        count += points;
        terms[p.a] = all & einsum_kept(n, terms, result, p);
        memmove(terms + p.b, terms + p.b + 1, (size_t)(n - p.b - 1) * sizeof *terms);
    }
    return count;
}

/* Cormen, Leiserson, Rivest and Stein, Introduction to Algorithms, figure 15.5: matrices of 30 x 35, 35 x 15, 15 x 5,
 * 5 x 10, 10 x 20 and 20 x 25. The chain of six has more terms than are all tried. */
START_TEST(chains_of_matrices_take_the_multiplications_of_the_textbook)
{
    static const int64_t extent[LABELS] = {30, 35, 15, 5, 10, 20, 25};
    ck_assert_double_eq(multiplications("ab,bc->ac", extent), 15750);
    ck_assert_double_eq(multiplications("ab,bc,cd->ad", extent), 7875);
    ck_assert_double_eq(multiplications("ab,bc,cd,de->ae", extent), 9375);
    ck_assert_double_eq(multiplications("ab,bc,cd,de,ef->af", extent), 11875);
    ck_assert_double_ge(multiplications("ab,bc,cd,de,ef,fg->ag", extent), 15125);
    ck_assert_double_eq(multiplications("cd,ab,de,bc->ae", extent), 9375); /* in any order of the operands */
}
END_TEST

/* The same where all extents are 10. */
static double multiplications_of_tens(const char *sum)
{
    int64_t extent[LABELS];
    for (int i = 0; i < LABELS; i++)
        extent[i] = 10;
    return multiplications(sum, extent);
}

/* The example of opt_einsum's page: five operands of extent 10, a naive loop of 10^8 points, four products of 10^5. */
START_TEST(a_transformation_of_an_index_at_a_time_takes_five_loops)
{
    ck_assert_double_eq(multiplications_of_tens("ea,fb,abcd,gc,hd->efgh"), 4e5);
}
END_TEST

/* Seven terms: each pair of a chain shares a letter, and none is joined as an outer product. */
START_TEST(long_chains_join_neighbours)
{
    ck_assert_double_eq(multiplications_of_tens("ab,bc,cd,de,ef,fg,gh->ah"), 6e3);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        chains_of_matrices_take_the_multiplications_of_the_textbook,
        a_transformation_of_an_index_at_a_time_takes_five_loops,
        long_chains_join_neighbours,
    };
    return suite_run("einsum_path", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
