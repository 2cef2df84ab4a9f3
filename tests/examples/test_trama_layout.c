/* SPDX-License-Identifier: Apache-2.0 */
/* trama layout: its lines, its picture and its SVG against boxes worked out by hand, and every wrong use of it. */
#include "programs.h"
#include "suite.h"

/* ---- Lines and pictures ---- */

/* Runs it; the arguments are the shell's. */
static const char *layout(const char *arguments)
{
    return text_of(run("./trama layout %s", arguments));
}

static void expect_all(const char *arguments, int n, const char *const *parts)
{
    const char *text = layout(arguments);
    for (int i = 0; i < n; i++)
        ck_assert_msg(contains(text, parts[i]), "%s lacks '%s': %.4000s", arguments, parts[i], text);
}
#define EXPECT(arguments, ...)                                                                                         \
    expect_all(arguments, sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *), (const char *[]){__VA_ARGS__})

START_TEST(the_reference_tensor_on_a_mesh_with_ids)
{
    const char *text = layout("--mesh 2,3:2,4,5,0,1,3 --shape 4,3 --layout 'S(0),S(1)'");
    ck_assert_str_eq(text, "mesh 2,3:2,4,5,0,1,3, layout S(0),S(1) = [0,1], shape [4,3]\n"
                           "process 2 (0,0) [0:2,0:1]\n"
                           "process 4 (0,1) [0:2,1:2]\n"
                           "process 5 (0,2) [0:2,2:3]\n"
                           "process 0 (1,0) [2:4,0:1]\n"
                           "process 1 (1,1) [2:4,1:2]\n"
                           "process 3 (1,2) [2:4,2:3]\n"
                           "\n"
                           "  0   1   2   3\n"
                           "0 +---+---+---+\n"
                           "  | 2 | 4 | 5 |\n"
                           "  |   |   |   |\n"
                           "2 +---+---+---+\n"
                           "  | 0 | 1 | 3 |\n"
                           "  |   |   |   |\n"
                           "4 +---+---+---+\n");
}
END_TEST

/* 7 over axis 1 first: 3, 2, 2; then each over axis 0: 2+1, 1+1, 1+1. */
START_TEST(axes_that_share_a_dim_cut_it_in_their_order)
{
    const char *text = layout("--mesh 2,3 --shape 7,5 --layout '[1+0,-1]'");
    ck_assert_str_eq(text, "mesh 2,3, layout S(0)[1],S(0)[0] = [1+0,-1], shape [7,5]\n"
                           "process 0 (0,0) [0:2,0:5]\n"
                           "process 1 (0,1) [3:4,0:5]\n"
                           "process 2 (0,2) [5:6,0:5]\n"
                           "process 3 (1,0) [2:3,0:5]\n"
                           "process 4 (1,1) [4:5,0:5]\n"
                           "process 5 (1,2) [6:7,0:5]\n"
                           "\n"
                           "  0          5\n"
                           "0 +----------+\n"
                           "  |    0     |\n"
                           "  |          |\n"
                           "2 +----------+\n"
                           "  |    3     |\n"
                           "3 +----------+\n"
                           "  |    1     |\n"
                           "4 +----------+\n"
                           "  |    4     |\n"
                           "5 +----------+\n"
                           "  |    2     |\n"
                           "6 +----------+\n"
                           "  |    5     |\n"
                           "7 +----------+\n");
}
END_TEST

START_TEST(both_forms_of_a_layout_give_the_same)
{
    static const char *const forms[][2] = {{"'[1+0,-1]'", "'S(0)[1],S(0)[0]'"},
                                           {"'[0+1,-1]'", "'S(0),S(0)'"},
                                           {"'[-1,-1]'", "R,R"},
                                           {"'[1,-1] P{0:max}'", "'P(max),S(0)'"},
                                           {"'[-1,-1] P{0:sum,1:avg}'", "'P,P(avg)'"},
                                           {"'[-1,1] mask{1,1,1,0,0,0}'", "'R,S(1) mask{1,1,1,0,0,0}'"}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        char *first = strdup(text_of(run("./trama layout -m 2,3 -s 7,5 -l %s", forms[i][0])));
        ck_assert_str_eq(first, text_of(run("./trama layout -m 2,3 -s 7,5 -l %s", forms[i][1])));
        free(first);
    }
}
END_TEST

START_TEST(a_layout_may_name_axes)
{
    char *named = strdup(layout("--mesh dp=2,mp=3 --shape 7,5 --layout mp+dp,-"));
    ck_assert_str_eq(named, layout("--mesh dp=2,mp=3 --shape 7,5 --layout '[1+0,-1]'"));
    free(named);
}
END_TEST

START_TEST(pieces_are_balanced_and_may_be_empty)
{
    EXPECT("--mesh 2 --shape 11,20 --layout 'S(0)'", "process 0 (0) [0:6,0:20]\n", "process 1 (1) [6:11,0:20]\n");
    EXPECT("--mesh 4 --shape 5 --layout 'S(0)'", "0 (0) [0:2]\n", "1 (1) [2:3]\n", "2 (2) [3:4]\n", "3 (3) [4:5]\n");
    EXPECT("--mesh 3 --shape 2 --layout 'S(0)'", "0 (0) [0:1]\n", "1 (1) [1:2]\n", "2 (2) [2:2] empty\n",
           "0   1   2\n+---+---+\n| 0 | 1 |\n+---+---+\n");
    EXPECT("--mesh 2 --shape 0,5 --layout R", "process 1 (1) [0:0,0:5] empty\n");
    EXPECT("--mesh 'dp=[3,1]' --shape 8 --layout 'S(0)'", "0 (dp 0) [0:6]\n", "1 (dp 1) [6:8]\n");
}
END_TEST

START_TEST(a_cell_names_all_holders_and_joins_terms)
{
    EXPECT("--mesh dp=2,mp=3 --shape 6 --layout 'S(0),R'", "mesh dp=2,mp=3, layout S(0),R = [0], shape [6]\n",
           "process 4 (dp 1,mp 1) [3:6]\n", " 0,1,2 |", " 3,4,5 |");
    EXPECT("--mesh 2,2 --shape 8 --layout 'P(max),S(0)'", "process 0 (0,0) [0:4] term 0 of 2\n",
           "process 3 (1,1) [4:8] term 1 of 2\n", "|  0+2   |  1+3   |\n", "+ stands between the terms");
    EXPECT("--mesh 2,2 --shape 8 --layout 'P,R'", " 0,1+2,3 ");
    EXPECT("--mesh 2 --shape '' --layout 'P(avg)'", "layout P(avg) = [] P{0:avg}, shape []\n",
           "process 1 (1) [] term 1 of 2\n");
    EXPECT("--mesh 20 --shape 8 --layout R", " 0-19 ");
}
END_TEST

START_TEST(a_mask_takes_holders_away)
{
    EXPECT("--mesh 2,2 --shape 4,4 --layout 'S(0),R mask{1,0,0,1}'", "process 0 (0,0) [0:2,0:4]\n",
           "process 1 (0,1) nothing\n", "process 2 (1,0) nothing\n", "process 3 (1,1) [2:4,0:4]\n",
           "0 +--------+\n  |   0    |\n  |        |\n2 +--------+\n  |   3    |\n  |        |\n4 +--------+\n");
}
END_TEST

START_TEST(a_large_tensor_is_drawn_small)
{
    const char *text = strstr(layout("--mesh 4,6 --shape 100000,784 --layout 'S(0),S(1)'"), "\n\n") + 2;
    int lines = 0;
    for (; *text; text += strcspn(text, "\n") + 1, lines++)
        ck_assert_uint_le(strcspn(text, "\n"), 80);
    ck_assert_int_eq(lines, 1 + 5 + 24); /* offsets, borders, four rows of six lines */
}
END_TEST

START_TEST(what_cannot_be_drawn_says_so_or_is_left_out)
{
    EXPECT("--mesh 40 --shape 400 --layout 'S(0)'", "process 39 (39) [390:400]\n", "does not fit 80 columns");
    EXPECT("--mesh 64 --shape 8 --layout P", "term 63 of 64", "does not fit 80 columns");
    EXPECT("--mesh 30 --shape 60,2 --layout 'S(0)'", "does not fit");
    ck_assert(!contains(layout("--mesh 2 --shape 4,4,4 --layout 'S(2)'"), "+"));
    ck_assert(!contains(layout("--mesh 2 --shape '' --layout R"), "+"));
    ck_assert(!contains(layout("--mesh 2 --shape 4,0 --layout R"), "+"));
}
END_TEST

/* ---- SVG ---- */

static char svg[1 << 16];

static void draw(const char *arguments)
{
    text_of(run("./trama layout %s --svg %s", arguments, in_scratch("drawing.svg")));
    FILE *file = fopen(in_scratch("drawing.svg"), "r");
    ck_assert_ptr_nonnull(file);
    svg[fread(svg, 1, sizeof svg - 1, file)] = 0;
    fclose(file);
}

/* Behind the attributes of a tag, each a name and a quoted value. */
static const char *skip_attributes(const char *at)
{
    while (*at == ' ') {
        at += strcspn(at, "=");
        ck_assert_msg(at[0] == '=' && at[1] == '"', "an attribute without a value: %.80s", at);
        size_t length = strcspn(at + 2, "\"<&");
        ck_assert_msg(at[2 + length] == '"', "a value without an end: %.80s", at);
        at += length + 3;
    }
    return at;
}

/* Each tag is closed in turn, and no text holds a reserved character. */
static void expect_well_formed(const char *at)
{
    char open[16][16];
    int depth = 0;
    do {
        ck_assert_msg(*at == '<', "a reserved character in a text, or text outside: %.80s", at);
        bool closes = *++at == '/';
        size_t length = strcspn(at += closes, " />");
        ck_assert(length > 0 && length < 16 && depth < 16);
        if (closes) {
            ck_assert_msg(depth > 0 && strlen(open[depth - 1]) == length && !strncmp(open[depth - 1], at, length),
                          "closed out of turn: %.80s", at);
            depth--;
        } else {
            snprintf(open[depth++], 16, "%.*s", (int)length, at);
        }
        at = skip_attributes(at + length);
        depth -= *at == '/';
        at += *at == '/';
        ck_assert_msg(*at == '>', "a tag without an end: %.80s", at);
        at += 1 + strcspn(at + 1, "<>&");
    } while (depth > 0);
    ck_assert_str_eq(at, "");
}

static int count(const char *part)
{
    int n = 0;
    for (const char *at = svg; (at = strstr(at, part)); at++)
        n++;
    return n;
}

/* The last fill before a part of the drawing. */
static unsigned fill_before(const char *part)
{
    const char *end = strstr(svg, part), *fill = NULL;
    ck_assert_msg(end != NULL, "the drawing lacks '%s'", part);
    for (const char *at = svg; (at = strstr(at, "fill=\"#")) && at < end; at++)
        fill = at;
    ck_assert_ptr_nonnull(fill);
    return (unsigned)strtoul(fill + 7, NULL, 16);
}

START_TEST(the_drawing_has_a_cell_for_each_box_in_the_colour_of_its_holder)
{
    unsigned seen[6];
    draw("--mesh 2,3 --shape 7,5 --layout '[1+0,-1]'");
    expect_well_formed(svg);
    ck_assert(contains(svg, "xmlns=\"http://www.w3.org/2000/svg\"") && !contains(svg, "href"));
    ck_assert_int_eq(count("<title>mesh 2,3, layout S(0)[1],S(0)[0] = [1+0,-1], shape [7,5]</title>"), 1);
    ck_assert_int_eq(count("class=\"cell\""), 6);
    for (int i = 0; i < 6; i++) {
        char cell[64], legend[64];
        snprintf(cell, sizeof cell, "<title>%d</title>", i);
        snprintf(legend, sizeof legend, ">process %d (", i);
        seen[i] = fill_before(cell);
        ck_assert_uint_eq(seen[i], fill_before(legend));
        for (int j = 0; j < i; j++)
            ck_assert_uint_ne(seen[i], seen[j]);
    }
    ck_assert(contains(svg, ">process 3 (1,0) [2:3,0:5]</text>"));
}
END_TEST

START_TEST(the_drawing_shows_replicas_terms_and_masks)
{
    draw("--mesh 2,2 --shape 8 --layout 'P(max),S(0)'");
    expect_well_formed(svg);
    ck_assert_int_eq(count("class=\"cell\""), 2);
    ck_assert(contains(svg, ">0+2</text>") && contains(svg, ">1+3</text>") && contains(svg, "P{0:max}"));
    ck_assert(contains(svg, "[4:8] term 1 of 2</text>") && contains(svg, "between the terms of a partial value"));
    draw("--mesh 2,2 --shape 4,4 --layout 'S(0),R mask{1,0,1,1}'");
    expect_well_formed(svg);
    ck_assert(contains(svg, ">0</text>") && contains(svg, ">2,3</text>") && contains(svg, "mask{1,0,1,1}"));
    ck_assert_uint_eq(fill_before(">process 1 (0,1) nothing</text>"), 0xffffff);
}
END_TEST

START_TEST(tensors_of_any_rank_are_drawn)
{
    draw("--mesh 2 --shape '' --layout R");
    expect_well_formed(svg);
    ck_assert(count("class=\"cell\"") == 1 && contains(svg, ">0,1</text>"));
    draw("--mesh 2,2 --shape 4,5,6 --layout 'S(0),S(2)'");
    expect_well_formed(svg);
    ck_assert(count("class=\"cell\"") == 2 && contains(svg, ">0,1</text>") && contains(svg, ">2,3</text>"));
    ck_assert(contains(svg, "dims 0 and 1 are drawn") && contains(svg, ">process 3 (1,1) [2:4,0:5,3:6]</text>"));
    draw("--mesh 2 --shape 0,5 --layout 'S(0)'");
    expect_well_formed(svg);
    ck_assert(count("class=\"cell\"") == 0 && contains(svg, "no element is held"));
    draw("--mesh 100 --shape 8 --layout P");
    expect_well_formed(svg);
    ck_assert(contains(svg, "98+99</title>") && contains(svg, "..</text>"));
}
END_TEST

START_TEST(a_reader_of_xml_takes_the_drawing)
{
    if (!installed("xmllint"))
        return; /* the check above has to do */
    draw("--mesh dp=2,mp=2 --shape 5,3 --layout 'P,S(1)'");
    text_of(run("xmllint --noout %s", in_scratch("drawing.svg")));
}
END_TEST

/* ---- Wrong uses ---- */

#define ON_2_3 "--mesh 2,3 --shape 7,5 "
static const wrong_use wrongs[] = {
    {"--shape 7,5 --layout R", "--mesh", "missing"},
    {"--mesh 2 --layout R", "--shape", "missing"},
    {"--mesh 2 --shape 7,5", "--layout", "missing"},
    {"--mesh 0 --shape 7,5 --layout R", "--mesh", "'0'"},
    {"--mesh 2:1,1 --shape 7,5 --layout R", "--mesh", "'2:1,1'"},
    {"--mesh '' --shape 7,5 --layout R", "--mesh", "''"},
    {"--mesh -2 --shape 7,5 --layout R", "--mesh", "'-2'"},
    {"--mesh 1e30 --shape 7,5 --layout R", "--mesh", "'1e30'"},
    {"--mesh 99999999999999999999 --shape 7,5 --layout R", "--mesh", "'99999999999999999999'"},
    {"--mesh 65536,65536 --shape 7,5 --layout R,R", "--mesh", "2^24"},
    {"--mesh 2:0,16777216 --shape 7,5 --layout R", "--mesh", "id 16777216"},
    {"--mesh 'dp=[0,1]' --shape 7,5 --layout R", "--mesh", "weight 0"},
    {"--mesh foo --shape 7,5 --layout R", "--mesh", "'foo'"},
    {"--mesh --shape 7,5 --layout R", "'7,5'", "only options"},
    {"--mesh 2 --shape 7x5 --layout R", "--shape", "'7x5'"},
    {"--mesh 2 --shape 7,-5 --layout R", "--shape", "'7,-5'"},
    {"--mesh 2 --shape 7, --layout R", "--shape", "'7,'"},
    {"--mesh 2 --shape 1e30 --layout R", "--shape", "'1e30'"},
    {"--mesh 2 --shape ' 5' --layout R", "--shape", "' 5'"},
    {"--mesh 2 --shape 99999999999999999999 --layout R", "--shape", "'99999999999999999999'"},
    {"--mesh 2 --shape 281474976710657 --layout R", "--shape", "'281474976710657'"},
    {"--mesh 2 --shape 1,1,1,1,1,1,1,1,1 --layout R", "--shape", "1 to 8"},
    {"--mesh 2 --shape 1000000,1000000,1000000 --layout R", "--shape", "elements"},
    {ON_2_3 "--layout ''", "--layout", "''"},
    {ON_2_3 "--layout R", "--layout", "'R'"},
    {ON_2_3 "--layout dp,-", "--layout", "no axis 'dp'"},
    {ON_2_3 "--layout R,R,R", "--layout", "'R,R,R'"},
    {ON_2_3 "--layout 'S(-1),R'", "--layout", "'S(-1),R'"},
    {ON_2_3 "--layout 'S(1e30),R'", "--layout", "'S(1e30),R'"},
    {ON_2_3 "--layout 'S(99999999999),R'", "--layout", "'S(99999999999),R'"},
    {ON_2_3 "--layout 'S(0)[9],R'", "--layout", "orders 0 to 0"},
    {ON_2_3 "--layout '[0,-1] P{9:sum}'", "--layout", "no axis 9"},
    {ON_2_3 "--layout '[99999999999,-1]'", "--layout", "'[99999999999,-1]'"},
    {ON_2_3 "--layout '[0,-1'", "--layout", "'[0,-1'"},
    {ON_2_3 "--layout 'R,R mask{'", "--layout", "mask{"},
    {ON_2_3 "--layout 'S(2),R'", "--layout", "dim 2"},
    {ON_2_3 "--layout 'S(0)[1],S(0)'", "--layout", "'S(0)[1],S(0)'"},
    {ON_2_3 "--layout 'P(prod),R'", "--layout", "'P(prod),R'"},
    {ON_2_3 "--layout '[0]'", "--layout", "1 entries"},
    {ON_2_3 "--layout '[0,2]'", "--layout", "axis 2"},
    {ON_2_3 "--layout '[0,0]'", "--layout", "twice"},
    {ON_2_3 "--layout '[0,-1] P{0:sum}'", "--layout", "twice"},
    {ON_2_3 "--layout 'R,R mask{1,0}'", "--layout", "2 entries"},
    {ON_2_3 "--layout 'R,R mask{1,1,1,1,1,2}'", "--layout", "mask{1,1,1,1,1,2}"},
    {ON_2_3 "--layout 'S(0),R mask{0,0,0,1,1,1}'", "--layout", "without a holder"},
    {ON_2_3 "--layout 'R,?'", "--layout", "axis 1 is open"},
    {ON_2_3 "--layout R,R --svg", "--svg", "requires an argument"},
    {ON_2_3 "--layout", "--layout", "requires an argument"},
    {"--mesh 2,3 --shape", "--shape", "requires an argument"},
    {"--mesh", "--mesh", "requires an argument"},
    {ON_2_3 "--layout R,R --svg ''", "--svg", "''"},
    {ON_2_3 "--layout R,R --svg /", "--svg", "'/'"},
    {ON_2_3 "--layout R,R --svg /nonexistent/x.svg", "--svg", "'/nonexistent/x.svg': No such file"},
    {ON_2_3 "--layout R,R --svg /dev/full", "--svg", "'/dev/full': No space"},
    {ON_2_3 "--layout R,R --png x", "--png", "unrecognized"},
    {ON_2_3 "--layout R,R R", "'R'", "only options"},
};

START_TEST(a_wrong_use_is_named)
{
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i += suite_stride()) {
        const wrong_use *w = &wrongs[i];
        const outcome *o = run_wrong("trama layout ", w);
        ck_assert_msg(!contains(o->text, "process 0"), "%s: an answer beside the message", w->arguments);
    }
}
END_TEST

START_TEST(help_names_every_option)
{
    EXPECT("--help", "trama layout [OPTION...]", "--mesh=SPEC", "--shape=N,N", "--layout=LAYOUT", "--svg=FILE");
    ck_assert(contains(text_of(run("./trama --help")), "\n  layout "));
}
END_TEST

TESTS(the_reference_tensor_on_a_mesh_with_ids, axes_that_share_a_dim_cut_it_in_their_order,
      both_forms_of_a_layout_give_the_same, a_layout_may_name_axes, pieces_are_balanced_and_may_be_empty,
      a_cell_names_all_holders_and_joins_terms, a_mask_takes_holders_away, a_large_tensor_is_drawn_small,
      what_cannot_be_drawn_says_so_or_is_left_out, the_drawing_has_a_cell_for_each_box_in_the_colour_of_its_holder,
      the_drawing_shows_replicas_terms_and_masks, tensors_of_any_rank_are_drawn, a_reader_of_xml_takes_the_drawing,
      a_wrong_use_is_named, help_names_every_option)
