/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of layouts: both forms, errors at their letter, mappings as numbers, masks, damaged texts. */
#include <check.h>
#include <string.h>

#include "bound.h"
#include "change.h"
#include "suite.h"

/* Text that parses, the per-axis form that it prints as, and the mapping. */
static const struct {
    const char *mesh;
    int ndim;
    const char *text, *axes, *mapping;
} forms[] = {
    {"2", 1, "S(0)", "S(0)", "[0]"},
    {"2", 0, "R", "R", "[]"},
    {"2", 0, "[]", "R", "[]"},
    {"2,2", 2, "S(0),R", "S(0),R", "[0,-1]"},
    {"2,2", 2, "R,S(0)", "R,S(0)", "[1,-1]"},
    {"2,2", 2, "S(0),S(1)", "S(0),S(1)", "[0,1]"},
    {"2,2", 2, "S(1),S(0)", "S(1),S(0)", "[1,0]"},
    {"2,2", 2, "S(0),S(0)", "S(0),S(0)", "[0+1,-1]"},
    {"2,2", 2, "S(0)[0],S(0)[1]", "S(0),S(0)", "[0+1,-1]"},
    {"2,2", 2, "S(0)[1],S(0)[0]", "S(0)[1],S(0)[0]", "[1+0,-1]"},
    {"2,2", 2, "[1+0,-1]", "S(0)[1],S(0)[0]", "[1+0,-1]"},
    {"2,2", 2, "[0+1,-1]", "S(0),S(0)", "[0+1,-1]"},
    {"2,2", 2, "[-1,-1]", "R,R", "[-1,-1]"},
    {"2,2", 2, "[-1,-1] P{0:sum}", "P(sum),R", "[-1,-1] P{0:sum}"},
    {"2,2", 2, "[1,-1] P{0:max}", "P(max),S(0)", "[1,-1] P{0:max}"},
    {"2,2", 2, "[-1,-1] P{0:avg,1:sum}", "P(avg),P(sum)", "[-1,-1] P{0:avg,1:sum}"},
    {"2,2", 2, "P,P(sum)", "P(sum),P(sum)", "[-1,-1] P{0:sum,1:sum}"},
    {"2,2", 2, "P(min),P(min)", "P(min),P(min)", "[-1,-1] P{0:min,1:min}"},
    {"2,2", 1, "R,S(0) mask{1,1,0,0}", "R,S(0) mask{1,1,0,0}", "[1] mask{1,1,0,0}"},
    {"2,2", 1, "[-1] mask{1,0,1,1}", "R,R mask{1,0,1,1}", "[-1] mask{1,0,1,1}"},
    {"2,2", 1, "[-1] P{1:sum} mask{1,1,0,0}", "R,P(sum) mask{1,1,0,0}", "[-1] P{1:sum} mask{1,1,0,0}"},
    {"2,2", 1, "R,R mask{1,1,1,1}", "R,R", "[-1]"},
    {"2,2,2", 2, "S(1)[2],S(1)[0],S(1)[1]", "S(1)[2],S(1)[0],S(1)[1]", "[-1,1+2+0]"},
    {"2,2,2", 2, "[2,1+0]", "S(1)[1],S(1)[0],S(0)", "[2,1+0]"},
    {"2,2,2", 3, "S(2),R,S(0)", "S(2),R,S(0)", "[2,-1,0]"},
    {"2,2", 2, " S(0) , R ", "S(0),R", "[0,-1]"},
    {"2,2", 2, "[ 0 , -1 ]", "S(0),R", "[0,-1]"},
    {"dp=2,mp=2", 2, "dp,-", "S(0),R", "[0,-1]"},
    {"dp=2,mp=2", 2, "-,dp", "S(1),R", "[-1,0]"},
    {"dp=2,mp=2", 2, "-,-", "R,R", "[-1,-1]"},
    {"dp=2,mp=2", 1, "mp", "R,S(0)", "[1]"},
    {"dp=2,mp=2", 2, "[dp+mp, -]", "S(0),S(0)", "[0+1,-1]"},
    {"dp=2,mp=2", 2, "mp+dp,-1", "S(0)[1],S(0)[0]", "[1+0,-1]"},
    {"dp=2,mp=2", 2, " mp + dp , - ", "S(0)[1],S(0)[0]", "[1+0,-1]"},
    {"dp=2,mp=2", 2, "[mp,0]", "S(1),S(0)", "[1,0]"},
    {"dp=2,mp=2", 2, "dp,- P{mp:max}", "S(0),P(max)", "[0,-1] P{1:max}"},
    {"dp=2,mp=2", 2, "[-,-] P{ dp:avg , 1:sum }", "P(avg),P(sum)", "[-1,-1] P{0:avg,1:sum}"},
    {"dp=2,mp=2", 1, "mp mask{1,1,0,0}", "R,S(0) mask{1,1,0,0}", "[1] mask{1,1,0,0}"},
    {"dp=2,mask=2", 2, "mask,-", "R,S(0)", "[1,-1]"},
    {"R=2,S=2", 2, "[S,R]", "S(1),S(0)", "[1,0]"},
    {"R=2,P=2", 2, "-,P P{R:sum}", "P(sum),S(1)", "[-1,1] P{0:sum}"},
    {"R=2,Rs=2", 2, "Rs,R", "S(1),S(0)", "[1,0]"},
    {"x=2,dp=2", 2, "x,-", "S(0),R", "[0,-1]"},
    {"2,2", 2, "1,-1", "R,S(0)", "[1,-1]"},
    {"2,2", 2, "-1,0", "S(1),R", "[-1,0]"},
    {"2,2", 8, "S(7),S(6)", "S(7),S(6)", "[-1,-1,-1,-1,-1,-1,1,0]"},
};

START_TEST(both_forms_parse_and_print_exactly)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        trama_mesh *m = trama_mesh_create(forms[i].mesh);
        trama_layout l, again;
        ck_assert_msg(!trama_layout_parse(m, forms[i].ndim, forms[i].text, &l), "%s: %s", forms[i].text, trama_error());
        char *axes = trama_layout_text(m, &l), *mapping = trama_layout_mapping(m, forms[i].ndim, &l);
        ck_assert_str_eq(axes, forms[i].axes);
        ck_assert_str_eq(mapping, forms[i].mapping);
        ck_assert(!trama_layout_parse(m, forms[i].ndim, axes, &again) && trama_layout_equal(&l, &again));
        ck_assert(!trama_layout_parse(m, forms[i].ndim, mapping, &again) && trama_layout_equal(&l, &again));
        free(axes);
        free(mapping);
        trama_mesh_destroy(&m);
    }
}
END_TEST

START_TEST(every_layout_survives_both_forms)
{
    static const char *const meshes[] = {"2", "2,3", "2,2,2", "1,2,3"};
    for (size_t i = 0; i < sizeof meshes / sizeof *meshes; i++)
        for (int ndim = 0; ndim <= 3; ndim++) {
            trama_mesh *m = trama_mesh_create(meshes[i]);
            layout_list list = {0};
            every_layout(m, ndim, true, &list);
            for (int k = 0; k < list.n; k++) {
                trama_layout again;
                char *axes = trama_layout_text(m, &list.at[k]), *mapping = trama_layout_mapping(m, ndim, &list.at[k]);
                ck_assert_msg(!trama_layout_parse(m, ndim, axes, &again) && trama_layout_equal(&list.at[k], &again),
                              "%s", axes);
                ck_assert_msg(!trama_layout_parse(m, ndim, mapping, &again) && trama_layout_equal(&list.at[k], &again),
                              "%s", mapping);
                free(axes);
                free(mapping);
            }
            ARRAY_FREE(&list);
            trama_mesh_destroy(&m);
        }
}
END_TEST

START_TEST(open_axes_print_as_such_and_count_as_unsplit_in_the_mapping)
{
    trama_mesh *m = trama_mesh_create("2,2");
    trama_layout l;
    ck_assert(!trama_layout_parse(m, 2, "?,S(1)", &l));
    char *axes = trama_layout_text(m, &l), *mapping = trama_layout_mapping(m, 2, &l);
    ck_assert_str_eq(axes, "?,S(1)");
    ck_assert_str_eq(mapping, "[-1,1]");
    free(axes);
    free(mapping);
    trama_mesh_destroy(&m);
}
END_TEST

/* On mesh 2,2: dims, text, part of the message. */
static const struct {
    int ndim;
    const char *text, *part;
} wrong[] = {
    {2, "", "not understood"},
    {2, "S(0)", "1 placements, the mesh 2 axes"},
    {2, "R,R,R", "3 placements, the mesh 2 axes"},
    {2, "S(2),R", "axis 0 splits dim 2 of a tensor of 2 dims"},
    {0, "S(0),R", "axis 0 splits dim 0 of a tensor of 0 dims"},
    {2, "S(-1),R", "not understood at '-1),R'"},
    {2, "S(0),X", "not understood at 'X'"},
    {2, "S(0,R", "not understood"},
    {2, "S0,R", "not understood"},
    {2, "P(prod),R", "not understood at 'prod),R'"},
    {2, "P(sum),P(max)", "only sum and avg mix"},
    {2, "P(max),P(min)", "only sum and avg mix"},
    {2, "P(max),P(avg)", "only sum and avg mix"},
    {2, "S(0)[1],S(0)[1]", "orders 0 to 1"},
    {2, "S(0)[0],S(0)", "all state their order"},
    {2, "S(0)[0],S(0)[2]", "orders 0 to 1"},
    {2, "S(0)[1],R", "orders 0 to 0"},
    {2, "S(0)[1],S(0)", "all state their order"},
    {2, "S(0),S(0)[0]", "all state their order"},
    {2, "[0]", "1 entries, the tensor 2 dims"},
    {2, "[0,1,-1]", "3 entries, the tensor 2 dims"},
    {2, "[0,0]", "axis 0 is used twice"},
    {2, "[0+0,-1]", "axis 0 is used twice"},
    {2, "[0,-1] P{0:sum}", "axis 0 is used twice"},
    {2, "[2,-1]", "no axis 2 in a mesh of 2 axes"},
    {2, "[0,-2]", "not understood at '-2]'"},
    {2, "[0,-1", "not understood"},
    {2, "[0,-1] P{1}", "not understood"},
    {2, "[0,-1]x", "not understood at 'x'"},
    {2, "[-1,-1] P{0:sum,1:max}", "only sum and avg mix"},
    {2, "R,R mask{1,0}", "2 entries, the mesh 4 processes"},
    {2, "R,R mask{1,0,2,1}", "not understood"},
    {2, "R,R mask{0,0,0,0}", "without a holder"},
    {2, "S(0),R mask{1,1,0,0}", "without a holder"},
    {2, "P,R mask{1,1,0,0}", "without a holder"},
    {2, "S(0),S(1) mask{1,1,1,0}", "without a holder"},
    {2, "R,R mask{1,1,1,1", "not understood"},
    {2, "S(99999999),R", "not understood"},
    {2, "dp,-", "letter 1 of 'dp,-': not understood at 'dp,-': the mesh has no axis 'dp', its axes have no names"},
    {2, "S(0),R,", "the end of 'S(0),R,': not understood"},
    {2, "R,R mask{1,1,2,1}", "letter 14 of 'R,R mask{1,1,2,1}'"},
};

/* On mesh dp=2,mp=3. */
static const struct {
    int ndim;
    const char *text, *part;
} wrong_names[] = {
    {2, "tp,-", "letter 1 of 'tp,-': not understood at 'tp,-': the mesh has no axis 'tp'; its axes are dp, mp"},
    {2, "dp,mp2", "letter 4 of 'dp,mp2'"},
    {2, "[dp,d]", "no axis 'd'; its axes are dp, mp"},
    {2, "dp,R", "no axis 'R'; its axes are dp, mp, and a dim that is not split is -"},
    {2, "R,dp", "letter 3 of 'R,dp': not understood at 'dp'; write an entry per mesh axis"},
    {2, "dp,dp", "letter 4 of 'dp,dp': axis 0 is used twice"},
    {2, "dp+0,-", "letter 4 of 'dp+0,-': axis 0 is used twice"},
    {2, "dp,- P{dp:sum}", "letter 8 of 'dp,- P{dp:sum}': axis 0 is used twice"},
    {2, "dp", "the end of 'dp': the mapping has 1 entries, the tensor 2 dims; write one for each"},
    {2, "dp,-,-", "3 entries, the tensor 2 dims"},
    {2, "dp,-]", "letter 5 of 'dp,-]': not understood at ']'"},
    {2, "[dp,-", "the list of dims ends with ']'"},
    {2, "dp,", "the end of 'dp,': not understood"},
    {2, "dp+,-", "letter 4 of 'dp+,-': not understood at ',-'"},
    {2, "dp,?", "letter 4 of 'dp,?'"},
    {2, "dp,--", "letter 5 of 'dp,--'"},
    {2, "-,- P{mp}", "letter 9 of '-,- P{mp}': not understood at '}'; P{0:sum} names an axis"},
    {2, "-,- P{tp:sum}", "letter 7 of '-,- P{tp:sum}'"},
    {2, "dp mp", "the mapping has 1 entries"},
};

START_TEST(wrong_texts_are_refused_and_change_nothing)
{
    trama_mesh *m = trama_mesh_create("2,2");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        trama_layout l, before;
        memset(&l, 0xa5, sizeof l);
        before = l;
        ck_assert_msg(trama_layout_parse(m, wrong[i].ndim, wrong[i].text, &l) == TRAMA_E_LAYOUT, "'%s' is a layout",
                      wrong[i].text);
        ck_assert_msg(strstr(trama_error(), wrong[i].part), "'%s' answers: %s", wrong[i].text, trama_error());
        ck_assert(!memcmp(&l, &before, sizeof l));
    }
    ck_assert_int_eq(trama_layout_parse(NULL, 1, "R", &(trama_layout){0}), TRAMA_E_LAYOUT);
    ck_assert_int_eq(trama_layout_parse(m, 1, NULL, &(trama_layout){0}), TRAMA_E_LAYOUT);
    trama_mesh_destroy(&m);
}
END_TEST

START_TEST(wrong_names_of_axes_are_refused_at_their_letter)
{
    trama_mesh *m = trama_mesh_create("dp=2,mp=3");
    for (size_t i = 0; i < sizeof wrong_names / sizeof *wrong_names; i++) {
        trama_layout l;
        ck_assert_msg(trama_layout_parse(m, wrong_names[i].ndim, wrong_names[i].text, &l) == TRAMA_E_LAYOUT,
                      "'%s' is a layout", wrong_names[i].text);
        ck_assert_msg(strstr(trama_error(), wrong_names[i].part), "'%s' answers: %s", wrong_names[i].text,
                      trama_error());
    }
    trama_mesh_destroy(&m);
}
END_TEST

START_TEST(a_mapping_as_numbers)
{
    trama_mesh *m = trama_mesh_create("2,3");
    trama_layout l, same;
    ck_assert(!trama_layout_from_mapping(m, 3, (int[]){1, -1, 0}, &l));
    ck_assert(!trama_layout_parse(m, 3, "S(2),S(0)", &same) && trama_layout_equal(&l, &same));
    ck_assert_int_eq(trama_layout_from_mapping(m, 2, (int[]){2, -1}, &l), TRAMA_E_LAYOUT);
    ck_assert_int_eq(trama_layout_from_mapping(m, 2, (int[]){-2, -1}, &l), TRAMA_E_LAYOUT);
    ck_assert_int_eq(trama_layout_from_mapping(m, 2, (int[]){1, 1}, &l), TRAMA_E_LAYOUT);
    ck_assert_int_eq(trama_layout_from_mapping(m, 9, (int[9]){0}, &l), TRAMA_E_LAYOUT);
    ck_assert(trama_layout_equal(&l, &same));
    trama_mesh_destroy(&m);
}
END_TEST

START_TEST(a_mask_may_only_remove_replicas)
{
    trama_mesh *m = trama_mesh_create("2,2");
    trama_layout l, with;
    ck_assert(!trama_layout_parse(m, 1, "S(0),R", &l));
    with = l;
    ck_assert_int_eq(trama_layout_mask(m, 1, (unsigned char[]){1, 0, 2, 1}, &with), TRAMA_E_LAYOUT);
    ck_assert_int_eq(trama_layout_mask(m, 1, (unsigned char[]){0, 0, 1, 1}, &with), TRAMA_E_LAYOUT);
    ck_assert(trama_layout_equal(&l, &with));
    ck_assert(!trama_layout_mask(m, 1, (unsigned char[]){0, 1, 1, 0}, &with));
    ck_assert(!trama_layout_equal(&l, &with));
    ck_assert(!layout_present(&with, 0) && layout_present(&with, 1));
    trama_layout equal = l;
    ck_assert(!trama_layout_mask(m, 1, (unsigned char[]){0, 1, 1, 0}, &equal));
    ck_assert(trama_layout_equal(&with, &equal));
    ck_assert(!trama_layout_mask(m, 1, NULL, &with));
    ck_assert(trama_layout_equal(&l, &with));
    trama_mesh_destroy(&m);
}
END_TEST

/* A text of either language with some of its bytes lost, doubled or replaced. */
static void damaged_text(uint64_t *seed, char *source)
{
    static const char *const texts[] = {"S(0),S(1)", "S(0)[1],S(0)[0]", "R,P(max)",          "?,R mask{1,0,1,1}",
                                        "[0,-1]",    "[1+0,-1]",        "[-1,0] P{1:avg}",   "dp=2,mp=3:5,4,3,2,1,0",
                                        "2,2",       "a_b=4",           "dp=[3,1],2:3,2,1,0"};
    static const char bytes[] = "SRP()[]{},:+-=?0123 mask\xff";
    strcpy(source, texts[random_below(seed, 11)]);
    for (int damages = random_below(seed, 4); damages > 0; damages--) {
        size_t n = strlen(source), at = (size_t)random_below(seed, (int)n + 1);
        int how = random_below(seed, 3);
        if (how == 0 && at < n)
            memmove(source + at, source + at + 1, n - at);
        else if (how == 1 && at < n)
            memmove(source + at + 1, source + at, n - at + 1);
        else if (at < n)
            source[at] = bytes[random_below(seed, (int)sizeof bytes - 1)];
    }
}

/* Nothing crashes, and what parses prints and parses to the same. */
START_TEST(damaged_texts_are_refused_or_survive)
{
    uint64_t seed = 5;
    int layouts_ = 0, meshes = 0, n = suite_is_long() ? 2000000 : 30000;
    trama_mesh *mesh = trama_mesh_create("2,2");
    for (int i = 0; i < n; i++) {
        char source[64];
        trama_layout l, again;
        damaged_text(&seed, source);
        trama_mesh *m = trama_mesh_create(source);
        if (m) {
            char *printed = trama_mesh_text(m);
            trama_mesh *same = trama_mesh_create(printed);
            ck_assert_msg(trama_mesh_equal(m, same), "%s", source);
            trama_mesh_destroy(&same);
            trama_mesh_destroy(&m);
            free(printed);
            meshes++;
        }
        if (trama_layout_parse(mesh, 2, source, &l))
            continue;
        char *printed = trama_layout_text(mesh, &l);
        ck_assert_msg(!trama_layout_parse(mesh, 2, printed, &again) && trama_layout_equal(&l, &again), "%s", source);
        free(printed);
        layouts_++;
    }
    ck_assert(meshes > n / 50 && layouts_ > n / 50);
    trama_mesh_destroy(&mesh);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        both_forms_parse_and_print_exactly,
        every_layout_survives_both_forms,
        open_axes_print_as_such_and_count_as_unsplit_in_the_mapping,
        wrong_texts_are_refused_and_change_nothing,
        wrong_names_of_axes_are_refused_at_their_letter,
        a_mapping_as_numbers,
        a_mask_may_only_remove_replicas,
        damaged_texts_are_refused_or_survive,
    };
    return suite_run("layout_text", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
