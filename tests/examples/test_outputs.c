/* SPDX-License-Identifier: Apache-2.0 */
/* Output that cannot be written: every program that the build made, and every subcommand of trama, ends with status 1
 * and a message. A new program is tried by itself; a new subcommand needs a line of arguments here. */
#include "programs.h"
#include "suite.h"

#include <dirent.h>
#include <sys/stat.h>

enum { MOST_PROGRAMS = 64, NAME_BYTES = 64 };

typedef struct program {
    char name[NAME_BYTES];
    char arguments[256];
} program;

typedef struct programs {
    int n;
    program at[MOST_PROGRAMS];
} programs;

/* Arguments with which a program prints something soon; without a line here it gets none. %s is the scratch folder. */
static const char *const known[][2] = {
    {"fashion_mnist", "--steps 1 --data %s"},
    {"heat2d", "--n 16 --steps 2"},
    {"transformer", "--steps 1 --length 4 --text %s/negative.onnx"},
    {"trama calibrate", "--quick"},
    {"trama checkpoint", "%s/saved/step-000000000002.h5"},
    {"trama info", ""},
    {"trama layout", "--mesh 2 --shape 4 --layout R"},
    {"trama onnx", "%s/negative.onnx"},
    {"trama rehearse", "--model cg --mesh 2 --n 64"},
    {"trama reshard", "--mesh 2 --shape 4 --from R --to 'S(0)'"},
    {"trama rule", "matmul --mesh 2 --in 4,4:0,-1 --in 4,4"},
    {"trama trace", "--no-starvz %s/trace"},
};

static void add_program(programs *list, const char *name)
{
    ck_assert_int_lt(list->n, MOST_PROGRAMS);
    program *p = &list->at[list->n++];
    snprintf(p->name, sizeof p->name, "%s", name);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i][0], name)) {
            const char *rest = strstr(known[i][1], "%s");
            int length = (int)(rest ? rest - known[i][1] : (ptrdiff_t)strlen(known[i][1]));
            snprintf(p->arguments, sizeof p->arguments, "%.*s%s%s", length, known[i][1], rest ? scratch : "",
                     rest ? rest + 2 : "");
            return;
        }
    ck_assert_msg(strncmp(name, "trama ", 6) != 0, "this test needs arguments for %s", name);
}

/* y[2] = -x[2] as a serialized model, byte by byte; no build needs protobuf-c for it. */
static void write_a_model(void)
{
    static const unsigned char bytes[] =
        "\x42\x02\x10\x0d"                                                  /* operator set 13 */
        "\x3a\x23"                                                          /* the graph */
        "\x0a\x0b\x0a\x01x\x12\x01y\x22\x03Neg"                             /* a node */
        "\x5a\x0f\x0a\x01x\x12\x0a\x0a\x08\x08\x01\x12\x04\x0a\x02\x08\x02" /* input x, f32 [2] */
        "\x62\x03\x0a\x01y";                                                /* output y */
    write_file("negative.onnx", sizeof bytes - 1, bytes);
}

/* Whether there is one to list. */
static bool save_a_checkpoint(void)
{
    return !contains(run("./heat2d --n 16 --steps 2 --save %s", in_scratch("saved"))->text, "without HDF5");
}

/* The subcommands are those that trama --help names, two columns from the left. */
static void add_subcommands(programs *list)
{
    char *help = strdup(text_of(run("./trama --help"))), *line = strstr(help, "Commands");
    int before = list->n;
    ck_assert_ptr_nonnull(line);
    while ((line = strstr(line, "\n  "))) {
        char name[32], whole[NAME_BYTES];
        line += 3;
        if (*line == ' ' || *line == '-' || sscanf(line, "%31s", name) != 1)
            continue;
        snprintf(whole, sizeof whole, "trama %s", name);
        if (!strcmp(name, "onnx") &&
            contains(run("./trama onnx %s", in_scratch("negative.onnx"))->text, "built without")) {
            printf("skipped: trama onnx, as Trama was built without protobuf-c\n");
            continue;
        }
        if (!strcmp(name, "checkpoint") && !save_a_checkpoint()) {
            printf("skipped: trama checkpoint, as Trama was built without HDF5\n");
            continue;
        }
        add_program(list, whole);
    }
    ck_assert_int_ge(list->n - before, 5);
    free(help);
}

static programs find_programs(void)
{
    programs list = {0};
    write_a_model();
    const char *path = getenv("TRAMA_EXAMPLES_DIR");
    DIR *folder = opendir(path);
    ck_assert_ptr_nonnull(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        char file[4096 + 256];
        struct stat is;
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        if (stat(file, &is) || !S_ISREG(is.st_mode) || access(file, X_OK))
            continue;
        if (strcmp(entry->d_name, "trama"))
            add_program(&list, entry->d_name);
        else
            add_subcommands(&list);
    }
    closedir(folder);
    ck_assert_int_ge(list.n, 14);
    return list;
}

static void record_a_trace(void)
{
    text_of(run("TRAMA_TRACE=%s ./hello_mesh", in_scratch("trace")));
}

/* Text before a program: those named embed... start MPI themselves. */
static const char *before(const char *name)
{
    return strncmp(name, "embed", 5) ? "" : WHOLE_STACKS;
}

/* It measures for 8 s before it prints; test_trama_rehearse reads that. */
static bool is_slow(const char *name)
{
    return !strcmp(name, "trama calibrate");
}

/* With stdout on a full disk, and with none at all but where that is slow. */
static void expect_refused(const char *name, const char *arguments)
{
    static const char *const outputs[] = {">/dev/full", ">&-"};
    for (int i = 0; i < (suite_is_sanitized() || is_slow(name) ? 1 : 2); i++) {
        const outcome *o = run("%s./%s %s %s", before(name), name, arguments, outputs[i]);
        ck_assert_msg(o->status == 1 && contains(o->text, "cannot be written"), "%s %s %s: status %d, %.2000s", name,
                      arguments, outputs[i], o->status, o->text);
    }
}

START_TEST(a_program_whose_output_cannot_be_written_ends_with_1_and_says_so)
{
    record_a_trace();
    programs list = find_programs();
    for (int i = 0; i < list.n; i += suite_stride()) {
        const program *p = &list.at[i];
        if (!is_slow(p->name)) {
            const char *text = text_of(run("%s./%s %s 2>/dev/null", before(p->name), p->name, p->arguments));
            ck_assert_msg(*text, "%s prints nothing", p->name);
        }
        expect_refused(p->name, p->arguments);
    }
}
END_TEST

START_TEST(help_and_plans_that_cannot_be_written_end_with_1)
{
    programs list = find_programs();
    for (int i = 0; i < list.n; i += suite_stride()) {
        const program *p = &list.at[i];
        bool has_plans = contains(run("./%s --help", p->name)->text, "--plan[=");
        expect_refused(p->name, "--help");
        for (int form = 0; form < 3 && has_plans; form++) {
            char arguments[300];
            snprintf(arguments, sizeof arguments, "%s --plan=%s", p->arguments,
                     ((const char *const[]){"table", "steps", "dot"})[form]);
            expect_refused(p->name, arguments);
        }
    }
    expect_refused("trama", "--help");
    expect_refused("trama", "--version");
    expect_refused("trama", "rule --list");
}
END_TEST

START_TEST(a_pipe_that_nobody_reads_is_an_error_where_it_is_no_signal)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    close(ends[0]);
    const outcome *o = run("trap '' PIPE; ./trama layout --mesh 2 --shape 4 --layout R >&%d", ends[1]);
    close(ends[1]);
    ck_assert_msg(o->status == 1 && contains(o->text, "cannot be written: Broken pipe"), "%d: %s", o->status, o->text);
}
END_TEST

START_TEST(a_message_of_an_error_comes_alone_where_nothing_was_printed)
{
    const outcome *o = run("./trama layout --mesh 0 --shape 4 --layout R >/dev/full");
    ck_assert_int_ne(o->status, 0);
    ck_assert_msg(contains(o->text, "--mesh") && !contains(o->text, "cannot be written"), "%s", o->text);
}
END_TEST

START_TEST(a_file_that_is_asked_for_never_takes_the_place_of_a_closed_stdout)
{
    const outcome *o = run("./trama layout --mesh 2 --shape 4 --layout R --svg %s >&-", in_scratch("drawing.svg"));
    ck_assert_int_eq(o->status, 1);
    const char *svg = text_of(run("cat %s", in_scratch("drawing.svg")));
    ck_assert_msg(!strncmp(svg, "<svg", 4) && !strcmp(last_line(svg), "</svg>\n"), "%.500s", svg);
}
END_TEST

START_TEST(files_that_cannot_be_written_are_named)
{
    static const wrong_use full[] = {
        {"cg --n 8 --solution /dev/full", "--solution", "/dev/full: No space left"},
        {"heat2d --n 16 --steps 2 --picture /dev/full", "--picture", "'/dev/full': No space left"},
        {"trama layout --mesh 2 --shape 4 --layout R --svg /dev/full", "--svg", "'/dev/full': No space left"},
        {"trama reshard --mesh 2 --shape 4 --from R --to R --svg /dev/full", "--svg", "'/dev/full': No space left"},
    };
    for (size_t i = 0; i < sizeof full / sizeof *full; i++)
        ck_assert_int_eq(run_wrong("", &full[i])->status, 1);
    const outcome *o = run("./fashion_mnist --steps 1 --data %s --log /dev/full", scratch);
    ck_assert_int_eq(o->status, 1);
    ck_assert(contains(o->text, "--log /dev/full: it could not be written: No space left"));
}
END_TEST

TESTS(a_program_whose_output_cannot_be_written_ends_with_1_and_says_so,
      help_and_plans_that_cannot_be_written_end_with_1, a_pipe_that_nobody_reads_is_an_error_where_it_is_no_signal,
      a_message_of_an_error_comes_alone_where_nothing_was_printed,
      a_file_that_is_asked_for_never_takes_the_place_of_a_closed_stdout, files_that_cannot_be_written_are_named)
