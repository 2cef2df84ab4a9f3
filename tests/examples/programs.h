/* SPDX-License-Identifier: Apache-2.0 */
/* The tests of the examples share this: running one as its user does, a scratch folder, a small data set, the main
 * function. Knows the examples by their command lines alone. */
#ifndef PROGRAMS_H
#define PROGRAMS_H

#include <check.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../tasks/plain.h"

/* ---- Programs ---- */

typedef struct outcome {
    int status;         /* of the exit, or -1 where a signal ended it */
    char text[1 << 16]; /* stdout, and stderr unless the command sends it elsewhere */
} outcome;

/* Runs a shell command in the folder of the examples; the result is valid until the next one. */
__attribute__((format(printf, 1, 2))) static inline const outcome *run(const char *format, ...)
{
    static outcome o;
    char command[4096];
    int n = snprintf(command, sizeof command, "exec 2>&1; cd '%s' && ", getenv("TRAMA_EXAMPLES_DIR"));
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command + n, sizeof command - (size_t)n, format, arguments);
    va_end(arguments);
    FILE *pipe = popen(command, "r");
    ck_assert_ptr_nonnull(pipe);
    o.text[fread(o.text, 1, sizeof o.text - 1, pipe)] = 0;
    int status = pclose(pipe);
    o.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return &o;
}

/* Leaks are told by whole stacks, which is slow: where a program starts MPI itself, the suppressions need them. */
#define WHOLE_STACKS "ASAN_OPTIONS=$ASAN_OPTIONS:fast_unwind_on_malloc=0 "

/* Before a number of ranks and a program: as root, on any number of cores. */
#define MPIRUN                                                                                                         \
    WHOLE_STACKS                                                                                                       \
    "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 "                   \
    "OMPI_MCA_hwloc_base_binding_policy=none PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe "                    \
    "PRTE_MCA_hwloc_default_binding_policy=none mpirun -n "

/* A wrong use, and what the message names. */
typedef struct wrong_use {
    const char *arguments, *option, *value;
} wrong_use;

/* The program ends with a message that names both. */
static inline const outcome *run_wrong(const char *program, const wrong_use *w)
{
    const outcome *o = run("./%s%s", program, w->arguments);
    ck_assert_msg(o->status > 0 && strstr(o->text, w->option) && strstr(o->text, w->value), "%s%s: status %d, %.2000s",
                  program, w->arguments, o->status, o->text);
    return o;
}

/* A check by a tool that set-up does not install is skipped aloud. */
static inline bool installed(const char *tool)
{
    bool is_there = run("command -v %s", tool)->status == 0;
    if (!is_there)
        printf("skipped: a check by %s, which is not installed\n", tool);
    return is_there;
}

/* It ran well. */
static inline const char *text_of(const outcome *o)
{
    ck_assert_msg(o->status == 0, "status %d: %.2000s", o->status, o->text);
    return o->text;
}

static inline bool contains(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

static inline const char *last_line(const char *text)
{
    size_t end = strlen(text);
    while (end > 0 && text[end - 1] == '\n')
        end--;
    while (end > 0 && text[end - 1] != '\n')
        end--;
    return text + end;
}

/* ---- A scratch folder ---- */

static char scratch[64]; /* the running test's own folder */

static inline const char *in_scratch(const char *name)
{
    static char path[4][128];
    static int which;
    which = (which + 1) % 4;
    snprintf(path[which], sizeof path[which], "%s/%s", scratch, name);
    return path[which];
}

static inline void write_file(const char *name, size_t n, const unsigned char *bytes)
{
    FILE *file = fopen(in_scratch(name), "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, n, file), n);
    ck_assert_int_eq(fclose(file), 0);
}

/* ---- A small data set ---- */

enum { ROWS = 5, COLUMNS = 4, PIXELS = ROWS * COLUMNS, CLASSES = 10, TRAIN_SAMPLES = 53, TEST_SAMPLES = 31 };

typedef struct half {
    int n;
    unsigned char images[TRAIN_SAMPLES * PIXELS], labels[TRAIN_SAMPLES];
} half;

static inline half half_new(int n, uint64_t seed)
{
    half h = {.n = n};
    for (int i = 0; i < n * PIXELS; i++)
        h.images[i] = (unsigned char)plain_uniform(seed, 0, 0, (uint64_t)i, 0, 256);
    for (int i = 0; i < n; i++)
        h.labels[i] = (unsigned char)plain_uniform(seed, 1, 0, (uint64_t)i, 0, CLASSES);
    return h;
}

static inline half train_half(void)
{
    return half_new(TRAIN_SAMPLES, 5);
}

static inline half test_half(void)
{
    return half_new(TEST_SAMPLES, 6);
}

static inline void write_idx(const char *name, int ndim, const int *dim, const unsigned char *bytes)
{
    unsigned char all[16 + TRAIN_SAMPLES * PIXELS] = {0, 0, 8, (unsigned char)ndim};
    size_t n = 1, head = 4 + 4 * (size_t)ndim;
    for (int d = 0; d < ndim; d++) {
        all[7 + 4 * d] = (unsigned char)dim[d];
        n *= (size_t)dim[d];
    }
    memcpy(all + head, bytes, n);
    write_file(name, head + n, all);
}

static inline void write_half(const char *name, const half *h)
{
    char file[64];
    snprintf(file, sizeof file, "%s-images-idx3-ubyte", name);
    write_idx(file, 3, (int[]){h->n, ROWS, COLUMNS}, h->images);
    snprintf(file, sizeof file, "%s-labels-idx1-ubyte", name);
    write_idx(file, 1, (int[]){h->n}, h->labels);
}

/* Writes the four files into the scratch folder. */
static inline void write_data(void)
{
    half train = train_half(), test = test_half();
    write_half("train", &train);
    write_half("t10k", &test);
}

/* ---- Before and after each test ---- */

static inline void set_up(void)
{
    strcpy(scratch, "/tmp/trama-examples-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(scratch));
    write_data();
}

static inline void tear_down(void)
{
    run("rm -r %s", scratch);
}

/* ---- The main function ---- */

static inline int run_tests(const char *name, int n, const TTest *const *tests)
{
    char program[4096];
    const char *folder = getenv("TRAMA_EXAMPLES_DIR");
    snprintf(program, sizeof program, "%s/hello_mesh", folder ? folder : ".");
    if (!folder || access(program, X_OK)) {
        printf("%s: skipped, no examples are built where TRAMA_EXAMPLES_DIR says\n", name);
        return 77;
    }
    Suite *suite = suite_create(name);
    TCase *tcase = tcase_create("all");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    for (int i = 0; i < n; i++)
        tcase_add_test(tcase, tests[i]);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#define TESTS(...)                                                                                                     \
    int main(void)                                                                                                     \
    {                                                                                                                  \
        const TTest *tests[] = {__VA_ARGS__};                                                                          \
        return run_tests(__FILE__, sizeof tests / sizeof *tests, tests);                                               \
    }

#endif
