/* SPDX-License-Identifier: Apache-2.0 */
#include "trace_output.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "must.h"
#include "trace_build.h"

/* ---- The scratch folder ---- */

static char *make_scratch(const char *folder)
{
    char *scratch = trace_text("%s/.trama-trace-XXXXXX", folder);
    struct stat is;
    if (stat(folder, &is))
        fail("%s: %s", folder, strerror(errno));
    if (!S_ISDIR(is.st_mode))
        fail("%s: it is no folder", folder);
    if (!mkdtemp(scratch))
        fail("%s: nothing can be written there: %s; choose another folder for the results", folder, strerror(errno));
    return scratch;
}

static void remove_all(const char *path)
{
    struct stat is;
    DIR *folder = lstat(path, &is) == 0 && S_ISDIR(is.st_mode) ? opendir(path) : NULL;
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..")) {
            char *inner = trace_text("%s/%s", path, entry->d_name);
            remove_all(inner);
            free(inner);
        }
    if (folder)
        closedir(folder);
    remove(path);
}

/* ---- The work ---- */

static volatile sig_atomic_t worker;

static void hand_on(int signal)
{
    if (worker > 0)
        kill((pid_t)worker, signal);
}

static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
enum { N_ENDS = sizeof ends / sizeof *ends };

static void on_ends(void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART}, old;
    for (int i = 0; i < N_ENDS; i++)
        if (!sigaction(ends[i], NULL, &old) && old.sa_handler != SIG_IGN)
            sigaction(ends[i], &action, NULL);
}

/* Starts the child with signals held back, so that none comes before there is somebody to hand it on to. */
static pid_t start_work(void)
{
    sigset_t held, before;
    sigemptyset(&held);
    for (int i = 0; i < N_ENDS; i++)
        sigaddset(&held, ends[i]);
    fflush(NULL);
    sigprocmask(SIG_BLOCK, &held, &before);
    pid_t child = fork();
    worker = child > 0 ? child : 0;
    if (child > 0)
        on_ends(hand_on);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return child;
}

int trace_output_work(const char *folder, int (*work)(const char *scratch, void *closure), void *closure)
{
    char *scratch = make_scratch(folder);
    int status = 0;
    pid_t child = start_work();
    if (child == 0) {
        status = work(scratch, closure);
        free(scratch);
        exit(status);
    }
    int error = errno;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    worker = 0;
    on_ends(SIG_DFL);
    remove_all(scratch);
    free(scratch);
    if (child < 0)
        fail("cannot start a process: %s", strerror(error));
    if (WIFSIGNALED(status))
        raise(WTERMSIG(status));
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
}

/* ---- Files ---- */

FILE *trace_output_open(const char *scratch, const char *name)
{
    char *path = trace_text("%s/%s", scratch, name);
    FILE *file = fopen(path, "w");
    if (!file)
        fail("%s: %s", path, strerror(errno));
    free(path);
    return file;
}

void trace_output_close(FILE *file, const char *scratch, const char *name)
{
    if (!close_written(file))
        fail("%s/%s: it cannot be written: %s", scratch, name, strerror(errno));
}

void trace_output_pictures(const char *scratch, const trace *t, const trace_picture *picture)
{
    FILE *file = trace_output_open(scratch, "timeline.svg");
    trace_write_svg(t, picture, file); /* closing it tells whether it is written */
    trace_output_close(file, scratch, "timeline.svg");
    file = trace_output_open(scratch, "trace.json");
    trace_write_chrome(t, file);
    trace_output_close(file, scratch, "trace.json");
}

void trace_output_publish(const char *scratch, const char *folder, int n, const char *const *names)
{
    for (int i = 0; i < n; i++) {
        char *from = trace_text("%s/%s", scratch, names[i]), *to = trace_text("%s/%s", folder, names[i]);
        if (rename(from, to) && (errno != ENOENT || (unlink(to) && errno != ENOENT)))
            fail("%s: %s", to, strerror(errno));
        free(from);
        free(to);
    }
}
