/* SPDX-License-Identifier: Apache-2.0 */
/* The two text forms of a layout, parsed and printed, both ways exactly. */
#include <ctype.h>
#include <string.h>

#include "layout.h"

static const char *const reduce_names[] = {"sum", "avg", "max", "min"};

const char *reduce_name(trama_reduce reduce)
{
    return reduce_names[reduce];
}

/* ---- Printing ---- */

static void mask_text(text *out, const trama_mesh *mesh, const trama_layout *layout)
{
    for (int i = 0; layout->mask && i < mesh->size; i++)
        text_add(out, "%s%d%s", i ? "," : " mask{", layout->mask[i], i == mesh->size - 1 ? "}" : "");
}

/* Whether the axes that cut a dim do so in mesh order, so that no [k] is needed. */
static bool in_mesh_order(const trama_layout *layout, int dim)
{
    int axes[TRAMA_MAX_AXES], n = layout_dim_axes(layout, dim, axes);
    for (int i = 1; i < n; i++)
        if (axes[i] < axes[i - 1])
            return false;
    return true;
}

void layout_text(text *out, const trama_mesh *mesh, const trama_layout *layout)
{
    for (int a = 0; a < layout->naxes; a++) {
        const trama_placement *p = &layout->axis[a];
        text_add(out, "%s", a ? "," : "");
        if (p->kind == TRAMA_SPLIT)
            text_add(out, "S(%d)", p->dim);
        if (p->kind == TRAMA_SPLIT && !in_mesh_order(layout, p->dim))
            text_add(out, "[%d]", p->order);
        if (p->kind == TRAMA_PARTIAL)
            text_add(out, "P(%s)", reduce_names[p->reduce]);
        if (p->kind == TRAMA_REPLICATE || p->kind == TRAMA_OPEN)
            text_add(out, p->kind == TRAMA_OPEN ? "?" : "R");
    }
    mask_text(out, mesh, layout);
}

/* Whether there is something to print; ndim of the tensor. */
static bool has_text(const trama_mesh *mesh, int ndim, const trama_layout *layout)
{
    if (!mesh || !layout)
        return layout_is_null(TRAMA_E_LAYOUT, mesh, "layout"), false;
    return !layout_check(mesh, ndim, layout, true);
}

char *trama_layout_text(const trama_mesh *mesh, const trama_layout *layout)
{
    text t = {0};
    if (!has_text(mesh, TRAMA_MAX_NDIM, layout))
        return NULL;
    layout_text(&t, mesh, layout);
    return text_take(&t);
}

char *trama_layout_mapping(const trama_mesh *mesh, int tensor_ndim, const trama_layout *layout)
{
    text t = {0};
    if (!has_text(mesh, tensor_ndim, layout))
        return NULL;
    text_add(&t, "[");
    for (int d = 0; d < tensor_ndim; d++) {
        int axes[TRAMA_MAX_AXES], n = layout_dim_axes(layout, d, axes);
        text_add(&t, "%s%s", d ? "," : "", n ? "" : "-1");
        for (int i = 0; i < n; i++)
            text_add(&t, "%s%d", i ? "+" : "", axes[i]);
    }
    text_add(&t, "]");
    const char *before = " P{";
    for (int a = 0; a < layout->naxes; a++)
        if (layout->axis[a].kind == TRAMA_PARTIAL) {
            text_add(&t, "%s%d:%s", before, a, reduce_names[layout->axis[a].reduce]);
            before = ",";
        }
    text_add(&t, "%s", *before == ',' ? "}" : "");
    mask_text(&t, mesh, layout);
    return text_take(&t);
}

/* ---- Parsing: a cursor that remembers whether all was understood ---- */

typedef struct cursor {
    const char *at;
    bool wrong;
} cursor;

static void skip_blanks(cursor *c)
{
    while (*c->at == ' ')
        c->at++;
}

static bool accept(cursor *c, const char *word)
{
    size_t n = strlen(word);
    if (c->wrong || strncmp(c->at, word, n))
        return false;
    c->at += n;
    return true;
}

static void expect(cursor *c, const char *word)
{
    if (!accept(c, word))
        c->wrong = true;
}

static int number(cursor *c)
{
    int value = 0, digits = 0;
    for (; isdigit((unsigned char)c->at[digits]) && digits < 6; digits++)
        value = 10 * value + (c->at[digits] - '0');
    if (!digits || isdigit((unsigned char)c->at[digits]))
        c->wrong = true;
    else
        c->at += digits;
    return value;
}

static trama_reduce reduce_kind(cursor *c)
{
    for (int k = 0; k < 4; k++)
        if (accept(c, reduce_names[k]))
            return (trama_reduce)k;
    c->wrong = true;
    return TRAMA_SUM;
}

static trama_placement placement(cursor *c)
{
    trama_placement p = {.kind = TRAMA_REPLICATE, .order = -1};
    skip_blanks(c);
    if (accept(c, "?")) {
        p.kind = TRAMA_OPEN;
    } else if (accept(c, "S(")) {
        p.kind = TRAMA_SPLIT;
        p.dim = number(c);
        expect(c, ")");
        if (accept(c, "[")) {
            p.order = number(c);
            expect(c, "]");
        }
    } else if (accept(c, "P")) {
        p.kind = TRAMA_PARTIAL;
        if (accept(c, "(")) {
            p.reduce = reduce_kind(c);
            expect(c, ")");
        }
    } else {
        expect(c, "R");
    }
    skip_blanks(c);
    return p;
}

/* Axes without a stated order cut their dim in mesh order; either all axes of a dim state one, or none does. */
static trama_status set_orders(trama_layout *layout)
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
            return trama_fail(NOWHERE, TRAMA_E_LAYOUT,
                              "layout: of the %d axes that split dim %d, either all state their order [k] or none", same,
                              p->dim);
        p->order = before;
    }
    return TRAMA_OK;
}

static trama_status parse_placements(cursor *c, const trama_mesh *mesh, trama_layout *layout)
{
    int n = 0;
    do {
        trama_placement p = placement(c);
        if (n < TRAMA_MAX_AXES)
            layout->axis[n] = p;
        n++;
    } while (accept(c, ","));
    if (c->wrong)
        return TRAMA_OK; /* reported by the caller with the place in the text */
    if (n != mesh->ndim)
        return trama_fail(NOWHERE, TRAMA_E_LAYOUT, "layout: it has %d placements, the mesh %d axes", n, mesh->ndim);
    return set_orders(layout);
}

static trama_status mapped_axis(const trama_mesh *mesh, trama_layout *layout, int axis, trama_placement p)
{
    if (axis >= mesh->ndim)
        return trama_fail(NOWHERE, TRAMA_E_LAYOUT, "layout: there is no axis %d in a mesh of %d axes", axis,
                          mesh->ndim);
    if (layout->axis[axis].kind != TRAMA_REPLICATE)
        return trama_fail(NOWHERE, TRAMA_E_LAYOUT, "layout: axis %d is used twice", axis);
    layout->axis[axis] = p;
    return TRAMA_OK;
}

static trama_status parse_mapping(cursor *c, const trama_mesh *mesh, int ndim, trama_layout *layout)
{
    int dim = 0;
    trama_status status = TRAMA_OK;
    if (!accept(c, "]")) {
        do {
            skip_blanks(c);
            int order = 0;
            if (!accept(c, "-1"))
                do {
                    trama_placement p = {.kind = TRAMA_SPLIT, .dim = dim, .order = order++};
                    int axis = number(c);
                    if (!c->wrong && !status)
                        status = mapped_axis(mesh, layout, axis, p);
                } while (accept(c, "+"));
            skip_blanks(c);
            dim++;
        } while (accept(c, ","));
        expect(c, "]");
    }
    if (!c->wrong && !status && dim != ndim)
        status = trama_fail(NOWHERE, TRAMA_E_LAYOUT, "layout: the mapping has %d entries, the tensor %d dims", dim, ndim);
    skip_blanks(c);
    if (!accept(c, "P{"))
        return status;
    do {
        trama_placement p = {.kind = TRAMA_PARTIAL};
        int axis = number(c);
        expect(c, ":");
        p.reduce = reduce_kind(c);
        if (!c->wrong && !status)
            status = mapped_axis(mesh, layout, axis, p);
    } while (accept(c, ","));
    expect(c, "}");
    return status;
}

static trama_status parse_mask(cursor *c, const trama_mesh *mesh, trama_layout *layout)
{
    skip_blanks(c);
    if (!accept(c, "mask{"))
        return TRAMA_OK;
    unsigned char *mask = trama_alloc((size_t)mesh->size);
    int n = 0;
    do {
        int value = number(c);
        if (value > 1)
            c->wrong = true;
        if (n < mesh->size)
            mask[n] = (unsigned char)value;
        n++;
    } while (!c->wrong && accept(c, ","));
    expect(c, "}");
    trama_status status = TRAMA_OK;
    if (!c->wrong && n != mesh->size)
        status = trama_fail(NOWHERE, TRAMA_E_LAYOUT, "layout: the mask has %d entries, the mesh %d processes", n,
                            mesh->size);
    if (!c->wrong && !status)
        layout->mask = mesh_mask(mesh, mask);
    free(mask);
    return status;
}

trama_status trama_layout_parse(const trama_mesh *mesh, int tensor_ndim, const char *source, trama_layout *layout)
{
    if (!mesh || !source || !layout)
        return layout_is_null(TRAMA_E_LAYOUT, mesh, source ? "layout" : "text");
    if (layout_of_ndim(tensor_ndim))
        return TRAMA_E_LAYOUT;
    cursor c = {.at = source};
    trama_layout result = layout_uniform(mesh, TRAMA_REPLICATE);
    skip_blanks(&c);
    trama_status status = accept(&c, "[") ? parse_mapping(&c, mesh, tensor_ndim, &result)
                                          : parse_placements(&c, mesh, &result);
    if (!status && !c.wrong)
        status = parse_mask(&c, mesh, &result);
    skip_blanks(&c);
    if (c.wrong || (!status && *c.at))
        return trama_fail(NOWHERE, TRAMA_E_LAYOUT,
                          "layout: '%s' is not understood at '%s'; write \"S(0),R\", or per dim \"[0,-1]\"", source, c.at);
    if (!status)
        status = layout_check(mesh, tensor_ndim, &result, true);
    if (!status)
        *layout = result;
    return status;
}
