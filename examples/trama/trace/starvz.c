/* SPDX-License-Identifier: Apache-2.0 */
#include "starvz.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "must.h"
#include "picture_parts.h"
#include "trace_build.h"

/* ---- Configuration ---- */

static void print_quoted(const char *text, FILE *out)
{
    putc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            putc('\\', out);
        putc(*text, out);
    }
    putc('"', out);
}

static void print_panel(FILE *out, const char *name, const char *facts)
{
    fprintf(out, "%s: {active: TRUE, %s}\n", name, facts);
}

/* One that counts over time has a bar every so many ms. */
static void print_stepped(FILE *out, const char *name, const char *key, double ms, const char *facts)
{
    fprintf(out, "%s: {active: TRUE, %s: %.6g, %s}\n", name, key, ms, facts);
}

/* A panel without data would abort the plot, and so does a bare `guided: FALSE`. */
static void print_panels(const trace *t, bool steps, FILE *out)
{
    double ms = t->ended - t->began;
    bool ranks = t->n_messages > 0;
    if (steps)
        print_panel(out, "kiteration", "height: 2, subite: FALSE, legend: FALSE");
    print_panel(out, "st",
                "height: 4, labels: \"ALL\", legend: TRUE, makespan: TRUE, outliers: FALSE, idleness: TRUE, "
                "abe: {active: FALSE}");
    print_panel(out, "starpu", "height: 3");
    print_panel(out, "submitted", "height: 1.5, legend: FALSE");
    print_panel(out, "ready", "height: 1.5, legend: FALSE");
    print_stepped(out, "lackready", "aggregation", ms / 100, "height: 0.4");
    print_stepped(out, "imbalance", "step", ms / 50, "height: 1.5, legend: TRUE");
    print_stepped(out, "utilheatmap", "step", ms / 100,
                  ranks ? "height: 2, labels: \"ALL_nompi\", legend: TRUE"
                        : "height: 2, labels: \"ALL\", legend: TRUE");
    if (!ranks)
        return;
    print_panel(out, "mpiconcurrent", "height: 1.5, legend: FALSE");
    print_panel(out, "mpiconcurrentout", "height: 1.5, legend: FALSE");
    print_panel(out, "mpistate", "height: 1.5, legend: TRUE, label: \"ALL_nompi\"");
    print_panel(out, "mpibandwidth", "height: 1.5, legend: FALSE");
}

void starvz_configure(const trace *t, FILE *out)
{
    int n;
    free(trace_steps(t, false, &n));
    fputs("# Written by trama trace, for StarVZ 0.8: starvz -t -k -c starvz.yaml -s PICTURE.png COPY_OF_THIS_FOLDER\n"
          "base_size: 14\nexpand: 0.02\nguided: {active: FALSE}\ntitle: {active: FALSE}\napp_tasks:\n",
          out);
    for (int i = 0; i < t->n_names; i++) {
        fputs("  ", out);
        print_quoted(t->names[i].text, out);
        fprintf(out, ": {color: \"%s\", use: TRUE}\n", t->names[i].color);
    }
    print_panels(t, n > 0, out);
}

/* ---- Running it ---- */

/* Runs a command with both outputs in a file; returns its exit status, or -1. */
static int run_logged(char *const *arguments, const char *log)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        int file = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (file < 0 || dup2(file, STDOUT_FILENO) < 0 || dup2(file, STDERR_FILENO) < 0)
            _exit(126);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setenv("STARVZ_USE_PAJE_TRACE", "1", 1);
        execvp(arguments[0], arguments);
        _exit(127);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Where its package keeps its command, or NULL. */
static char *find_starvz(const char *log)
{
    char *ask[] = {(char *)"Rscript", (char *)"-e",
                   (char *)"cat('\\n', system.file('tools', package = 'starvz'), '\\n', sep = '')", NULL};
    char *line = NULL, *found = NULL;
    size_t room;
    if (run_logged(ask, log))
        return NULL;
    FILE *file = fopen(log, "r");
    while (file && getline(&line, &room, file) >= 0) {
        line[strcspn(line, "\n")] = 0;
        char *command = trace_text("%s/starvz", line);
        if (*line == '/' && !found && !access(command, X_OK))
            found = trace_text("%s", command);
        free(command);
    }
    free(line);
    if (file)
        fclose(file);
    return found;
}

static bool in_path(const char *program)
{
    const char *path = getenv("PATH");
    for (; path && *path; path += strspn(path, ":")) {
        size_t length = strcspn(path, ":");
        char *file = trace_text("%.*s/%s", (int)length, path, program);
        bool there = !access(file, X_OK);
        free(file);
        if (there)
            return true;
        path += length;
    }
    return false;
}

/* Its first phase writes files into the folder of its inputs, so it gets links to these inputs in a scratch folder. */
static char *lend_files(const char *folder, const char *scratch)
{
    static const char *const names[] = {"paje.trace", "tasks.rec", "data.rec", "comms.rec", "dag.dot", "papi.rec"};
    char *lent = trace_text("%s/starvz", scratch), *whole = realpath(folder, NULL);
    if (!whole || mkdir(lent, 0700))
        fail("%s: %s", whole ? lent : folder, strerror(errno));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *from = trace_text("%s/%s", whole, names[i]), *to = trace_text("%s/%s", lent, names[i]);
        if (!access(from, R_OK) && symlink(from, to))
            fail("%s: %s", to, strerror(errno));
        free(from);
        free(to);
    }
    free(whole);
    return lent;
}

/* The last line of the log that speaks of an error, or its last; into words. */
static void last_words(const char *log, size_t room, char *words)
{
    char *line = NULL;
    size_t size;
    bool error = false;
    FILE *file = fopen(log, "r");
    snprintf(words, room, "it says nothing");
    while (file && getline(&line, &size, file) >= 0) {
        bool speaks = strstr(line, "rror") || strstr(line, "ERROR");
        line[strcspn(line, "\n")] = 0;
        if (*line && (speaks || !error))
            snprintf(words, room, "%s", line);
        error |= speaks;
    }
    free(line);
    if (file)
        fclose(file);
}

static bool draw_with(const char *command, const char *folder, const char *scratch, const char *log, FILE *out)
{
    char *lent = lend_files(folder, scratch), *picture = trace_text("%s/starvz.png", scratch);
    char *configuration = trace_text("%s/starvz.yaml", folder), words[256];
    char *arguments[] = {(char *)command, (char *)"-t", (char *)"-k", (char *)"-c", configuration,
                         (char *)"-s",    picture,      lent,         NULL};
    struct stat is;
    run_logged(arguments, log); /* its status says nothing */
    bool drawn = !stat(picture, &is) && is.st_size > 0;
    last_words(log, sizeof words, words);
    if (drawn)
        fprintf(out, "StarVZ drew starvz.png\n");
    else
        fprintf(out, "no picture by StarVZ: it says: %s\n", words);
    free(lent);
    free(picture);
    free(configuration);
    return drawn;
}

/* Why it cannot be asked, or NULL. */
static const char *obstacle(const trace *t, const char *folder, const char *command)
{
    if (!command)
        return "it is not installed";
    if (!in_path("pj_dump") || !in_path("rec2csv"))
        return "it needs pj_dump (of pajeng) and rec2csv (of recutils), and one of them is not installed";
    if (strpbrk(folder, " \t\"'"))
        return "it cannot work in a folder whose name has blanks or quotes";
    for (int i = 0; i < t->n_names; i++)
        if (strpbrk(t->names[i].text, ",\""))
            return "it cannot read names of tasks with commas or quotes";
    return NULL;
}

bool starvz_draw(const trace *t, const char *folder, const char *scratch, FILE *out)
{
    char *log = trace_text("%s/starvz.log", scratch), *whole = realpath(folder, NULL), *command = find_starvz(log);
    const char *why = obstacle(t, whole ? whole : folder, command);
    bool drawn = false;
    if (why)
        fprintf(out, "no picture by StarVZ: %s\n", why);
    else
        drawn = draw_with(command, folder, scratch, log, out);
    free(command);
    free(whole);
    free(log);
    return drawn;
}
