/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX's own tests as a judge that nobody here wrote: runs each of them on several meshes, and prints a table by op. */
#include <argp.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "onnx_case.h"
#include "suite.h"

static const char *const suites[] = {"node", "simple", "pytorch-operator", "pytorch-converted"};
static const case_mesh meshes[] = {{.name = "one process"},
                                   {"dp=2", "dp=2", .first = true},
                                   {"mp=2", "mp=2", .last = true},
                                   {"2x2", "dp=2,mp=2", .first = true, .last = true}};
enum { N_SUITES = 4, N_MESHES = 4, SKIPPED = 77 };

typedef struct tried {
    char name[400], op[64], message[700];
    int suite;
    case_result result;
} tried;

typedef struct judge {
    const char *data, *passing, *only;
    bool all_meshes, write, verbose;
    tried *tests;
    int n;
} judge;

static const struct argp_option options[] = {
    {"data", 'd', "FOLDER", 0, "ONNX's tests [/usr/share/libonnx-testdata/data]", 0},
    {"all-meshes", 'a', NULL, 0, "run on dp=2, mp=2 and 2x2, too; a test passes if it passes on all", 0},
    {"passing", 'p', "FILE", 0, "fail where a test that the file lists does not pass", 0},
    {"write", 'w', NULL, 0, "write the list of passing tests to that file", 0},
    {"only", 'o', "TEXT", 0, "only tests whose name has the text", 0},
    {"verbose", 'v', NULL, 0, "print each test that does not pass, with the reason", 0},
    {0}};

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    judge *j = state->input;
    switch (key) {
    case 'd':
        j->data = text;
        return 0;
    case 'a':
        j->all_meshes = true;
        return 0;
    case 'p':
        j->passing = text;
        return 0;
    case 'w':
        j->write = true;
        return 0;
    case 'o':
        j->only = text;
        return 0;
    case 'v':
        j->verbose = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ---- Running ---- */

static int is_visible(const struct dirent *entry)
{
    return *entry->d_name != '.';
}

/* A test stops at the first mesh on which it does not pass. */
static void try_test(judge *j, trama_context *context, int suite, const char *name)
{
    char folder[900];
    case_report report = {.result = CASE_PASSED};
    tried *t = &j->tests[j->n++];
    *t = (tried){.suite = suite};
    snprintf(t->name, sizeof t->name, "%s/%s", suites[suite], name);
    snprintf(folder, sizeof folder, "%s/%s", j->data, t->name);
    for (int m = 0; m < (j->all_meshes ? N_MESHES : 1) && report.result == CASE_PASSED; m++) {
        case_run(context, folder, &meshes[m], &report);
        if (report.result != CASE_PASSED)
            snprintf(t->message, sizeof t->message, "%s: %s", meshes[m].name, report.message);
    }
    t->result = report.result;
    memcpy(t->op, report.op, sizeof t->op);
    if (j->verbose && t->result != CASE_PASSED)
        printf("%s %s (%s) %s\n", t->result == CASE_FAILED ? "FAILED" : "unsupported", t->name, t->op, t->message);
}

static void try_suite(judge *j, trama_context *context, int suite)
{
    struct dirent **list;
    char folder[400];
    snprintf(folder, sizeof folder, "%s/%s", j->data, suites[suite]);
    int n = scandir(folder, &list, is_visible, alphasort);
    j->tests = realloc(j->tests, (size_t)(j->n + (n > 0 ? n : 0) + 1) * sizeof *j->tests);
    for (int i = 0; i < n; i++) {
        if (!j->only || strstr(list[i]->d_name, j->only))
            try_test(j, context, suite, list[i]->d_name);
        free(list[i]);
    }
    if (n >= 0)
        free(list);
}

/* ---- The table ---- */

static int by_op(const void *a, const void *b)
{
    const tried *x = a, *y = b;
    int order = strcmp(x->op, y->op);
    return order ? order : strcmp(x->name, y->name);
}

static void print_line(const char *name, const int *count)
{
    printf("%-32s %6d %6d %11d\n", name, count[CASE_PASSED], count[CASE_FAILED], count[CASE_UNSUPPORTED]);
}

static void print_table(judge *j)
{
    int of_suite[N_SUITES][3] = {{0}}, all[3] = {0};
    qsort(j->tests, (size_t)j->n, sizeof *j->tests, by_op);
    printf("%-32s %6s %6s %11s\n", "op", "passed", "failed", "unsupported");
    for (int from = 0, to; from < j->n; from = to) {
        int count[3] = {0};
        for (to = from; to < j->n && !strcmp(j->tests[to].op, j->tests[from].op); to++)
            count[j->tests[to].result]++;
        print_line(j->tests[from].op, count);
    }
    for (int i = 0; i < j->n; i++) {
        of_suite[j->tests[i].suite][j->tests[i].result]++;
        all[j->tests[i].result]++;
    }
    for (int s = 0; s < N_SUITES; s++)
        print_line(suites[s], of_suite[s]);
    print_line("all", all);
}

/* ---- The list of passing tests ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const tried *)a)->name, ((const tried *)b)->name);
}

static int write_passing(judge *j)
{
    FILE *f = fopen(j->passing, "w");
    if (!f)
        return perror(j->passing), EXIT_FAILURE;
    qsort(j->tests, (size_t)j->n, sizeof *j->tests, by_name);
    for (int i = 0; i < j->n; i++)
        if (j->tests[i].result == CASE_PASSED)
            fprintf(f, "%s\n", j->tests[i].name);
    return fclose(f) ? EXIT_FAILURE : EXIT_SUCCESS;
}

static const tried *find(const judge *j, const char *name)
{
    for (int i = 0; i < j->n; i++)
        if (!strcmp(j->tests[i].name, name))
            return &j->tests[i];
    return NULL;
}

static int check_passing(const judge *j)
{
    char name[256];
    int wrong = 0, listed = 0, passed = 0;
    FILE *f = fopen(j->passing, "r");
    if (!f)
        return perror(j->passing), EXIT_FAILURE;
    while (fscanf(f, "%255s", name) == 1) {
        const tried *t = find(j, name);
        listed++;
        if (t && t->result == CASE_PASSED)
            continue;
        wrong++;
        printf("%s is listed as passing, and %s: %s\n", name, t ? "does not pass" : "is not there",
               t ? t->message : "");
    }
    fclose(f);
    for (int i = 0; i < j->n; i++)
        passed += j->tests[i].result == CASE_PASSED;
    if (passed > listed)
        printf("%d tests pass, and %d are listed: run tests/onnx/run --write\n", passed, listed);
    return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Tests that give a wrong result: no test may. */
static int count_failed(const judge *j)
{
    int n = 0;
    for (int i = 0; i < j->n; i++)
        if (j->tests[i].result == CASE_FAILED) {
            printf("FAILED %s: %s\n", j->tests[i].name, j->tests[i].message);
            n++;
        }
    return n;
}

int main(int argc, char **argv)
{
    const struct argp parser = {.options = options, .parser = parse_option, .doc = "Runs ONNX's own tests."};
    judge j = {.data = "/usr/share/libonnx-testdata/data", .all_meshes = suite_is_long()};
    argp_parse(&parser, argc, argv, 0, NULL, &j);
    if (access(j.data, R_OK))
        return printf("skipped: there is no %s, of libonnx-testdata\n", j.data), SKIPPED;
    trama_context *context;
    if (trama_start(NULL, &context))
        return fprintf(stderr, "%s\n", trama_error()), EXIT_FAILURE;
    for (int s = 0; s < N_SUITES; s++)
        try_suite(&j, context, s);
    trama_stop(&context);
    print_table(&j);
    int status = count_failed(&j) ? EXIT_FAILURE : EXIT_SUCCESS;
    int listed = !j.passing ? EXIT_SUCCESS : j.write ? write_passing(&j) : check_passing(&j);
    free(j.tests);
    return status ? status : listed;
}
