/* SPDX-License-Identifier: Apache-2.0 */
/* examples/transformer: it learns a text, and as much on every mesh and number of ranks. */
#include <math.h>

#include "programs.h"
#include "suite.h"

/* A text of one letter after the other, which a model that sees the last character learns wholly. */
static const char *write_text(void)
{
    unsigned char text[26 * 40];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (unsigned char)('a' + i % 26);
    write_file("text", sizeof text, text);
    return in_scratch("text");
}

#define SIZES "--features 64 --blocks 1 --batch 4 --length 16 "

typedef struct losses {
    double first, last;
} losses;

static losses losses_of(const outcome *o)
{
    losses l;
    const char *line = last_line(text_of(o));
    ck_assert_msg(sscanf(line, "loss %lf, at first %lf,", &l.last, &l.first) == 2, "%s", line);
    return l;
}

/* At first all 256 characters are about as likely: log 256 is 5.5. */
START_TEST(a_text_in_which_each_character_follows_from_the_last_is_learned)
{
    losses l = losses_of(run("./transformer " SIZES "--steps 150 --text '%s' 2>/dev/null", write_text()));
    ck_assert_msg(fabs(l.first - 5.5) < 1, "%g", l.first);
    ck_assert_msg(l.last < 0.5, "%g", l.last);
}
END_TEST

/* Sums of f32 in another order: the losses of 10 steps agree to 4 digits. */
START_TEST(every_mesh_learns_the_same)
{
    static const struct {
        const char *launcher, *mesh;
    } tries[] = {{"", "mp=2"}, {"", "dp=2,mp=2"}, {"", "dp=3"}, {MPIRUN "2 ", "mp=2"}, {MPIRUN "2 ", "dp=2"}};
    const char *text = write_text();
    losses wanted = losses_of(run("./transformer " SIZES "--steps 10 --text '%s' 2>/dev/null", text));
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        if (*tries[i].launcher && !TRAMA_HAVE_MPI) {
            printf("skipped: several ranks, this build has no MPI\n");
            return;
        }
        losses l = losses_of(run("%s./transformer " SIZES "--steps 10 --mesh %s --text '%s' 2>/dev/null",
                                 tries[i].launcher, tries[i].mesh, text));
        ck_assert_msg(fabs(l.first - wanted.first) < 1e-3 && fabs(l.last - wanted.last) < 1e-3, "%s%s: %g and %g",
                      tries[i].launcher, tries[i].mesh, l.first, l.last);
    }
}
END_TEST

/* Without a mesh, on layouts that are chosen for a machine. */
START_TEST(chosen_layouts_learn_the_same)
{
    const char *text = write_text();
    losses wanted = losses_of(run("./transformer " SIZES "--steps 10 --text '%s' 2>/dev/null", text));
    for (int ranks = 1; ranks <= (TRAMA_HAVE_MPI ? 2 : 1); ranks++) {
        const outcome *o = run("%s./transformer " SIZES "--steps 10 --auto builtin --text '%s' 2>/dev/null",
                               ranks > 1 ? MPIRUN "2 " : "", text);
        ck_assert_msg(contains(text_of(o), "split weights") == (ranks > 1) && contains(o->text, "chosen"), "%s",
                      o->text);
        losses l = losses_of(o);
        ck_assert_msg(fabs(l.first - wanted.first) < 1e-3 && fabs(l.last - wanted.last) < 1e-3, "%s", o->text);
    }
}
END_TEST

START_TEST(the_plan_is_shown_instead_of_training)
{
    const char *text = text_of(run("./transformer " SIZES "--mesh mp=2 --plan=steps --text '%s'", write_text()));
    ck_assert_msg(contains(text, "attention_grad") && !contains(text, "at first"), "%s", text);
}
END_TEST

START_TEST(wrong_uses_are_told)
{
    static const wrong_use wrongs[] = {{" --features 48", "--features", "multiple of 32"},
                                       {" --blocks 0", "--blocks", "'0'"},
                                       {" --mesh pp=2", "--mesh", "pp"},
                                       {" --auto ''", "--auto", "name of a file"},
                                       {" --auto builtin --mesh dp=2", "--mesh and --auto", "leave one of them out"},
                                       {" --auto /nowhere/machine", "/nowhere/machine", "No such file"},
                                       {" --text /nowhere/text", "--text /nowhere/text", "name a text"},
                                       {" --text /dev/null", "--text /dev/null", "0 characters"},
                                       {" more", "more", "more"}};
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i += suite_stride())
        run_wrong("transformer", &wrongs[i]);
}
END_TEST

TESTS(a_text_in_which_each_character_follows_from_the_last_is_learned, every_mesh_learns_the_same,
      chosen_layouts_learn_the_same, the_plan_is_shown_instead_of_training, wrong_uses_are_told)
