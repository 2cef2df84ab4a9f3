/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts drawn from C. The drawings' content is tested with the command, in tests/examples. */
#include "harness.h"

static trama_layout layout_of(const trama_mesh *mesh, int ndim, const char *words)
{
    trama_layout l;
    must(trama_layout_parse(mesh, ndim, words, &l));
    return l;
}

static char *picture_of(const char *spec, trama_shape shape, const char *words)
{
    char *picture = NULL;
    trama_mesh *mesh = mesh_of(spec);
    trama_layout l = layout_of(mesh, shape.ndim, words);
    must(trama_layout_picture(mesh, &l, shape, &picture));
    trama_mesh_destroy(&mesh);
    return picture;
}

static char *svg_of(const char *spec, trama_shape shape, const char *words, const char *title)
{
    char *svg = NULL;
    trama_mesh *mesh = mesh_of(spec);
    trama_layout l = layout_of(mesh, shape.ndim, words);
    must(trama_layout_svg(mesh, &l, shape, title, &svg));
    trama_mesh_destroy(&mesh);
    return svg;
}

static void demand_picture(const char *spec, trama_shape shape, const char *words, const char *wanted)
{
    char *picture = picture_of(spec, shape, words);
    demand(!strcmp(picture, wanted), "%s as %s:\n%s", spec, words, picture);
    free(picture);
}

START_TEST(a_picture_is_a_text)
{
    demand_picture("2", TRAMA_SHAPE(5), "S(0)",
                   "0      3    5\n"
                   "+------+----+\n"
                   "|  0   | 1  |\n"
                   "+------+----+\n");
    demand_picture("2", TRAMA_SHAPE(2), "P",
                   "0     2\n"
                   "+-----+\n"
                   "| 0+1 |\n"
                   "+-----+\n"
                   "+ stands between the terms of the partial value\n");
}
END_TEST

/* The first number after a word, from a place in a text. */
static double number_after(const char *at, const char *word)
{
    at = strstr(at, word);
    demand(at, "no %s", word);
    return strtod(at + strlen(word), NULL);
}

START_TEST(pieces_by_weight_are_drawn_as_large_as_they_are)
{
    demand_picture("[3,1]", TRAMA_SHAPE(16), "S(0)",
                   "0                        12       16\n"
                   "+------------------------+--------+\n"
                   "|           0            |   1    |\n"
                   "+------------------------+--------+\n");
    demand_picture("[1,20,1]", TRAMA_SHAPE(2), "S(0)", /* nobody sees the third */
                   "0   1   2\n"
                   "+---+---+\n"
                   "| 0 | 1 |\n"
                   "+---+---+\n");
    char *svg = svg_of("[5,1]", TRAMA_SHAPE(12, 2), "S(0)", "x");
    const char *first = strstr(svg, "<g class=\"cell\"><title>0</title>"),
               *second = strstr(svg, "<g class=\"cell\"><title>1</title>");
    demand(first && second, "%s", svg);
    double high = number_after(first, "height=\""), low = number_after(second, "height=\"");
    demand(high == 5 * low, "%g and %g", high, low);
    demand(number_after(second, " y=\"") == number_after(first, " y=\"") + high, "not below each other");
    free(svg);
}
END_TEST

START_TEST(what_has_no_picture_has_an_empty_one)
{
    demand_picture("2", TRAMA_SCALAR, "R", "");
    demand_picture("2", TRAMA_SHAPE(4, 4, 4), "S(2)", "");
    demand_picture("2", TRAMA_SHAPE(4, 0), "S(0)", "");
    demand_picture("40", TRAMA_SHAPE(400), "S(0)", "");
}
END_TEST

START_TEST(the_largest_extents_are_drawn)
{
    demand_picture("2", TRAMA_SHAPE(INT64_C(1) << 60), "S(0)",
                   "0                             576460752303423488            1152921504606846976\n"
                   "+-----------------------------+-----------------------------+\n"
                   "|              0              |              1              |\n"
                   "+-----------------------------+-----------------------------+\n");
    char *svg = svg_of("2", TRAMA_SHAPE(INT64_C(1) << 60), "S(0)", "x");
    demand(strstr(svg, ">1152921504606846976</text>"), "%s", svg);
    free(svg);
}
END_TEST

START_TEST(a_title_may_have_any_characters)
{
    char *svg = svg_of("2", TRAMA_SHAPE(5), "S(0)", "a<b & \"c\"\t>");
    demand(strstr(svg, "<title>a&#60;b &#38; \"c\" &#62;</title>"), "%s", svg);
    free(svg);
}
END_TEST

START_TEST(wrong_questions_are_refused)
{
    trama_mesh *mesh = mesh_of("2");
    char *out = NULL;
    trama_layout l = layout_of(mesh, 1, "S(0)"), open = layout_of(mesh, 1, "?");
    expect(trama_layout_picture(mesh, &l, TRAMA_SHAPE(5), NULL), TRAMA_E_ARGUMENT, "trama_layout_picture");
    expect(trama_layout_picture(NULL, &l, TRAMA_SHAPE(5), &out), TRAMA_E_ARGUMENT, "mesh");
    expect(trama_layout_picture(mesh, NULL, TRAMA_SHAPE(5), &out), TRAMA_E_ARGUMENT, "layout");
    expect(trama_layout_picture(mesh, &open, TRAMA_SHAPE(5), &out), TRAMA_E_LAYOUT, "open");
    expect(trama_layout_picture(mesh, &l, TRAMA_SHAPE(-5), &out), TRAMA_E_SHAPE, "-5");
    expect(trama_layout_picture(mesh, &l, TRAMA_SCALAR, &out), TRAMA_E_LAYOUT, "dim 0");
    expect(trama_layout_svg(mesh, &l, TRAMA_SHAPE(5), "x", NULL), TRAMA_E_ARGUMENT, "trama_layout_svg");
    expect(trama_layout_svg(mesh, &l, TRAMA_SHAPE(5), NULL, &out), TRAMA_E_ARGUMENT, "title");
    expect(trama_layout_svg(mesh, NULL, TRAMA_SHAPE(5), "x", &out), TRAMA_E_ARGUMENT, "layout");
    expect(trama_layout_svg(mesh, &open, TRAMA_SHAPE(5), "x", &out), TRAMA_E_LAYOUT, "open");
    demand(!out, "a drawing in spite of the error");
    trama_mesh_destroy(&mesh);
}
END_TEST

TESTS(a_picture_is_a_text, pieces_by_weight_are_drawn_as_large_as_they_are, what_has_no_picture_has_an_empty_one,
      the_largest_extents_are_drawn, a_title_may_have_any_characters, wrong_questions_are_refused)
