/* SPDX-License-Identifier: Apache-2.0 */
/* The command trama reshard: moves and cost summary worked out by hand, and wrong orders. */
#include "programs.h"
#include "suite.h"

static const char *reshard(const char *arguments)
{
    return text_of(run("./trama reshard %s", arguments));
}

static void expect_moves(const char *arguments, const char *moves, const char *last)
{
    char whole[512];
    snprintf(whole, sizeof whole, "%s --moves", arguments);
    const char *text = reshard(whole);
    ck_assert_msg(!strncmp(text, moves, strlen(moves)), "%s:\n%s", arguments, text);
    ck_assert_msg(strncmp(text + strlen(moves), "move", 4) && strncmp(text + strlen(moves), "sum", 3),
                  "%s: more moves\n%s", arguments, text);
    ck_assert_msg(!strncmp(last_line(text), last, strlen(last)), "%s: %s", arguments, last_line(text));
}

START_TEST(moves_are_the_boxes_that_lack)
{
    expect_moves("--mesh 2 --shape 5,3 --from 'S(0)' --to 'S(1)'", "move 0 1 [0:3,2:3] 12\nmove 1 0 [3:5,0:2] 16\n",
                 "bytes per process max 16, lower bound 16, ratio 1.000\n");
    expect_moves("--mesh 2 --shape 5 --from R --to 'S(0)'", "",
                 "bytes per process max 0, lower bound 0, ratio 1.000\n");
    expect_moves("--mesh 2 --shape 4,4 --from '[0,-1]' --to-mesh 2:5,0 --to '[-1,-1]' --dtype f64",
                 "move 0 5 [0:2,0:4] 64\nmove 1 0 [2:4,0:4] 64\nmove 1 5 [2:4,0:4] 64\n",
                 "bytes per process max 128, lower bound 128, ratio 1.000\n");
    expect_moves("--mesh '[3,1]' --shape 8 --from 'S(0)' --to-mesh 2 --to 'S(0)' --dtype u8", "move 0 1 [4:6] 2\n",
                 "bytes per process max 2, lower bound 2, ratio 1.000\n");
    expect_moves("--mesh '[3,1]' --shape 8 --from 'S(0)' --to-mesh 2 --to 'S(0)' --dtype bf16", "move 0 1 [4:6] 4\n",
                 "bytes per process max 4, lower bound 4, ratio 1.000\n");
    expect_moves("--mesh 3 --shape '' --from 'R mask{0,1,0}' --to R --dtype i64", "move 1 0 [] 8\nmove 1 2 [] 8\n",
                 "bytes per process max 8, lower bound 8, ratio 1.000\n");
}
END_TEST

/* dist/README.md: [11,20] P to S(0) on 2: 6 and 5 rows. */
START_TEST(partial_values_are_summed_where_they_are_wanted)
{
    expect_moves("--mesh 2 --shape 11,20 --from P --to 'S(0)'", "sum 0 1 [6:11,0:20] 400\nsum 1 0 [0:6,0:20] 480\n",
                 "bytes per process max 480, lower bound -, ratio -\n");
    expect_moves(
        "--mesh 3 --shape 3 --from 'P(max)' --to R",
        "sum 0 1 [1:2] 4\nsum 0 2 [2:3] 4\nsum 1 0 [0:1] 4\nsum 1 2 [2:3] 4\nsum 2 0 [0:1] 4\nsum 2 1 [1:2] 4\n"
        "move 0 1 [0:1] 4\nmove 0 2 [0:1] 4\nmove 1 0 [1:2] 4\nmove 1 2 [1:2] 4\nmove 2 0 [2:3] 4\nmove 2 1 [2:3] 4\n",
        "bytes per process max 16, lower bound -, ratio -\n");
}
END_TEST

/* dist/README.md, "Bytes of a change of layout", of 4 MiB; (R,S0) to (S1,S1) is 7/512, (S0,S0) to (S1,S1) 63/4096 */
START_TEST(the_two_axis_examples_reach_the_bound)
{
    static const char *const cases[][3] = {{"R,S(0)", "S(1),S(1)", "57344"},
                                           {"S(0),S(0)", "S(1),S(1)", "64512"},
                                           {"S(0),S(1)", "S(1),S(0)", "65536"},
                                           {"S(0),S(0)", "R,S(0)", "524288"},
                                           {"R,S(0)", "S(0),R", "524288"}};
    for (int i = 0; i < 5; i++) {
        char arguments[200], last[120];
        snprintf(arguments, sizeof arguments, "--mesh dp=8,mp=8 --shape 1024,1024 --from '%s' --to '%s'", cases[i][0],
                 cases[i][1]);
        snprintf(last, sizeof last, "bytes per process max %s, lower bound %s, ratio 1.000\n", cases[i][2],
                 cases[i][2]);
        ck_assert_str_eq(last_line(reshard(arguments)), last);
    }
}
END_TEST

START_TEST(both_layouts_may_name_axes)
{
    static const char moves[] = "move 0 1 [0:3,2:3] 12\nmove 1 0 [3:5,0:2] 16\n",
                      last[] = "bytes per process max 16, lower bound 16, ratio 1.000\n";
    expect_moves("--mesh dp=2 --shape 5,3 --from dp,- --to '[-, dp]'", moves, last);
    expect_moves("--mesh dp=2 --to-mesh mp=2 --shape 5,3 --from dp,- --to -,mp", moves, last);
}
END_TEST

START_TEST(a_picture_shows_the_bytes_of_each_pair)
{
    char arguments[300], command[300];
    snprintf(arguments, sizeof arguments, "--mesh 4 --shape 8 --from 'S(0)' --to R --svg '%s'",
             in_scratch("moves.svg"));
    reshard(arguments);
    snprintf(command, sizeof command, "cat '%s'", in_scratch("moves.svg"));
    const char *svg = text_of(run("%s", command));
    ck_assert(contains(svg, "<svg xmlns=") && contains(svg, "</svg>"));
    ck_assert(contains(svg, "<title>3 to 0: 8 bytes</title>") && !contains(svg, "<title>3 to 3"));
    snprintf(arguments, sizeof arguments, "--mesh 2 --shape 8 --from R --to R --svg '%s'", in_scratch("none.svg"));
    reshard(arguments);
}
END_TEST

static const wrong_use wrongs[] = {
    {"", "--mesh", "missing"},
    {"--mesh 2", "--shape", "missing"},
    {"--mesh 2 --shape 4", "--from", "missing"},
    {"--mesh 2 --shape 4 --from R", "--to", "missing"},
    {"--mesh 2x --shape 4 --from R --to R", "--mesh", "'2x'"},
    {"--mesh 0 --shape 4 --from R --to R", "--mesh", "'0'"},
    {"--mesh '[1,0]' --shape 4 --from R --to R", "--mesh", "weight 1"},
    {"--mesh 2 --to-mesh 3:1,1,2 --shape 4 --from R --to R", "--to-mesh", "there twice"},
    {"--mesh 2 --shape 4,x --from R --to R", "--shape", "'4,x'"},
    {"--mesh 2 --shape -4 --from R --to R", "--shape", "'-4'"},
    {"--mesh 2 --shape 4, --from R --to R", "--shape", "'4,'"},
    {"--mesh 2 --shape 1,1,1,1,1,1,1,1,1 --from R --to R", "--shape", "1 to 8"},
    {"--mesh 2 --shape 9000000000,9000000000 --from R --to R", "--shape", "elements"},
    {"--mesh 2 --shape 4 --from 'S(1)' --to R", "--from", "dim 1"},
    {"--mesh 2 --shape 4 --from R --to 'S(0),R'", "--to", "2 placements"},
    {"--mesh 2 --shape 4 --from '[0,-1]' --to R", "--from", "2 entries"},
    {"--mesh dp=2 --to-mesh mp=2 --shape 4 --from dp --to dp", "--to", "no axis 'dp'; its axes are mp"},
    {"--mesh 2 --shape 4 --from '?' --to R", "source layout", "open"},
    {"--mesh 2,2 --shape 4 --from 'P(max),P(min)' --to R,R", "--from", "P(min)"},
    {"--mesh 2 --shape 4 --from 'S(0) mask{1,0}' --to R", "--from", "mask"},
    {"--mesh 2 --shape 4 --from R --to R --dtype f8", "--dtype", "'f8'"},
    {"--mesh 2 --shape 4 --from R --to R --svg /no/such/folder/x.svg", "--svg", "/no/such/folder"},
    {"--mesh 2 --shape 4 --from R --to R now", "'now'", "only options"},
    {"--mesh 2 --shape 4 --from R --to R --fast", "--fast", "unrecognized"},
    {"--mesh 2:0,16777216 --shape 4 --from R --to R", "--mesh", "id 16777216"},
    {"--mesh 2:0,2147483647 --shape 4 --from R --to R", "--mesh", "id 2147483647"},
    {"--mesh '' --shape 4 --from R --to R", "--mesh", "''"},
    {"--mesh 1e30 --shape 4 --from R --to R", "--mesh", "'1e30'"},
    {"--mesh 16777217 --shape 4 --from R --to R", "--mesh", "2^24"},
    {"--mesh 2 --to-mesh '' --shape 4 --from R --to R", "--to-mesh", "''"},
    {"--mesh 2 --to-mesh -2 --shape 4 --from R --to R", "--to-mesh", "'-2'"},
    {"--mesh 2 --to-mesh 99999999999999999999 --shape 4 --from R --to R", "--to-mesh", "'99999999999999999999'"},
    {"--mesh 2 --shape 1e30 --from R --to R", "--shape", "'1e30'"},
    {"--mesh 2 --shape 99999999999999999999 --from R --to R", "--shape", "'99999999999999999999'"},
    {"--mesh 2 --shape 4 --from '' --to R", "--from", "''"},
    {"--mesh 2 --shape 4 --from R --to ''", "--to", "''"},
    {"--mesh 2 --shape 4 --from R --to 'S(1e30)'", "--to", "'S(1e30)'"},
    {"--mesh 2 --shape 4 --from 'S(99999999999)' --to R", "--from", "'S(99999999999)'"},
    {"--mesh 2 --shape 4 --from R --to '?'", "target layout", "open"},
    {"--mesh 2 --shape 4 --from R --to R --dtype ''", "--dtype", "''"},
    {"--mesh 2 --shape 4 --from R --to R --dtype", "--dtype", "requires an argument"},
    {"--mesh 2 --shape 4 --from R --to R --moves=1", "--moves", "doesn't allow an argument"},
    {"--mesh 2 --shape 4 --from R --to R --svg ''", "--svg", "''"},
    {"--mesh 2 --shape 4 --from R --to R --svg /dev/full", "--svg", "No space"},
    {"--mesh 2 --shape 4 --from R --to R --svg", "--svg", "requires an argument"},
    {"--mesh 2 --shape", "--shape", "requires an argument"},
    {"--mesh 2 --from", "--from", "requires an argument"},
    {"--mesh 2 --to", "--to", "requires an argument"},
    {"--mesh 2 --to-mesh", "--to-mesh", "requires an argument"},
    {"--mesh", "--mesh", "requires an argument"},
};

START_TEST(wrong_orders_are_named)
{
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i += suite_stride())
        run_wrong("trama reshard ", &wrongs[i]);
}
END_TEST

START_TEST(help_tells_what_is_printed)
{
    const char *text = text_of(run("./trama reshard --help"));
    static const char *const parts[] = {
        "--mesh", "--to-mesh", "--shape", "--from", "--to=", "--dtype", "--moves", "--svg", "lower bound"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        ck_assert_msg(contains(text, parts[i]), "no %s in\n%s", parts[i], text);
}
END_TEST

TESTS(moves_are_the_boxes_that_lack, partial_values_are_summed_where_they_are_wanted,
      the_two_axis_examples_reach_the_bound, both_layouts_may_name_axes, a_picture_shows_the_bytes_of_each_pair,
      wrong_orders_are_named, help_tells_what_is_printed)
