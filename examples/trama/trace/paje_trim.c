/* SPDX-License-Identifier: Apache-2.0 */
#include "paje_trim.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_EVENTS = 64, MOST_COLUMNS = 64, CREATE_CONTAINER = 7 };

static const struct column {
    int event;
    const char *name;
} dropped[] = {{20, "Priority"}, {21, "Priority"}, {23, "HName"}, {23, "X"},
               {23, "Y"},        {24, "HName"},    {24, "X"},     {24, "Y"}};
static const char *const renamed[][2] = {{"MPITAG", "Tag"}};

typedef struct trimming {
    FILE *out;
    int event, n; /* in the definition of which, after how many columns; event 0: in none */
    bool drops[MOST_EVENTS][MOST_COLUMNS], any[MOST_EVENTS];
} trimming;

/* ---- Definitions ---- */

static bool is_dropped(int event, const char *name)
{
    for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++)
        if (dropped[i].event == event && !strcmp(dropped[i].name, name))
            return true;
    return false;
}

/* "%EventDef NAME NUMBER", "% NAME TYPE", "%EndEventDef". */
static void trim_definition(trimming *t, const char *line)
{
    char first[64], second[64];
    int event, n = sscanf(line + 1, "%63s %63s", first, second);
    if (n == 2 && !strcmp(first, "EventDef")) {
        bool known = sscanf(line + 1, "%*s %*s %d", &event) == 1 && event > 0 && event < MOST_EVENTS;
        t->event = known ? event : 0;
        t->n = 0;
    } else if (n >= 1 && !strcmp(first, "EndEventDef")) {
        t->event = 0;
    } else if (n == 2 && t->event && t->n < MOST_COLUMNS) {
        bool drop = is_dropped(t->event, first);
        t->drops[t->event][t->n++] = drop;
        t->any[t->event] |= drop;
        if (drop)
            return;
        for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++)
            if (!strcmp(first, renamed[i][0])) {
                fprintf(t->out, "%%\t%s\t%s\n", renamed[i][1], second);
                return;
            }
    }
    fputs(line, t->out);
}

/* ---- Events ---- */

/* The next column, cut out of the text; NULL at its end. */
static char *next_column(char **at)
{
    char *column = *at + strspn(*at, " \t\r\n");
    if (!*column)
        return NULL;
    char *end = column;
    while (*end && !strchr(" \t\r\n", *end)) {
        char *closing = *end == '"' ? strchr(end + 1, '"') : NULL;
        end = closing ? closing + 1 : end + 1;
    }
    *at = *end ? end + 1 : end;
    *end = 0;
    return column;
}

static void trim_event(trimming *t, int event, char *line)
{
    char *column = next_column(&line);
    fputs(column, t->out);
    for (int i = 0; (column = next_column(&line)); i++)
        if (i >= MOST_COLUMNS || !t->drops[event][i]) {
            putc('\t', t->out);
            fputs(column, t->out);
        }
    putc('\n', t->out);
}

/* "7 TIME ALIAS W CONTAINER NAME": the alias is 1_w0, or w0 where the trace is of one rank. */
static bool is_worker(const char *line, int *rank, int *number)
{
    char alias[64], type[8];
    if (sscanf(line, "%*d %*s %63s %7s", alias, type) != 2 || strcmp(type, "W"))
        return false;
    *rank = 0;
    return sscanf(alias, "w%d", number) == 1 || sscanf(alias, "%d_w%d", rank, number) == 2;
}

void paje_trim(FILE *in, FILE *out, void (*found)(void *closure, int rank, int number), void *closure)
{
    trimming t = {.out = out};
    char *line = NULL;
    size_t room = 0;
    int rank, number;
    while (getline(&line, &room, in) >= 0) {
        long event = strtol(line, NULL, 10);
        if (event == CREATE_CONTAINER && is_worker(line, &rank, &number))
            found(closure, rank, number);
        if (*line == '%')
            trim_definition(&t, line);
        else if (event > 0 && event < MOST_EVENTS && t.any[event])
            trim_event(&t, (int)event, line);
        else
            fputs(line, out);
        if (ferror(out))
            break;
    }
    free(line);
}
