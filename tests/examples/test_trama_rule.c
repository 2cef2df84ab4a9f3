/* SPDX-License-Identifier: Apache-2.0 */
/* trama rule: the published reference cases, cases worked out by hand for each family of ops, and every wrong use of
 * it. */
#include "programs.h"
#include "suite.h"

typedef struct answer {
    const char *arguments, *text;
} answer;

static void expect_answers(int n, const answer *answers)
{
    for (int i = 0; i < n; i++) {
        const outcome *o = run("./trama rule %s", answers[i].arguments);
        ck_assert_msg(o->status == 0 && !strcmp(o->text, answers[i].text), "%s: status %d, %.2000s",
                      answers[i].arguments, o->status, o->text);
    }
}
#define EXPECT(answers) expect_answers(sizeof(answers) / sizeof *(answers), answers)

/* ---- Reference cases ---- */

START_TEST(matmul_gives_the_reference_cases)
{
    static const answer cases[] = {
        {"matmul --mesh 2,3 --in 64,32:1,0 --in 32,48:0,-1", "in0 [1,0]\nin1 [0,-1]\nout0 [1,-1] P{0:sum}\n"},
        {"matmul --mesh 2,3 --in 64,32:1,0 --in 32,48:-1,-1", "in0 [1,0]\nin1 [0,-1]\nout0 [1,-1] P{0:sum}\n"},
        {"matmul --mesh 2,3 --in 64,32:-1,-1 --in 32,48:1,0", "in0 [-1,1]\nin1 [1,0]\nout0 [-1,0] P{1:sum}\n"},
        {"matmul --mesh 2,3 --in 512,48,64,32:1,-1,-1,0 --in 64,32:-1,-1 --attr trans_x=1",
         "in0 [1,-1,-1,0]\nin1 [-1,-1]\nout0 [1,-1,0,-1]\n"},
    };
    EXPECT(cases);
}
END_TEST

START_TEST(other_rules_give_the_reference_cases)
{
    static const answer cases[] = {
        {"add --mesh 2,3 --in 96,24,48:0,-1,-1 --in 96,24,48:-1,1,0", "in0 [0,1,-1]\nin1 [0,1,-1]\nout0 [0,1,-1]\n"},
        {"sum --mesh 2,3 --in 96,24,48:-1,0,1 --attr axis=1,2", "in0 [-1,0,1]\nout0 [-1] P{0:sum,1:sum}\n"},
        {"reshape --mesh 2,3 --in 6,12,48,24:0,-1,1,-1 --attr shape=72,3,16,24", "in0 [0,-1,1,-1]\nout0 [0,1,-1,-1]\n"},
        {"softmax --mesh 2,4 --in 16,32,64:1,-1,0 --attr axis=-1", "in0 [1,-1,-1]\nout0 [1,-1,-1]\n"},
    };
    EXPECT(cases);
}
END_TEST

/* ---- Forward ---- */

START_TEST(attributes_change_the_rule)
{
    static const answer cases[] = {
        /* x [k,m], y [n,k]: k over axis 0, m over axis 1 */
        {"matmul --mesh 2,3 --in 32,64:0,1 --in 48,32 --attr trans_x=1 --attr trans_y=1",
         "in0 [0,1]\nin1 [-1,0]\nout0 [1,-1] P{0:sum}\n"},
        {"matmul --mesh 2,3 --in 64,32:1,0 --in 32,48 --attr trans_x=0 --attr trans_y=0",
         "in0 [1,0]\nin1 [0,-1]\nout0 [1,-1] P{0:sum}\n"},
        {"sum --mesh 2,3 --in 8,6,4:-1,0,1 --attr axis=-1,1 --attr keepdim=1",
         "in0 [-1,0,1]\nout0 [-1,-1,-1] P{0:sum,1:sum}\n"},
        {"mean --mesh 2,3 --in 8,6:0,1", "in0 [0,1]\nout0 [] P{0:sum,1:sum}\n"},
        {"sum --mesh 2,3 --in 8,6:1,0 --attr axis=none", "in0 [1,0]\nout0 [] P{0:sum,1:sum}\n"},
        {"sum --mesh 2,3 --in 8,6:1,0", "in0 [1,0]\nout0 [] P{0:sum,1:sum}\n"},
        {"sum --mesh 2 --in : --attr axis=none", "in0 []\nout0 []\n"},
        {"argmax --mesh 2,3 --in 8,6:0,1 --attr axis=0 --attr keepdim=1", "in0 [-1,1]\nout0 [-1,1]\n"},
        {"matmul --mesh 2,3 --in 6:0 --in 6,8:-1,1", "in0 [0]\nin1 [0,1]\nout0 [1] P{0:sum}\n"},
        {"affine --mesh 2 --in 8:P --attr offset=1", "in0 [-1]\nout0 [-1]\n"},
        {"scalar_div --mesh 2 --in 8:0 --attr scalar=3", "in0 [0]\nout0 [0]\n"},
        {"max --mesh 2,3 --in 8,6:1,0 --attr axis=1", "in0 [1,0]\nout0 [1] P{0:max}\n"},
        {"min --mesh 2,3 --in 8,6:1,0 --attr axis=-2 --attr keepdim=0", "in0 [1,0]\nout0 [0] P{1:min}\n"},
        {"argmax --mesh 2,3 --in 8,6:0,1", "in0 [0,-1]\nout0 [0]\n"},
        {"gather --mesh 2,3 --in 8,6:0,1 --in 5", "in0 [0,1]\nin1 [-1]\nout0 [-1,1] P{0:sum}\n"},
        {"gather --mesh 2 --in 8,6:-1,-1 --in 5:0 --attr axis=1", "in0 [-1,-1]\nin1 [0]\nout0 [-1,0]\n"},
        {"concat2 --mesh 2 --in 4,6:-1,0 --in 4,2:-1,0 --attr axis=1", "in0 [-1,0]\nin1 [-1,0]\nout0 [-1,0]\n"},
        {"window --mesh 2 --in 8:0 --attr dim=6 --attr offset=1", "in0 [0]\nout0 [0]\n"},
        {"clamp --mesh 2 --in 8:0 --attr low=-1.5 --attr high=2", "in0 [0]\nout0 [0]\n"},
        {"norm --mesh 2,3 --in 8,6:0,1 --attr axis=1 --attr eps=0.1", "in0 [0,-1]\nout0 [0,-1]\nout1 [0,-1]\n"},
        {"argmax --mesh 2,3 --in 8,6:0,1 --attr axis=0", "in0 [-1,1]\nout0 [1]\n"},
        {"softmax --mesh 2,3 --in 8,6:0,1", "in0 [0,-1]\nout0 [0,-1]\n"},
        {"softmax_grad --mesh 2,3 --in 8,6:0,1 --in 8,6 --attr axis=0", "in0 [-1,1]\nin1 [-1,1]\nout0 [-1,1]\n"},
        {"transpose --mesh 2,3 --in 8,4,6:0,-1,1 --attr perm=2,0,1", "in0 [0,-1,1]\nout0 [1,0,-1]\n"},
        {"transpose --mesh 2,3 --in 8,4,6:0,-1,1", "in0 [0,-1,1]\nout0 [1,-1,0]\n"},
        {"reshape --mesh 2 --in 1:-1 --attr shape=", "in0 [-1]\nout0 []\n"},
        {"draw --mesh 2 --in : --attr shape=6,4", "in0 []\nout0 [-1,-1]\n"},
        {"expand --mesh 2,3 --in 8:0 --in 8,6 --attr axis=1", "in0 [0]\nin1 [0,-1]\nout0 [0,-1]\n"},
        {"expand --mesh 2 --in 8,1:0,-1 --in 8,6 --attr axis=1 --attr keepdim=1",
         "in0 [0,-1]\nin1 [0,-1]\nout0 [0,-1]\n"},
        {"cast --mesh 2 --in '8:[-1] P{0:sum}' --attr dtype=f64", "in0 [-1] P{0:sum}\nout0 [-1] P{0:sum}\n"},
        {"cast --mesh 2 --in '8:[-1] P{0:sum}' --attr dtype=i64", "in0 [-1]\nout0 [-1]\n"},
        {"scale --mesh 2 --in '8:P(max)' --attr factor=2", "in0 [-1] P{0:max}\nout0 [-1] P{0:max}\n"},
        {"scale --mesh 2 --in '8:P(max)' --attr factor=-2", "in0 [-1] P{0:max}\nout0 [-1] P{0:min}\n"},
        {"fill --mesh 2 --attr shape=8,4", "out0 [-1,-1]\n"},
        {"arange --mesh 2 --attr shape=8 --attr start=3 --attr step=-0.5", "out0 [-1]\n"},
        {"argmin --mesh 2,3 --in 8,6:0,1 --attr axis=0 --attr keepdim=1", "in0 [-1,1]\nout0 [-1,1]\n"},
        {"argmin --mesh 2,3 --in 8,6:0,1 --attr last=1", "in0 [0,-1]\nout0 [0]\n"},
    };
    EXPECT(cases);
}
END_TEST

START_TEST(splits_broadcast_and_meet)
{
    static const answer cases[] = {
        {"add --mesh 2,3 --in 8,6:0,-1 --in 6:1", "in0 [0,1]\nin1 [1]\nout0 [0,1]\n"},
        {"sub --mesh 2,3 --in 8,1:0,-1 --in 1,6:-1,1", "in0 [0,-1]\nin1 [-1,1]\nout0 [0,1]\n"},
        {"mul --mesh 2 --in 8,6:0,-1 --in :", "in0 [0,-1]\nin1 []\nout0 [0,-1]\n"},
        {"mul --mesh 2 --in 64,64:0,-1 --in 64,64:-1,0", "in0 [0,-1]\nin1 [0,-1]\nout0 [0,-1]\n"},
        {"relu --mesh 2,3 --in 7,5:1+0,-1", "in0 [1+0,-1]\nout0 [1+0,-1]\n"},
        {"cross_entropy --mesh 2,3 --in 64,10:0,1 --in 64", "in0 [0,-1]\nin1 [0]\nout0 [] P{0:sum}\n"},
        {"cross_entropy_grad --mesh 2 --in 64,10 --in 64:0 --in :", "in0 [0,-1]\nin1 [0]\nin2 []\nout0 [0,-1]\n"},
        {"adam --mesh 2 --in 8,4:0,-1 --in 8,4 --in 8,4 --in 8,4 --in : --in : --in :",
         "in0 [0,-1]\nin1 [0,-1]\nin2 [0,-1]\nin3 [0,-1]\nin4 []\nin5 []\nin6 []\n"
         "out0 [0,-1]\nout1 [0,-1]\nout2 [0,-1]\n"},
    };
    EXPECT(cases);
}
END_TEST

START_TEST(partial_values_pass_where_the_op_allows)
{
    static const answer cases[] = {
        {"relu --mesh 2 --in '8:P(sum)'", "in0 [-1]\nout0 [-1]\n"},
        {"relu --mesh 2,3 --in '8,6:[1,-1] P{0:max}'", "in0 [1,-1] P{0:max}\nout0 [1,-1] P{0:max}\n"},
        {"neg --mesh 2 --in ': P{0:max}'", "in0 [] P{0:max}\nout0 [] P{0:min}\n"},
        {"add --mesh 2 --in 8:P --in 8:P", "in0 [-1] P{0:sum}\nin1 [-1] P{0:sum}\nout0 [-1] P{0:sum}\n"},
        {"add --mesh 2 --in 8:P --in 8", "in0 [-1]\nin1 [-1]\nout0 [-1]\n"},
        {"mul --mesh 2 --in 8:P --in 8:-1", "in0 [-1] P{0:sum}\nin1 [-1]\nout0 [-1] P{0:sum}\n"},
        {"transpose --mesh 2 --in '8,4:-1,-1 P{0:avg}'", "in0 [-1,-1] P{0:avg}\nout0 [-1,-1] P{0:avg}\n"},
    };
    EXPECT(cases);
}
END_TEST

START_TEST(every_form_of_a_layout_is_taken)
{
    static const char *const forms[] = {"64,32:1,0",        "64,32:[1,0]",     "64,32:S(1),S(0)",
                                        "64,32: S(1),S(0)", "64,32:[ 1 , 0 ]", "64,32: 1, 0"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        ck_assert_str_eq(text_of(run("./trama rule relu -m dp=2,mp=3 -i '%s'", forms[i])), "in0 [1,0]\nout0 [1,0]\n");
    static const char *const scalars[] = {":", ":[]", ":R,R", ":?,?", ""};
    for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++)
        ck_assert_str_eq(text_of(run("./trama rule exp -m 2,3 -i '%s'", scalars[i])), "in0 []\nout0 []\n");
    ck_assert_str_eq(text_of(run("./trama rule exp -m 2 -i '8:R mask{1,0}'")), "in0 [-1]\nout0 [-1]\n");
}
END_TEST

/* A split of the first dim passes through each of these, whatever else they do. */
START_TEST(the_other_ops_are_known)
{
    static const char *const unary[] = {"neg",  "abs",  "sign", "square",  "sqrt",          "exp",       "log",
                                        "gelu", "tanh", "relu", "sigmoid", "stop_gradient", "increment", "reshard"};
    static const char *const binary[] = {"div",       "equal",        "relu_grad", "gelu_grad",
                                         "tanh_grad", "sigmoid_grad", "assign",    "sgd"};
    for (size_t i = 0; i < sizeof unary / sizeof *unary; i++)
        ck_assert_str_eq(text_of(run("./trama rule %s --mesh 2 --in 8,4:0,-1", unary[i])), "in0 [0,-1]\nout0 [0,-1]\n");
    for (size_t i = 0; i < sizeof binary / sizeof *binary; i++)
        ck_assert_str_eq(text_of(run("./trama rule %s --mesh 2 --in 8,4:0,-1 --in 8,4:-1,-1", binary[i])),
                         "in0 [0,-1]\nin1 [0,-1]\nout0 [0,-1]\n");
}
END_TEST

/* ---- Backward ---- */

START_TEST(operands_follow_from_results)
{
    static const answer cases[] = {
        {"matmul --mesh 2,3 --in 64,32 --in 32,48 --backward --out 64,48:1,-1",
         "in0 [1,-1]\nin1 [-1,-1]\nout0 [1,-1]\n"},
        {"matmul --mesh 2,3 --in 64,32 --in 32,48 --backward --out 64,48:0,1", "in0 [0,-1]\nin1 [-1,1]\nout0 [0,1]\n"},
        {"add --mesh 2,3 --in 8,6:-1,1 --in 6 --backward --out 8,6:0,-1", "in0 [0,1]\nin1 [1]\nout0 [0,1]\n"},
        {"transpose --mesh 2,3 --in 4,6,8 --attr perm=2,0,1 --backward --out 8,4,6:0,-1,1",
         "in0 [-1,1,0]\nout0 [0,-1,1]\n"},
        {"reshape --mesh 2,3 --in 6,12,48,24 --attr shape=72,3,16,24 --backward --out 72,3,16,24:0,1,-1,-1",
         "in0 [0,-1,1,-1]\nout0 [0,1,-1,-1]\n"},
        {"sum --mesh 2,3 --in 96,24,48 --attr axis=1,2 --backward --out 96:0", "in0 [0,-1,-1]\nout0 [0]\n"},
        {"softmax --mesh 2,4 --in 16,32,64 -b --out 16,32,64:1,-1,0", "in0 [1,-1,-1]\nout0 [1,-1,-1]\n"},
        {"cross_entropy --mesh 2 --in 64,10 --in 64 --backward --out :", "in0 [-1,-1]\nin1 [-1]\nout0 []\n"},
        {"sgd --mesh 2 --in 8,4 --in 8,4 --backward --out '8,4:S(1)'", "in0 [-1,0]\nin1 [-1,0]\nout0 [-1,0]\n"},
        {"adam --mesh 2 --in 8 --in 8 --in 8 --in 8 --in : --in : --in : --backward --out 8 --out 8:0 --out 8",
         "in0 [0]\nin1 [0]\nin2 [0]\nin3 [0]\nin4 []\nin5 []\nin6 []\nout0 [0]\nout1 [0]\nout2 [0]\n"},
        {"uniform --mesh 2 --attr shape=8,4 --backward --out 8,4:0,-1", "out0 [0,-1]\n"},
    };
    EXPECT(cases);
}
END_TEST

/* ---- Wrong uses ---- */

#define MATMUL "matmul --mesh 2,3 --in 64,32:1,0 --in 32,48 "
#define ONE "--mesh 2,3 --in 64,32 "
static const wrong_use wrongs[] = {
    {"", "the op", "missing"},
    {"matmul --in 64,32 --in 32,48", "--mesh", "missing"},
    {"matmul --mesh 2x3 --in 64,32 --in 32,48", "--mesh", "'2x3'"},
    {"matmull " ONE, "no op", "'matmull'; --list names all, similar ones are matmul"},
    {"'' " ONE, "no op", "there is no op ''; --list names all"},
    {"--list=all", "--list", "doesn't allow an argument"},
    {"relu add " ONE, "'add'", "relu"},
    {"matmul " ONE, "--in", "takes 2 --in, not 1"},
    {"relu --mesh 2", "--in", "takes 1 --in, not 0"},
    {"fill " ONE "--attr shape=4", "--in", "takes 0 --in, not 1"},
    {"add --mesh 2 -i 1 -i 1 -i 1 -i 1 -i 1 -i 1 -i 1 -i 1 -i 1", "--in", "at most 8"},
    {"relu --mesh 2,3 --in 64,x", "--in", "'64,x'"},
    {"relu --mesh 2,3 --in 64,-1:0,1", "--in", "'64,-1'"},
    {"relu --mesh 2,3 --in 64,32:1", "--in", "'64,32:1'"},
    {"relu --mesh 2,3 --in 64,32:1,2", "--in", "axis 2"},
    {"relu --mesh 2,3 --in 64,32:1,1", "--in", "twice"},
    {"relu --mesh 2,3 --in 64,32:1,-2", "--in", "'64,32:1,-2'"},
    {"relu --mesh 2,3 --in 64,32:", "--in", "0 entries"},
    {"relu --mesh 2,3 --in 64,32:foo", "--in", "'64,32:foo'"},
    {"relu --mesh 2,3 --in '64,32:S(0)'", "--in", "1 placements"},
    {"relu --mesh 2,3 --in '64,32:S(2),R'", "--in", "dim 2"},
    {"relu --mesh 2,3 --in '64,32:0,-1 P{0:sum}'", "--in", "'64,32:0,-1 P{0:sum}'"},
    {"relu --mesh 2,3 --in :0", "--in", "':0'"},
    {"matmul --mesh 2,3 --in 64,32 --in 33,48", "--in '33,48'", "do not agree"},
    {"add --mesh 2,3 --in 64,32 --in 31", "--in '31'", "do not agree"},
    {"cross_entropy --mesh 2 --in 64,10 --in 63", "--in '63'", "do not agree"},
    {MATMUL "--attr trans_x=1", "--attr 'trans_x=1'", "do not agree"},
    {MATMUL "--attr trans_x=2", "--attr trans_x", "'2': takes 0 or 1"},
    {MATMUL "--attr trans_y=yes", "--attr trans_y", "'yes'"},
    {MATMUL "--attr trans_x", "--attr", "'trans_x'"},
    {MATMUL "--attr =1", "--attr", "'=1'"},
    {MATMUL "--attr axis=1", "--attr", "has no attribute axis; it has trans_x trans_y"},
    {MATMUL "--attr trans=1", "--attr", "has no attribute trans;"},
    {"relu " ONE "--attr keepdim=1", "--attr", "'keepdim=1': relu has no attribute keepdim; it has none"},
    {MATMUL "--attr trans_x=0 --attr trans_x=0", "--attr", "twice"},
    {"sum " ONE "--attr axis=2", "--attr axis", "'2'"},
    {"sum " ONE "--attr axis=-3", "--attr axis", "'-3'"},
    {"sum " ONE "--attr axis=0,-2", "--attr axis", "'0,-2'"},
    {"sum " ONE "--attr axis=", "--attr axis", "''"},
    {"sum --mesh 2 --in : --attr axis=0", "--attr axis", "no dims"},
    {"mean " ONE "--attr keepdim=", "--attr keepdim", "''"},
    {"argmax " ONE "--attr axis=0,1", "--attr axis", "'0,1'"},
    {"softmax " ONE "--attr axis=2", "--attr axis", "'2'"},
    {"softmax --mesh 2 --in :", "--in", "no dims"},
    {"transpose " ONE "--attr perm=0,0", "--attr 'perm=0,0'", "permutation"},
    {"transpose " ONE "--attr perm=0", "--attr perm", "'0'"},
    {"transpose " ONE "--attr perm=0,2", "--attr perm", "'0,2'"},
    {"reshape " ONE, "--attr shape", "missing"},
    {"reshape " ONE "--attr shape=64,31", "--attr 'shape=64,31'", "number of elements"},
    {"reshape " ONE "--attr shape=64,x", "--attr shape", "'64,x'"},
    {"cast " ONE "--attr dtype=f8", "--attr dtype", "'f8'"},
    {"scale " ONE "--attr factor=2x", "--attr factor", "'2x'"},
    {"scale " ONE "--attr factor=", "--attr factor", "''"},
    {"scale " ONE "--attr factor=1e999", "--attr factor", "'1e999'"},
    {"scale " ONE "--attr factor=nan", "--attr factor", "'nan'"},
    {"scale " ONE "--attr 'factor= 2'", "--attr factor", "' 2'"},
    {"relu --mesh '' --in 4", "--mesh", "''"},
    {"relu --mesh 1e30 --in 4", "--mesh", "'1e30'"},
    {"relu --mesh", "--mesh", "requires an argument"},
    {"relu --mesh 2 --in", "--in", "requires an argument"},
    {"relu --mesh 2 --in 1e30", "--in", "'1e30'"},
    {"relu --mesh 2 --in 99999999999999999999", "--in", "'99999999999999999999'"},
    {"relu --mesh 2 --in 4:99999999999999999999", "--in", "'4:99999999999999999999'"},
    {"relu --mesh 2 --in 4:0:0", "--in", "'4:0:0'"},
    {"relu --mesh 2 --in '4:R mask{1'", "--in", "mask{1"},
    {"relu --mesh 2 --in 4 --attr", "--attr", "requires an argument"},
    {"relu --mesh 2 --in 4 --attr ''", "--attr", "''"},
    {"relu --mesh 2 --in 4 --attr =", "--attr", "'='"},
    {"relu --mesh 2 --in 4 -aa=1 -aa=1 -aa=1 -aa=1 -aa=1 -aa=1 -aa=1 -aa=1 -aa=1", "--attr", "at most 8"},
    {"relu --mesh 2 --in 4 --backward --out", "--out", "requires an argument"},
    {"relu --mesh 2 --in 4 --backward --out ''", "--out", "''"},
    {"relu --mesh 2 --in 4 --backward --out 1e30", "--out", "'1e30'"},
    {"relu --mesh 2 --in 4 --backward --out 4:99", "--out", "axis 99"},
    {"relu --mesh 2 --in 4 --backward=1", "--backward", "doesn't allow an argument"},
    {"relu --mesh 2 -i4 -i4 -i4 -i4 -i4 -i4 -i4 -i4 -i4", "--in", "at most 8"},
    {"fill --mesh 2 --attr shape=281474976710656,2", "--attr shape", "elements"},
    {"sum " ONE "--attr axis=1e30", "--attr axis", "'1e30'"},
    {"sum " ONE "--attr axis=99999999999999999999", "--attr axis", "'99999999999999999999'"},
    {"transpose " ONE "--attr perm=-1,0", "--attr perm", "'-1,0'"},
    {"transpose " ONE "--attr perm=1e30,0", "--attr perm", "'1e30,0'"},
    {"reshape " ONE "--attr shape=-64", "--attr shape", "'-64'"},
    {"reshape " ONE "--attr shape=1e30", "--attr shape", "'1e30'"},
    {"cast " ONE "--attr dtype=", "--attr dtype", "''"},
    {"expand --mesh 2 --in 8 --in 8,4 --attr axis=0", "--attr 'axis=0'", "does not fit"},
    {MATMUL "--backward", "--out", "missing"},
    {MATMUL "--out 64,48:1,0", "--out", "'64,48:1,0': only with --backward"},
    {MATMUL "--backward --out 64,47:1,0", "--out", "'64,47:1,0'"},
    {MATMUL "--backward --out 64,48:1", "--out", "'64,48:1'"},
    {MATMUL "--backward --out 64,48 --out 3", "--out", "takes 1 --out, not 2"},
    {MATMUL "--forward", "--forward", "unrecognized"},
};

START_TEST(a_wrong_use_is_named)
{
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i += suite_stride()) {
        const wrong_use *w = &wrongs[i];
        const outcome *o = run_wrong("trama rule ", w);
        ck_assert_msg(!contains(o->text, "in0 [") && !contains(o->text, ".c:"), "%s: %.2000s", w->arguments, o->text);
    }
}
END_TEST

START_TEST(the_list_names_every_op_with_its_splits_and_attributes)
{
    static const char *const lines[] = {
        "matmul             2 -> 1  sp,ps  trans_x trans_y  (complex: CPU only)\n",
        "relu               1 -> 1  ss\n",
        "bitwise_and        2 -> 1  ss,ss  (no gradient)\n",
        "reshard            1 -> 1  ss\n",
        "cumsum             1 -> 1  rs  axis exclusive reverse  (CPU only)\n",
        "expand             2 -> 1  s,ss  axis keepdim  (complex: CPU only)\n",
        "fill               0 -> 1    shape  (complex: CPU only)  (no gradient)\n",
        "uniform            0 -> 1    shape  (no gradient)\n",
        "gather             2 -> 1  ps,s  axis  (complex: CPU only)\n",
        "softmax            1 -> 1  sr  axis\n",
        "conv               2 -> 1  spss,sp--  stride dilation before extent groups\n",
        "adam               7 -> 3  ss,ss,ss,ss,,,  decoupled weight_decay beta1 beta2 eps  (complex: CPU only)  (no gradient)\n",
    };
    static const char *const ops[] = {
#define OP(name, ...) #name,
#include "ops.def"
    };
    const char *text = text_of(run("./trama rule --list"));
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        ck_assert_msg(contains(text, lines[i]), "no '%s' in %.4000s", lines[i], text);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++, text += strcspn(text, "\n") + 1)
        ck_assert_msg(!strncmp(text, ops[i], strlen(ops[i])) && text[strlen(ops[i])] == ' ', "%s is not at %.40s",
                      ops[i], text);
    ck_assert_str_eq(text, "");
}
END_TEST

START_TEST(an_unknown_op_hears_the_similar_names)
{
    ck_assert(contains(run("./trama rule matmull --mesh 2")->text, "similar ones are matmul\n"));
    ck_assert(contains(run("./trama rule logical_nor --mesh 2")->text, "similar ones are logical_not\n"));
    ck_assert(contains(run("./trama rule xyz --mesh 2")->text, "there is no op 'xyz'; --list names all\n"));
}
END_TEST

START_TEST(help_names_every_option)
{
    static const char *const words[] = {"trama rule [OPTION...] OP",
                                        "--mesh=SPEC",
                                        "--in=SHAPE:LAYOUT",
                                        "--out=SHAPE:LAYOUT",
                                        "--backward",
                                        "--attr=NAME=VALUE",
                                        "--list",
                                        "trans_x",
                                        "keepdim",
                                        "perm"};
    const char *text = text_of(run("./trama rule --help"));
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        ck_assert_msg(contains(text, words[i]), "--help lacks %s: %.4000s", words[i], text);
    ck_assert(contains(text_of(run("./trama --help")), "\n  rule "));
}
END_TEST

TESTS(matmul_gives_the_reference_cases, other_rules_give_the_reference_cases, attributes_change_the_rule,
      splits_broadcast_and_meet, partial_values_pass_where_the_op_allows, every_form_of_a_layout_is_taken,
      the_other_ops_are_known, operands_follow_from_results, a_wrong_use_is_named,
      the_list_names_every_op_with_its_splits_and_attributes, an_unknown_op_hears_the_similar_names,
      help_names_every_option)
