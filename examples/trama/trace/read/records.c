/* SPDX-License-Identifier: Apache-2.0 */
#include "records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "must.h"

enum { MOST_FIELDS = 64 };

typedef struct record_field {
    char *line, *value; /* the line is cut behind the name */
    size_t room;
} record_field;

struct records {
    FILE *file;
    int n;
    record_field fields[MOST_FIELDS + 1]; /* the last one takes all fields beyond MOST_FIELDS */
};

records *records_open(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file)
        return NULL;
    records *r = must_allocate(1, sizeof *r);
    r->file = file;
    return r;
}

/* The blank that ends a line, or the text, is cut off; returns the first character that is none. */
static char *without_blanks(char *text)
{
    text += strspn(text, " \t");
    size_t end = strlen(text);
    while (end > 0 && strchr(" \t\r\n", text[end - 1]))
        end--;
    text[end] = 0;
    return text;
}

bool records_next(records *r)
{
    r->n = 0;
    for (;;) {
        record_field *f = &r->fields[r->n];
        if (getline(&f->line, &f->room, r->file) < 0)
            return r->n > 0;
        char *colon = strchr(f->line, ':');
        if (colon && *f->line != '#' && *f->line != '%') {
            *colon = 0;
            f->value = without_blanks(colon + 1);
            r->n += r->n < MOST_FIELDS;
        } else if (!*without_blanks(f->line) && r->n > 0) {
            return true;
        }
    }
}

const char *records_text(const records *r, const char *field)
{
    for (int i = 0; i < r->n; i++)
        if (!strcmp(r->fields[i].line, field))
            return r->fields[i].value;
    return NULL;
}

double records_number(const records *r, const char *field, double otherwise)
{
    const char *text = records_text(r, field);
    char *end;
    double value = text ? strtod(text, &end) : otherwise;
    return text && end == text ? otherwise : value;
}

long records_integer(const records *r, const char *field, long otherwise)
{
    const char *text = records_text(r, field);
    char *end;
    long value = text ? strtol(text, &end, 10) : otherwise;
    return text && end == text ? otherwise : value;
}

void records_close(records **r)
{
    if (!*r)
        return;
    fclose((*r)->file);
    for (int i = 0; i <= MOST_FIELDS; i++)
        free((*r)->fields[i].line);
    free(*r);
    *r = NULL;
}
