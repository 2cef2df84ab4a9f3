/* SPDX-License-Identifier: Apache-2.0 */
/* A small reader of Paje traces, independent of the code under test: each line has the columns that its event defines,
 * each container is there, each state is of its container's type, and the columns are those that StarVZ 0.8 takes by
 * position. */
#ifndef PAJE_H
#define PAJE_H

#include "programs.h"

enum { PAJE_EVENTS = 32, PAJE_COLUMNS = 32, PAJE_ENTITIES = 512 };

typedef struct paje_pair {
    char alias[64], type[64]; /* a container and its type; a type and that of the containers which have it */
} paje_pair;

typedef struct paje {
    int n[PAJE_EVENTS], count[PAJE_EVENTS]; /* columns, lines */
    char columns[PAJE_EVENTS][PAJE_COLUMNS][32];
    int n_containers, n_types;
    paje_pair containers[PAJE_ENTITIES], types[PAJE_ENTITIES];
} paje;

/* Cuts a line into its fields; returns how many. */
static inline int paje_cut(char *line, char *fields[PAJE_COLUMNS])
{
    int n = 0;
    for (char *at = line;;) {
        while (*at == ' ' || *at == '\t' || *at == '\n')
            *at++ = 0;
        if (!*at)
            return n;
        ck_assert_msg(n < PAJE_COLUMNS, "too many fields: %s", line);
        fields[n++] = at;
        for (bool quoted = false; *at && (quoted || (*at != ' ' && *at != '\t' && *at != '\n')); at++)
            quoted ^= *at == '"';
    }
}

static inline const char *paje_type(int n, const paje_pair *pairs, const char *alias)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(pairs[i].alias, alias))
            return pairs[i].type;
    return NULL;
}

static inline void paje_keep(int *n, paje_pair *pairs, const char *alias, const char *type)
{
    ck_assert(*n < PAJE_ENTITIES);
    snprintf(pairs[*n].alias, sizeof pairs->alias, "%s", alias);
    snprintf(pairs[(*n)++].type, sizeof pairs->type, "%s", type);
}

static inline const char *paje_field(const paje *p, int event, char **fields, const char *column)
{
    for (int i = 0; i < p->n[event]; i++)
        if (!strcmp(p->columns[event][i], column))
            return fields[1 + i];
    return NULL;
}

static inline void paje_event(paje *p, const char *line)
{
    char copy[4096], *fields[PAJE_COLUMNS] = {NULL};
    ck_assert_uint_lt(strlen(line), 500); /* more breaks StarVZ */
    strcpy(copy, line);
    int n = paje_cut(copy, fields), event = n ? atoi(fields[0]) : 0;
    if (n == 0)
        return;
    ck_assert_msg(event > 0 && event < PAJE_EVENTS && p->n[event] == n - 1, "%d columns where the event has %d: %s",
                  n - 1, event < PAJE_EVENTS ? p->n[event] : 0, line);
    p->count[event]++;
    if (event == 1 || event == 3)
        paje_keep(&p->n_types, p->types, fields[1], fields[2]);
    if (event == 7)
        paje_keep(&p->n_containers, p->containers, fields[2], fields[3]);
    const char *container = paje_field(p, event, fields, "Container"), *type = paje_field(p, event, fields, "Type");
    if (event < 8 || !container || !strcmp(container, "MPIroot"))
        return;
    const char *kind = paje_type(p->n_containers, p->containers, container);
    ck_assert_msg(kind != NULL, "no such container: %s", line);
    if (event == 10 || event == 11 || event == 12 || event == 20)
        ck_assert_msg(!strcmp(kind, paje_type(p->n_types, p->types, type)), "a state of another container: %s", line);
}

static inline void paje_definition(paje *p, const char *line, int *event)
{
    char first[32], second[32];
    int n = sscanf(line + 1, "%31s %31s %d", first, second, event);
    if (n == 3 && !strcmp(first, "EventDef"))
        ck_assert(*event > 0 && *event < PAJE_EVENTS);
    else if (n >= 2 && *event)
        strcpy(p->columns[*event][p->n[*event]++], first);
    else if (n == 1)
        *event = 0;
}

static inline void paje_expect(const paje *p, int event, const char *columns)
{
    char all[512] = "";
    for (int i = 0; i < p->n[event]; i++)
        strcat(strcat(all, i ? " " : ""), p->columns[event][i]);
    ck_assert_str_eq(all, columns);
}

/* Reads and checks all of it. */
static inline const paje *paje_read(const char *path)
{
    static paje p;
    char *line = NULL;
    size_t room = 0;
    int event = 0;
    memset(&p, 0, sizeof p);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    while (getline(&line, &room, file) >= 0)
        if (*line == '%')
            paje_definition(&p, line, &event);
        else
            paje_event(&p, line);
    fclose(file);
    free(line);
    paje_expect(&p, 20,
                "Time Container Type Value Size Params Footprint Tag JobId SubmitOrder GFlop X Y Iteration "
                "Subiteration NumaNodes");
    paje_expect(&p, 21, "Time Container Type Value Size Params Footprint Tag JobId SubmitOrder");
    paje_expect(&p, 23, "Time Type Container Value StartContainer Key Tag MPIType Priority Handle");
    paje_expect(&p, 24, "Time Type Container Value StartContainer Key Handle");
    return &p;
}

#endif
