/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the text forms of a layout; trama_layout.h has their grammar. The first error ends the parse and names its
 * position in the text. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "layout.h"

typedef struct cursor {
    const char *source, *at;
    const trama_mesh *mesh;
    trama_status status;
} cursor;

static void fail_at(cursor *c, const char *at, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void fail_at(cursor *c, const char *at, const char *format, ...)
{
    char why[400], letter[40] = "the end";
    va_list list;
    if (c->status)
        return;
    va_start(list, format);
    vsnprintf(why, sizeof why, format, list);
    va_end(list);
    if (*at)
        snprintf(letter, sizeof letter, "letter %zu", (size_t)(at - c->source) + 1);
    c->status = trama_fail(NOWHERE, TRAMA_E_LAYOUT, "layout: %s of '%s': %s", letter, c->source, why);
}

static void misunderstand(cursor *c, const char *remedy)
{
    fail_at(c, c->at, "not understood at '%s'; %s", c->at, remedy);
}

static const char *const forms = "write an entry per mesh axis, \"S(0),R\", or per dim, \"[0,-1]\" or \"dp,-\"";

/* ---- Words ---- */

static void skip_blanks(cursor *c)
{
    while (*c->at == ' ')
        c->at++;
}

static bool accept(cursor *c, const char *word)
{
    skip_blanks(c);
    size_t n = strlen(word);
    if (c->status || strncmp(c->at, word, n))
        return false;
    c->at += n;
    return true;
}

static void expect(cursor *c, const char *word, const char *remedy)
{
    if (!accept(c, word))
        misunderstand(c, remedy);
}

static int number(cursor *c, const char *remedy)
{
    int value = 0, digits = 0;
    skip_blanks(c);
    for (; isdigit((unsigned char)c->at[digits]) && digits < 6; digits++)
        value = 10 * value + (c->at[digits] - '0');
    if (!digits || isdigit((unsigned char)c->at[digits]))
        misunderstand(c, remedy);
    else
        c->at += digits;
    return value;
}

static trama_reduce reduce_kind(cursor *c)
{
    for (int k = TRAMA_SUM; k <= TRAMA_MIN; k++)
        if (accept(c, reduce_name((trama_reduce)k)))
            return (trama_reduce)k;
    misunderstand(c, "a partial value is a sum, avg, max or min of terms");
    return TRAMA_SUM;
}

/* ---- Per mesh axis ---- */

static trama_placement placement(cursor *c)
{
    trama_placement p = {.kind = TRAMA_REPLICATE, .order = -1};
    if (accept(c, "?")) {
        p.kind = TRAMA_OPEN;
    } else if (accept(c, "S(")) {
        p.kind = TRAMA_SPLIT;
        p.dim = number(c, "S(0) splits dim 0 of the tensor");
        expect(c, ")", "S(0) ends with ')'");
        if (accept(c, "[")) {
            p.order = number(c, "S(0)[1] cuts dim 0 after the axis with S(0)[0]");
            expect(c, "]", "S(0)[1] ends with ']'");
        }
    } else if (accept(c, "P")) {
        p.kind = TRAMA_PARTIAL;
        if (accept(c, "(")) {
            p.reduce = reduce_kind(c);
            expect(c, ")", "P(sum) ends with ')'");
        }
    } else {
        expect(c, "R", forms);
    }
    return p;
}

/* Axes without an order [k] cut their dim in mesh order. Either all axes of a dim have one, or none. */
static void set_orders(cursor *c, trama_layout *layout)
{
    const trama_layout given = *layout;
    for (int a = 0; a < layout->naxes; a++) {
        trama_placement *p = &layout->axis[a];
        if (p->kind != TRAMA_SPLIT || p->order >= 0)
            continue;
        int before = 0, stated = 0, same = 0;
        for (int b = 0; b < layout->naxes; b++) {
            const trama_placement *q = &given.axis[b];
            if (q->kind != TRAMA_SPLIT || q->dim != p->dim)
                continue;
            same++;
            before += b < a;
            stated += q->order >= 0;
        }
        if (stated)
            fail_at(c, c->at, "of the %d axes that split dim %d, either all state their order [k] or none", same,
                    p->dim);
        p->order = before;
    }
}

static void parse_placements(cursor *c, trama_layout *layout)
{
    int n = 0;
    do {
        trama_placement p = placement(c);
        if (n < TRAMA_MAX_AXES)
            layout->axis[n] = p;
        n++;
    } while (accept(c, ","));
    if (n != c->mesh->ndim)
        fail_at(c, c->at, "it has %d placements, the mesh %d axes; write one for each", n, c->mesh->ndim);
    if (!c->status)
        set_orders(c, layout);
}

/* ---- Per dim of the tensor ---- */

static void unknown_axis(cursor *c, const char *at, int length)
{
    text names = {0};
    for (int a = 0; a < c->mesh->ndim; a++)
        if (*c->mesh->names[a])
            text_add(&names, "%s%s", names.n ? ", " : "", c->mesh->names[a]);
    if (names.n)
        fail_at(
            c, at,
            "not understood at '%s': the mesh has no axis '%.*s'; its axes are %s, and a dim that is not split is -",
            at, length, at, names.at);
    else
        fail_at(c, at, "not understood at '%s': the mesh has no axis '%.*s', its axes have no names; %s", at, length,
                at, forms);
    free(names.at);
}

/* Reads an axis by its name or its number; *at is its position in the text. */
static int axis_of_mesh(cursor *c, const char **at)
{
    skip_blanks(c);
    *at = c->at;
    int length = (int)mesh_identifier(c->at);
    if (!length) {
        int axis = number(c, "an axis of the mesh stands there, by its name or its number");
        if (axis >= c->mesh->ndim)
            fail_at(c, *at, "there is no axis %d in a mesh of %d axes; they count from 0", axis, c->mesh->ndim);
        return axis;
    }
    for (int a = 0; a < c->mesh->ndim; a++)
        if (strlen(c->mesh->names[a]) == (size_t)length && !strncmp(c->mesh->names[a], c->at, (size_t)length)) {
            c->at += length;
            return a;
        }
    unknown_axis(c, *at, length);
    return 0;
}

static void place_axis(cursor *c, trama_layout *layout, trama_placement p, int axis, const char *at)
{
    if (c->status)
        return;
    if (layout->axis[axis].kind != TRAMA_REPLICATE)
        fail_at(c, at, "axis %d is used twice; an axis splits one dim, or is partial", axis);
    layout->axis[axis] = p;
}

static void parse_dim(cursor *c, trama_layout *layout, int dim)
{
    int order = 0;
    const char *at;
    if (accept(c, "-1"))
        return;
    if (*c->at == '-' && !isdigit((unsigned char)c->at[1])) {
        c->at++;
        return;
    }
    do {
        trama_placement p = {.kind = TRAMA_SPLIT, .dim = dim, .order = order++};
        int axis = axis_of_mesh(c, &at);
        place_axis(c, layout, p, axis, at);
    } while (accept(c, "+"));
}

static void parse_partials(cursor *c, trama_layout *layout)
{
    const char *at;
    do {
        trama_placement p = {.kind = TRAMA_PARTIAL};
        int axis = axis_of_mesh(c, &at);
        expect(c, ":", "P{0:sum} names an axis and how its terms combine");
        p.reduce = reduce_kind(c);
        place_axis(c, layout, p, axis, at);
    } while (accept(c, ","));
    expect(c, "}", "P{0:sum} ends with '}'");
}

static void parse_mapping(cursor *c, int ndim, bool brackets, trama_layout *layout)
{
    int dims = 0;
    if (!brackets || !accept(c, "]")) {
        do
            parse_dim(c, layout, dims++);
        while (accept(c, ","));
        if (brackets)
            expect(c, "]", "the list of dims ends with ']'");
    }
    if (dims != ndim)
        fail_at(c, c->at, "the mapping has %d entries, the tensor %d dims; write one for each, - where it is not split",
                dims, ndim);
    if (accept(c, "P{"))
        parse_partials(c, layout);
}

/* Whether a text without brackets lists dims: it begins with -, a number, or a name other than R, S and P. */
static bool lists_dims(const char *at)
{
    size_t n = mesh_identifier(at);
    return *at == '-' || isdigit((unsigned char)*at) || n > 1 || (n == 1 && !strchr("RSP", *at));
}

/* ---- All of it ---- */

static void parse_mask(cursor *c, trama_layout *layout)
{
    unsigned char *mask = trama_alloc((size_t)c->mesh->size);
    int n = 0;
    do {
        skip_blanks(c);
        const char *at = c->at;
        int value = number(c, "a mask lists 0 or 1 for each process");
        if (value > 1)
            fail_at(c, at, "not understood at '%s'; a mask lists 0 or 1 for each process", at);
        if (n < c->mesh->size)
            mask[n] = (unsigned char)value;
        n++;
    } while (accept(c, ","));
    expect(c, "}", "a mask ends with '}'");
    if (n != c->mesh->size)
        fail_at(c, c->at, "the mask has %d entries, the mesh %d processes", n, c->mesh->size);
    if (!c->status)
        layout->mask = mesh_mask(c->mesh, mask);
    free(mask);
}

trama_status trama_layout_parse(const trama_mesh *mesh, int tensor_ndim, const char *source, trama_layout *layout)
{
    if (!mesh || !source || !layout)
        return layout_is_null(TRAMA_E_LAYOUT, mesh, source ? "layout" : "text");
    if (layout_of_ndim(tensor_ndim))
        return TRAMA_E_LAYOUT;
    cursor c = {.source = source, .at = source, .mesh = mesh};
    trama_layout result = layout_uniform(mesh, TRAMA_REPLICATE);
    bool brackets = accept(&c, "[");
    if (brackets || lists_dims(c.at))
        parse_mapping(&c, tensor_ndim, brackets, &result);
    else
        parse_placements(&c, &result);
    if (accept(&c, "mask{"))
        parse_mask(&c, &result);
    skip_blanks(&c);
    if (*c.at)
        misunderstand(&c, forms);
    if (!c.status)
        c.status = layout_check(mesh, tensor_ndim, &result, true);
    if (!c.status)
        *layout = result;
    return c.status;
}
