/* SPDX-License-Identifier: Apache-2.0 */
/* Seeded mutations of texts that are right, thrown at the parsers; tests/fuzz is the same under a real fuzzer. */
#include <check.h>

#include "fuzz_text.h"
#include "simulation.h"
#include "suite.h"

enum { LONGEST = 64 };

static const char *const seeds[] = {"dp=2,mp=2|2S(0),R",
                                    "2,3|2[1,0]",
                                    "4:3,2,1,0|1P(max)",
                                    "dp=[3,1],mp=2|3[1+0,-1,-1]",
                                    "a=2,b=2,c=2|2S(0)[1],S(0)[0],P(avg)",
                                    "2,2|1R,R mask{1,0,1,1}",
                                    "8|2[-1,-1] P{0:sum}",
                                    "2,3:5,4,3,2,1,0|2?,S(1)",
                                    "[1,2,3]|0R",
                                    "dp=2,mp=2|2dp,-",
                                    "dp=2,mp=3|2[mp+dp, -]",
                                    "dp=2,S=2|1-1 P{dp:sum,S:avg}",
                                    "P=2,mask=2|1mask mask{1,1,0,1}"};
static const char letters[] = "0123456789,:=[](){}|+-?SRP umaxinvgks_dp\x7f\xff";

static size_t mutate(unsigned char *at, size_t n, uint64_t *seed)
{
    for (int i = 1 + random_below(seed, 4); i > 0; i--) {
        size_t where = (size_t)random_below(seed, (int)n + 1);
        unsigned char letter = (unsigned char)letters[random_below(seed, (int)sizeof letters)];
        switch (random_below(seed, 4)) {
        case 0: /* put in */
            if (n < LONGEST) {
                memmove(at + where + 1, at + where, n - where);
                at[where] = letter;
                n++;
            }
            break;
        case 1: /* take out */
            if (where < n)
                memmove(at + where, at + where + 1, --n - where);
            break;
        case 2: /* replace */
            if (where < n)
                at[where] = letter;
            break;
        default: /* end there */
            n = random_below(seed, 8) ? n : where;
        }
    }
    return n;
}

START_TEST(texts_parse_and_print_back_or_are_refused)
{
    uint64_t seed = 20261121;
    for (int i = 0; i < (suite_is_long() ? 20000000 : 100000); i++) {
        unsigned char bytes[LONGEST + 1];
        const char *start = seeds[random_below(&seed, (int)(sizeof seeds / sizeof *seeds))];
        size_t n = strlen(start);
        memcpy(bytes, start, n);
        fuzz_text(bytes, mutate(bytes, n, &seed));
    }
}
END_TEST

int main(void)
{
    const TTest *tests[] = {texts_parse_and_print_back_or_are_refused};
    return suite_run("fuzz", NULL, NULL, tests, 1);
}
