/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the progress: ten times a second at most on a terminal, every other second elsewhere, and at the end. */
#include "progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { BAR_WIDTH = 30 };

double clock_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

progress progress_begin(bool shown, int64_t steps)
{
    double now = clock_seconds();
    return (progress){.shown = shown, .terminal = isatty(STDERR_FILENO), .steps = steps, .begun = now, .told = now};
}

static void draw_bar(int64_t done, int64_t steps)
{
    char bar[BAR_WIDTH + 1] = "";
    int full = (int)(done * BAR_WIDTH / steps);
    for (int i = 0; i < BAR_WIDTH; i++)
        bar[i] = i < full ? '#' : '.';
    fprintf(stderr, "\r[%s] ", bar);
}

void progress_count(progress *p, int64_t done, const char *what)
{
    double now = clock_seconds();
    bool last = done == p->steps, drawn = p->told > p->begun;
    if (!p->shown || !p->terminal || now - p->begun < 1 || (now - p->told < 0.1 && !last) || (last && !drawn))
        return;
    p->told = now;
    if (last) {
        fputs("\r\033[K", stderr);
        return;
    }
    draw_bar(done, p->steps);
    fprintf(stderr, "%lld of %lld %s\033[K", (long long)done, (long long)p->steps, what);
}

void progress_tell(progress *p, int64_t done, int64_t samples, double loss)
{
    double now = clock_seconds(), pause = p->terminal ? 0.1 : 2;
    bool last = done == p->steps;
    if (!p->shown || (now - p->told < pause && !last))
        return;
    p->told = now;
    if (p->terminal)
        draw_bar(done, p->steps);
    fprintf(stderr, "step %lld/%lld, loss %.4f, %.0f samples/s%s", (long long)done, (long long)p->steps, loss,
            (double)samples / (now - p->begun), p->terminal ? "\033[K" : "\n");
    if (p->terminal && last)
        fputc('\n', stderr);
}
