/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* vasprintf */
#include "trace_build.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "must.h"
#include "trace_names.h"

void *trace_grow(void *list, int n, size_t size)
{
    if (n > 0 && (n & (n - 1))) /* the room is a power of two */
        return memset((char *)list + (size_t)n * size, 0, size), list;
    char *larger = realloc(list, (n ? 2 * (size_t)n : 1) * size);
    if (!larger)
        fail("no memory for %d elements of %zu bytes", n + 1, size);
    memset(larger + (size_t)n * size, 0, size);
    return larger;
}

static char *text_of(const char *format, va_list arguments)
{
    char *text;
    if (vasprintf(&text, format, arguments) < 0)
        fail("no memory for a text");
    return text;
}

char *trace_text(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = text_of(format, arguments);
    va_end(arguments);
    return text;
}

void trace_note(trace *t, const char *format, ...)
{
    t->missing = trace_grow(t->missing, t->n_missing, sizeof *t->missing);
    va_list arguments;
    va_start(arguments, format);
    t->missing[t->n_missing++].text = text_of(format, arguments);
    va_end(arguments);
}

void trace_note_ranks(trace *t, int n, const bool *which, const char *text)
{
    char *list = NULL;
    size_t size;
    int marked = 0;
    FILE *out = open_memstream(&list, &size);
    if (!out)
        fail("no memory for a text");
    for (int i = 0; i < n; i++) {
        int first = i;
        if (!which[i])
            continue;
        while (i + 1 < n && which[i + 1])
            i++;
        fprintf(out, "%s%d", marked ? ", " : "", first);
        if (i > first)
            fprintf(out, "-%d", i);
        marked += i - first + 1;
    }
    fclose(out);
    if (marked)
        trace_note(t, "rank%s %s: %s", marked > 1 ? "s" : "", list, text);
    free(list);
}

int trace_name_index(trace *t, const char *name)
{
    for (int i = 0; i < t->n_names; i++)
        if (!strcmp(t->names[i].text, name))
            return i;
    t->names = trace_grow(t->names, t->n_names, sizeof *t->names);
    t->names[t->n_names] = (trace_name){.text = trace_text("%s", name), .role = trace_role_of(name)};
    return t->n_names++;
}

void trace_add_worker(trace *t, int rank, int number, int place)
{
    t->workers = trace_grow(t->workers, t->n_workers, sizeof *t->workers);
    t->workers[t->n_workers++] = (trace_worker){.rank = rank, .number = number, .place = place};
}

void trace_drop_workers(trace *t, const bool *with)
{
    int n = 0;
    for (int i = 0; i < t->n_workers; i++)
        if (t->workers[i].rank < t->n_ranks && with[t->workers[i].rank])
            t->workers[n++] = t->workers[i];
    t->n_workers = n;
}

static int by_number(const void *first, const void *second)
{
    const trace_worker *a = first, *b = second;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

void trace_finish_workers(trace *t)
{
    int n = 0;
    if (t->n_workers)
        qsort(t->workers, (size_t)t->n_workers, sizeof *t->workers, by_number);
    for (int i = 0; i < t->n_workers; i++) {
        trace_worker w = t->workers[i];
        if (n == 0 || by_number(&t->workers[n - 1], &w))
            t->workers[n++] = w;
        else if (w.place > t->workers[n - 1].place)
            t->workers[n - 1].place = w.place;
    }
    t->n_workers = n;
    for (int i = 0; i < n; i++) {
        trace_worker *w = &t->workers[i];
        w->place = w->place < 0 ? 0 : w->place;
        w->text =
            t->n_ranks > 1 ? trace_text("rank %d, worker %d", w->rank, w->number) : trace_text("worker %d", w->number);
    }
}

int trace_find_worker(const trace *t, int rank, int number)
{
    const trace_worker wanted = {.rank = rank, .number = number};
    const trace_worker *found =
        t->n_workers ? bsearch(&wanted, t->workers, (size_t)t->n_workers, sizeof wanted, by_number) : NULL;
    return found ? (int)(found - t->workers) : -1;
}

void trace_destroy(trace *t)
{
    for (int i = 0; i < t->n_names; i++)
        free(t->names[i].text);
    for (int i = 0; i < t->n_workers; i++)
        free(t->workers[i].text);
    for (int i = 0; i < t->n_tasks; i++) {
        free(t->tasks[i].needs);
        free(t->tasks[i].messages);
        free(t->tasks[i].sends);
    }
    for (int i = 0; i < t->n_messages; i++)
        free(t->messages[i].text);
    for (int i = 0; i < t->n_missing; i++)
        free(t->missing[i].text);
    free(t->program);
    free(t->names);
    free(t->workers);
    free(t->tasks);
    free(t->messages);
    free(t->missing);
    *t = (trace){.program = NULL};
}
