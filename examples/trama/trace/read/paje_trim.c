/* SPDX-License-Identifier: Apache-2.0 */
#include "paje_trim.h"

#include <stdlib.h>
#include <string.h>

#include "trace_build.h"

enum {
    MOST_EVENTS = 64,
    MOST_COLUMNS = 64,
    LONGEST_LIST = 96, /* StarVZ takes lines of 500 bytes */
    DEFINE_VALUE = 6,
    CREATE_CONTAINER = 7,
    DESTROY_CONTAINER = 8,
    NEW_EVENT = 9,
    SET_STATE = 10,
    START_LINK = 18,
    END_LINK = 19
};

typedef enum treatment { KEEP, DROP, CUT } treatment;

static const struct column {
    int event;
    const char *name;
    treatment treatment;
} columns[] = {{20, "Priority", DROP}, {20, "Params", CUT}, {20, "NumaNodes", CUT}, {21, "Priority", DROP},
               {21, "Params", CUT},    {23, "HName", DROP}, {23, "X", DROP},        {23, "Y", DROP},
               {24, "HName", DROP},    {24, "X", DROP},     {24, "Y", DROP}};
static const char *const renamed[][2] = {{"MPITAG", "Tag"}};

typedef struct poller {
    char alias[64]; /* of a thread of MPI's */
    bool polls;     /* its last state was to poll or to drive */
} poller;

typedef struct trimming {
    FILE *out;
    bool one_process;
    const paje_listener *listener;
    int event, n; /* in the definition of which, after how many columns; event 0: in none */
    treatment treatments[MOST_EVENTS][MOST_COLUMNS];
    bool any[MOST_EVENTS];
    int n_users;
    char (*users)[64]; /* containers of the user's threads */
    int n_pollers;
    poller *pollers;
} trimming;

/* ---- Definitions ---- */

static treatment treatment_of(int event, const char *name)
{
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        if (columns[i].event == event && !strcmp(columns[i].name, name))
            return columns[i].treatment;
    return KEEP;
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
        treatment as = treatment_of(t->event, first);
        t->treatments[t->event][t->n++] = as;
        t->any[t->event] |= as != KEEP;
        if (as == DROP)
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

/* A quoted one stays quoted. */
static void print_cut(const char *column, FILE *out)
{
    size_t length = strlen(column);
    if (length <= LONGEST_LIST)
        fputs(column, out);
    else
        fprintf(out, "%.*s...%s", LONGEST_LIST, column, *column == '"' ? "\"" : "");
}

static void trim_event(trimming *t, int event, char *line)
{
    char *column = next_column(&line);
    fputs(column, t->out);
    for (int i = 0; (column = next_column(&line)); i++) {
        treatment as = i < MOST_COLUMNS ? t->treatments[event][i] : KEEP;
        if (as == DROP)
            continue;
        putc('\t', t->out);
        if (as == CUT)
            print_cut(column, t->out);
        else
            fputs(column, t->out);
    }
    putc('\n', t->out);
}

/* The names of ops, between tabs: "6 NAME WS NAME COLOR". */
static void quote_names(trimming *t, const char *line)
{
    for (bool first = true; *line; first = false) {
        size_t length = strcspn(line, "\t\n");
        bool bare = length > 0 && *line != '"' && (memchr(line, ' ', length) || memchr(line, '#', length));
        fprintf(t->out, "%s%s%.*s%s", first ? "" : "\t", bare ? "\"" : "", (int)length, line, bare ? "\"" : "");
        line += length;
        if (*line == '\n')
            break;
        line += *line == '\t';
    }
    putc('\n', t->out);
}

/* "18 TIME WSL ...": stolen work. */
static bool is_theft(const char *line)
{
    char type[8];
    return sscanf(line, "%*d %*s %7s", type) == 1 && !strcmp(type, "WSL");
}

/* "7 TIME ALIAS TYPE CONTAINER NAME" */
static void look_at_container(trimming *t, const char *line)
{
    char alias[64], type[8];
    int rank = 0, number;
    if (sscanf(line, "%*d %*s %63s %7s", alias, type) != 2)
        return;
    if (!strcmp(type, "W") && (sscanf(alias, "w%d", &number) == 1 || sscanf(alias, "%d_w%d", &rank, &number) == 2))
        t->listener->worker(t->listener->closure, rank, number);
    if (!strcmp(type, "UT")) {
        t->users = trace_grow(t->users, t->n_users, sizeof *t->users);
        strcpy(t->users[t->n_users++], alias);
    }
    if (!strcmp(type, "MPICt")) {
        t->pollers = trace_grow(t->pollers, t->n_pollers, sizeof *t->pollers);
        strcpy(t->pollers[t->n_pollers++].alias, alias);
    }
}

/* A thread that drove a worker without being one, as in Trama: StarPU ends it as if it were. */
static bool is_users_end(const trimming *t, long event, const char *line)
{
    char alias[64], type[8];
    if ((event != SET_STATE && event != DESTROY_CONTAINER) || sscanf(line, "%*d %*s %63s %7s", alias, type) != 2 ||
        strcmp(type, event == SET_STATE ? "S" : "T"))
        return false;
    for (int i = 0; i < t->n_users; i++)
        if (!strcmp(t->users[i], alias))
            return true;
    return false;
}

static void end_user(trimming *t, long event, const char *line)
{
    char time[64], alias[64];
    if (event == DESTROY_CONTAINER && sscanf(line, "%*d %63s %63s", time, alias) == 2)
        fprintf(t->out, "%ld\t%s\t%s\tUT\n", event, time, alias);
}

/* "10 TIME CONTAINER CtS Pl", after Pl or Dr: it goes on polling. */
static bool polls_on(trimming *t, const char *line)
{
    char alias[64], type[8], state[8];
    if (t->n_pollers == 0 || sscanf(line, "%*d %*s %63s %7s %7s", alias, type, state) != 3 || strcmp(type, "CtS"))
        return false;
    for (int i = 0; i < t->n_pollers; i++)
        if (!strcmp(t->pollers[i].alias, alias)) {
            bool before = t->pollers[i].polls;
            t->pollers[i].polls = !strcmp(state, "Pl") || !strcmp(state, "Dr");
            return before && t->pollers[i].polls;
        }
    return false;
}

/* '9 TIME prog_event RANK_p "fxt flush"', without the rank where the trace is of one */
static void look_at_event(const trimming *t, const char *line)
{
    int rank = 0;
    char container[64];
    const char *name = strchr(line, '"');
    if (!name || strncmp(name, "\"fxt flush\"", 11) || sscanf(line, "%*d %*s %*s %63s", container) != 1)
        return;
    sscanf(container, "%d_p", &rank);
    t->listener->flush(t->listener->closure, rank);
}

static void trim_line(trimming *t, long event, char *line)
{
    if (event == CREATE_CONTAINER)
        look_at_container(t, line);
    if (event == NEW_EVENT)
        look_at_event(t, line);
    if (*line == '%')
        trim_definition(t, line);
    else if (is_users_end(t, event, line))
        end_user(t, event, line);
    else if (event == SET_STATE && polls_on(t, line))
        return;
    else if (event == DEFINE_VALUE && !strncmp(line, "6\t", 2))
        quote_names(t, line);
    else if (event > 0 && event < MOST_EVENTS && t->any[event])
        trim_event(t, (int)event, line);
    else if (!t->one_process || (event != START_LINK && event != END_LINK) || !is_theft(line))
        fputs(line, t->out);
}

void paje_trim(FILE *in, FILE *out, bool one_process, const paje_listener *listener)
{
    trimming t = {.out = out, .one_process = one_process, .listener = listener};
    char *line = NULL;
    size_t room = 0;
    while (!ferror(out) && getline(&line, &room, in) >= 0)
        trim_line(&t, strtol(line, NULL, 10), line);
    free(t.users);
    free(t.pollers);
    free(line);
}
