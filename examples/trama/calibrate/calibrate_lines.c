/* SPDX-License-Identifier: Apache-2.0 */
#include "calibrate_lines.h"

#include <stdlib.h>
#include <string.h>

#include "must.h"

static int earlier(const void *x, const void *y)
{
    return *(const double *)x > *(const double *)y ? 1 : -1;
}

double median(int n, double *of)
{
    qsort(of, (size_t)n, sizeof *of, earlier);
    return of[n / 2];
}

void lines_say(machine_lines *l, const char *words, int n, const quantity *of)
{
    if (l->n == MOST_LINES || l->pass == MOST_PASSES)
        fail("the machine has more than %d lines, or %d passes", MOST_LINES, MOST_PASSES);
    machine_line *line = &l->line[l->n++];
    if (l->pass && (strcmp(line->words, words) || line->n != n))
        fail("line %d of pass %d is '%s', and '%s' in the first pass", l->n, l->pass + 1, words, line->words);
    snprintf(line->words, sizeof line->words, "%s", words);
    line->n = n;
    for (int i = 0; i < n; i++) {
        line->value[i][l->pass] = of[i].value;
        line->unit[i] = of[i].unit;
    }
}

void lines_next_pass(machine_lines *l)
{
    l->all = l->pass ? l->all : l->n;
    if (l->n != l->all)
        fail("pass %d has %d lines, and the first one %d", l->pass + 1, l->n, l->all);
    l->n = 0;
    l->pass++;
}

void lines_write(machine_lines *l, FILE *out)
{
    for (int i = 0; i < l->all; i++) {
        machine_line *line = &l->line[i];
        fprintf(out, "  %s", line->words);
        for (int k = 0; k < line->n; k++)
            fprintf(out, " %.4g%s", median(l->pass, line->value[k]), line->unit[k]);
        fprintf(out, "\n");
    }
}
