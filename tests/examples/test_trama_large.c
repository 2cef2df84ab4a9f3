/* SPDX-License-Identifier: Apache-2.0 */
/* The commands on meshes of up to 2^24 processes: summaries whose numbers are worked out by hand, few lines, little
 * memory. */
#include "programs.h"
#include "suite.h"

#include <sys/resource.h>

enum { MOST_LINES = 40, MOST_MEGABYTES = 100 };

static int lines_of(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

/* Kilobytes of the child that has taken most so far, this command being one. */
static long memory_of(const char *arguments)
{
    struct rusage used;
    text_of(run("ASAN_OPTIONS=$ASAN_OPTIONS:quarantine_size_mb=1 ./trama %s >/dev/null", arguments));
    ck_assert_int_eq(getrusage(RUSAGE_CHILDREN, &used), 0);
    return used.ru_maxrss;
}

static void expect_all(const char *arguments, int n, const char *const *parts)
{
    const char *text = text_of(run("./trama %s", arguments));
    for (int i = 0; i < n; i++)
        ck_assert_msg(contains(text, parts[i]), "%s lacks '%s': %.4000s", arguments, parts[i], text);
    ck_assert_msg(lines_of(text) <= MOST_LINES, "%s prints %d lines", arguments, lines_of(text));
}
#define EXPECT(arguments, ...)                                                                                         \
    expect_all(arguments, sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *), (const char *[]){__VA_ARGS__})

/* 10^7 over 2^24: the first 10^7 processes have one element. 16777216 = 4096 x 4096. */
START_TEST(a_summary_counts_every_process_of_a_large_mesh)
{
    EXPECT(
        "layout --mesh 16777216 --shape 10000000 --layout 'S(0)'",
        "\n16777216 processes; 10000000 different boxes, each held by 1 process\n",
        "\n  10000000 processes with a box of [1]\n", "\n  6777216 processes with an empty box\n",
        "\nelements: 10000000 of the tensor, 10000000 held by all processes together; at most 1 by one, as by process "
        "0 and 9999999 others\n",
        "\nprocess 7 (7) [7:8]\n... 16777200 more; --all prints them\nprocess 16777208 ",
        "\nprocess 16777215 (16777215) [10000000:10000000] empty\n");
    EXPECT("layout --mesh dp=4096,mp=4096 --shape 10000,784 --layout 'S(0),R'",
           "; 4096 different boxes, each held by 4096 processes\n",
           "\n  7405568 processes with a box of [3,784]\n", /* 10000 mod 4096 = 1808 */
           "\n  9371648 processes with a box of [2,784]\n", " 32112640000 held by all processes together");
    EXPECT("layout --mesh 1000,100 --shape 281474976710656 --layout 'P,R'",
           "\n100000 processes; 1 different box, held by 100000 processes as 1000 terms\n",
           "elements: 281474976710656 of the tensor, more than 2^63 - 2 held");
    EXPECT("layout --mesh 65 --shape '' --layout R", "\n65 processes; 1 different box, held by 65 processes\n",
           "\n  65 processes with a box of []\n", "... 49 more");
    EXPECT("layout --mesh 100 --shape 0,5 --layout 'S(1)'", "\n100 processes\n  100 processes with an empty box\n",
           "\nelements: 0 of the tensor, 0 held by all processes together\n");
}
END_TEST

/* Weights 1, 2, ..., 100 add up to 5050, so that process i has i + 1 elements. */
START_TEST(a_summary_knows_weights_ids_and_masks)
{
    EXPECT("layout --mesh \"w=[$(seq -s, 1 100)]\" --shape 5050 --layout 'S(0)'",
           "\n100 processes; 100 different boxes, each held by 1 process\n  1 process with a box of [1]\n",
           "\n  92 processes with boxes of further sizes\n", "at most 100 by one, as by process 99 and no other\n");
    EXPECT("layout --mesh \"100:$(seq -s, 99 -1 0)\" --shape 150 --layout 'S(0)'",
           "at most 2 by one, as by process 99 and 49 others\n", "\nprocess 99 (0) [0:2]\n");
    EXPECT("layout --mesh 100 --shape 7 --layout \"R mask{$(seq -s, 0 99 | sed 's/[0-9][0-9]*/1/3g; s/^0,1/0,0/')}\"",
           "\n100 processes\n  98 processes with a box of [7]\n  2 processes with nothing, which the mask takes away\n",
           "686 held by all processes together; at most 7 by one, as by process 2 and 97 others\n");
}
END_TEST

START_TEST(up_to_64_processes_and_with_all_each_has_its_line)
{
    ck_assert_int_ge(lines_of(text_of(run("./trama layout --mesh 64 --shape 640 --layout 'S(0)'"))), 1 + 64);
    ck_assert(contains(text_of(run("./trama layout --mesh 64 --shape 640 --layout 'S(0)'")), "process 30 (30) "));
    ck_assert(!contains(text_of(run("./trama layout --mesh 65 --shape 640 --layout 'S(0)'")), "process 30 (30) "));
    const char *counted = text_of(run("./trama layout --mesh 10000 --shape 640 --layout 'S(0)' --all | tee %s | wc -l; "
                                      "sed -n '2p;4098p;$p' %s",
                                      in_scratch("lines"), in_scratch("lines")));
    ck_assert_str_eq(counted, "10001\nprocess 0 (0) [0:1]\nprocess 4096 (4096) [640:640] empty\n"
                              "process 9999 (9999) [640:640] empty\n");
}
END_TEST

/* Process (i, j) of 1000 x 1000 holds rows 10i.. and columns 10j.., and shall hold rows 10j.. and columns 10i..: only
 * those with i = j have it. 999,000 lack 100 elements of 4 bytes. */
START_TEST(what_a_large_reshard_has_to_move_is_counted)
{
    EXPECT("reshard --mesh 1000,1000 --shape 10000,10000 --from 'S(0),S(1)' --to 'S(1),S(0)'",
           "from: 1000000 processes; 1000000 different boxes", "\nto: 1000000 processes; ",
           "\n999000 processes lack something, process 1 the most; all together 399600000 bytes\n",
           "\nbytes per process max -, lower bound 400, ratio -\n", "no plan is made", "--all");
    EXPECT("reshard --mesh 16777216 --shape 16777216 --from 'S(0)' --to R --dtype f64",
           "\n16777216 processes lack something, process 0 the most; all together 2251799679467520 bytes\n",
           "lower bound 134217720, "); /* (2^24 - 1) x 8, and 2^24 times that */
    EXPECT("reshard --mesh 16777216 --shape 5 --from R --to 'S(0)'", "\n0 processes lack something\n",
           "lower bound 0, ");
    EXPECT("reshard --mesh 1000 --to-mesh \"1000:$(seq -s, 500 1499)\" --shape 1000 --from 'S(0)' --to 'S(0)'",
           "\n1500 processes; ", "\n1000 processes lack something, process 500 the most; all together 4000 bytes\n");
    EXPECT("reshard --mesh 1000000 --shape 1000 --from P --to R", "partial", "max -, lower bound -, ratio -\n");
}
END_TEST

/* Where both can be had, the bound that is counted is the plans'. */
START_TEST(the_bound_that_is_counted_is_the_one_of_the_plans)
{
    static const char *const changes[] = {
        "--mesh 70 --shape 100,3 --from 'S(0)' --to 'S(1)'",
        "--mesh 7,11 --shape 100,33 --from 'S(0),S(0)' --to 'S(0)[1],S(0)[0]'",
        "--mesh 7,11 --shape 100,33 --from 'S(0),S(1)' --to 'S(1),R'",
        "--mesh 'a=[3,1,2],30' --shape 100,33 --from 'S(0),S(1)' --to 'S(1),S(0)'",
        "--mesh 80 --to-mesh 10,7 --shape 100,33 --from 'S(0)' --to 'S(1),S(0)'",
        "--mesh \"80:$(seq -s, 79 -1 0)\" --shape 90 --from 'S(0)' --to R",
        "--mesh 80 --to-mesh \"80:$(seq -s, 40 119)\" --shape 90 --from 'S(0)' --to 'S(0)'",
    };
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        long long counted, planned;
        const char *text = last_line(text_of(run("./trama reshard %s", changes[i])));
        ck_assert_msg(sscanf(text, "bytes per process max -, lower bound %lld,", &counted) == 1, "%s", text);
        text = last_line(text_of(run("./trama reshard %s --all", changes[i])));
        ck_assert_msg(sscanf(text, "bytes per process max %*d, lower bound %lld,", &planned) == 1, "%s", text);
        ck_assert_msg(counted == planned, "%s: counted %lld, planned %lld", changes[i], counted, planned);
    }
}
END_TEST

START_TEST(what_no_large_mesh_can_have_is_refused_with_the_reason)
{
    static const wrong_use wrongs[] = {
        {"layout --mesh 4097 --shape 8 --layout R --svg /dev/null", "--svg '/dev/null'", "at most 4096"},
        {"layout --mesh 16777216 --shape 8 --layout R --all --svg /dev/null", "--svg", "16777216 processes"},
        {"reshard --mesh 65 --shape 8 --from R --to R --moves", "--moves", "--all"},
        {"reshard --mesh 65 --shape 8 --from R --to R --svg /dev/null", "--svg", "--all"},
        {"reshard --mesh 1025 --shape 8 --from R --to R --svg /dev/null --all", "--svg", "at most 1024"},
        {"layout --mesh 16777217 --shape 8 --layout R", "--mesh '16777217'", "2^24"},
        {"layout --mesh 2147483648 --shape 8 --layout R", "--mesh", "'2147483648'"},
        {"layout --mesh 4294967297 --shape 8 --layout R", "--mesh", "'4294967297'"},
        {"layout --mesh 65536,65536,65536,65536 --shape 8 --layout R,R,R,R", "--mesh", "2^24"},
        {"layout --mesh 2147483647,2147483647,4 --shape 8 --layout R,R,R", "--mesh", "2^24"},
        {"layout --mesh 2:0,2147483648 --shape 8 --layout R", "--mesh", "2147483648"},
    };
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i += suite_stride())
        run_wrong("trama ", &wrongs[i]);
}
END_TEST

START_TEST(large_meshes_take_little_memory)
{
    static const char *const large[] = {
        "layout --mesh 16777216 --shape 16777216 --layout 'S(0)'",
        "layout --mesh 4096,4096 --shape 16777216 --layout R,R",
        "reshard --mesh 16777216 --shape 16777216 --from 'S(0)' --to R",
        "rule matmul --mesh 16777216 --in 281474976710656,1:0,-1 --in 1,5",
    };
    long before = memory_of("layout --mesh 2 --shape 4 --layout R");
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        long more = memory_of(large[i]) - before;
        ck_assert_msg(more < MOST_MEGABYTES * 1024, "%s takes %ld KB more than a small one", large[i], more);
    }
}
END_TEST

START_TEST(help_tells_what_is_summed_up)
{
    ck_assert(contains(text_of(run("./trama layout --help")), "--all"));
    ck_assert(contains(text_of(run("./trama reshard --help")), "--all"));
}
END_TEST

TESTS(large_meshes_take_little_memory, a_summary_counts_every_process_of_a_large_mesh,
      a_summary_knows_weights_ids_and_masks, up_to_64_processes_and_with_all_each_has_its_line,
      what_a_large_reshard_has_to_move_is_counted, the_bound_that_is_counted_is_the_one_of_the_plans,
      what_no_large_mesh_can_have_is_refused_with_the_reason, help_tells_what_is_summed_up)
