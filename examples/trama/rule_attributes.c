/* SPDX-License-Identifier: Apache-2.0 */
#include "rule_attributes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"

const char *attribute_value(const building *b, const char *name)
{
    size_t length = strlen(name);
    for (int i = 0; i < b->asked->n_attributes; i++)
        if (!strncmp(b->asked->attribute[i], name, length) && b->asked->attribute[i][length] == '=')
            return b->asked->attribute[i] + length + 1;
    return NULL;
}

const char *attribute_option(const char *name)
{
    static char option[48];
    snprintf(option, sizeof option, "--attr %s", name);
    return option;
}

bool attribute_flag(const building *b, const char *name)
{
    static const char *const words[] = {"0", "1"};
    const char *text = attribute_value(b, name);
    return text && argument_word(b->asked->state, attribute_option(name), text, 2, words) == 1;
}

int attribute_dims(const building *b, const char *name, int ndim, int low, int *list)
{
    int64_t numbers[TRAMA_MAX_NDIM];
    const char *text = attribute_value(b, name);
    if (!text)
        return 0;
    if (!ndim)
        argp_error(b->asked->state, "--attr %s '%s': in0 has no dims", name, text);
    int n = argument_list(b->asked->state, attribute_option(name), text, low, ndim - 1, TRAMA_MAX_NDIM, numbers);
    for (int i = 0; i < n; i++)
        list[i] = (int)numbers[i];
    return n;
}

int attribute_axes(const building *b, int ndim, int *list)
{
    unsigned seen = 0;
    const char *text = attribute_value(b, "axis");
    int n = text && !strcmp(text, "none") ? 0 : attribute_dims(b, "axis", ndim, -ndim, list);
    for (int i = 0; i < n; i++) {
        list[i] += list[i] < 0 ? ndim : 0;
        if (seen >> list[i] & 1)
            argp_error(b->asked->state, "--attr axis '%s': names dim %d twice", attribute_value(b, "axis"), list[i]);
        seen |= 1u << list[i];
    }
    return n;
}

int attribute_axis(const building *b)
{
    int ndim = trama_value_shape(b->in[0]).ndim, dim = ndim - 1;
    if (!ndim)
        argp_error(b->asked->state, "%s --in '%s': in0 has no dims", b->asked->name, b->asked->in_text[0]);
    const char *text = attribute_value(b, "axis");
    if (text)
        dim = (int)argument_integer(b->asked->state, "--attr axis", text, -ndim, ndim - 1);
    return dim < 0 ? dim + ndim : dim;
}

trama_shape attribute_shape(const building *b)
{
    const char *text = attribute_value(b, "shape");
    if (!text)
        argp_error(b->asked->state, "%s: --attr shape=N,N is missing", b->asked->name);
    return argument_shape(b->asked->state, "--attr shape", text);
}

/* ---- Slots ---- */

/* Goes on to the next name, its n letters at *at; false behind the last one. All zero to begin with. */
static bool next_slots(const char **at, size_t *n, op_slots *s)
{
    *at += strcspn(*at, " ");
    *at += strspn(*at, " ");
    s->first += s->count;
    if (**at == '|') {
        *at += strspn(*at, "| ");
        *s = (op_slots){.real = true};
    }
    *n = strcspn(*at, " [");
    s->count = (*at)[*n] == '[' ? atoi(*at + *n + 1) : 1;
    return **at;
}

op_slots attribute_slots(const trama_op *op, const char *name, size_t length)
{
    char names[256];
    const char *at = names;
    op_slots s = {0};
    size_t n;
    snprintf(names, sizeof names, " %s", op->attributes);
    while (next_slots(&at, &n, &s))
        if (n == length && !strncmp(at, name, n))
            return s;
    abort(); /* known_ops and ops.def differ */
}

int attribute_slot(const trama_op *op, const char *name)
{
    return attribute_slots(op, name, strlen(name)).first;
}

const char *attribute_names(const trama_op *op)
{
    static char words[256];
    char names[256];
    const char *at = names;
    op_slots s = {0};
    size_t n, length = 0;
    snprintf(names, sizeof names, " %s", op->attributes ? op->attributes : "");
    words[0] = 0;
    while (next_slots(&at, &n, &s))
        length += (size_t)snprintf(words + length, sizeof words - length, "%s%.*s", length ? " " : "", (int)n, at);
    return words;
}
