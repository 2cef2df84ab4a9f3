/* SPDX-License-Identifier: Apache-2.0 */
/* Pools of classes, and tables that are filled when they are first asked for. */
#include "layout_classes.h"

#include <string.h>

#include "hash.h"

struct class_table {
    table_kind kind;
    const void *from, *to;
    const trama_value *of; /* one of the values with this shape and type */
    double *at;
};

static uint64_t hash_address(uint64_t hash, const void *address)
{
    return hash_word(hash, (uint64_t)(uintptr_t)address);
}

/* ---- Classes ---- */

int class_of_layout(layout_list *list, const trama_layout *layout)
{
    for (int i = 0; i < list->n; i++)
        if (trama_layout_equal(&list->at[i], layout))
            return i;
    *ARRAY_PUSH(list) = *layout;
    return list->n - 1;
}

static int *numbers(int n)
{
    int *at = trama_alloc((size_t)(n + 1) * sizeof *at);
    for (int i = 0; i < n; i++)
        at[i] = i;
    return at;
}

static bool same_list(const layout_list *a, const layout_list *b)
{
    bool same = a->n == b->n;
    for (int i = 0; i < a->n && same; i++)
        same = trama_layout_equal(&a->at[i], &b->at[i]);
    return same;
}

const layout_classes *classes_of_list(class_tables *t, const trama_mesh *mesh, layout_list *list)
{
    uint64_t hash = hash_address(HASH_START, mesh);
    for (int i = 0; i < list->n; i++)
        hash = layout_hash(hash, &list->at[i]);
    for (int probe = 0, i; (i = hash_table_find(&t->classes_by_content, hash, &probe)) >= 0;)
        if (t->classes.at[i]->mesh == mesh && same_list(&t->classes.at[i]->layouts, list)) {
            ARRAY_FREE(list);
            return t->classes.at[i];
        }
    layout_classes *c = trama_alloc(sizeof *c);
    *c = (layout_classes){mesh, *list, list->n, numbers(list->n)};
    *list = (layout_list){0};
    hash_table_add(&t->classes_by_content, hash, t->classes.n);
    *ARRAY_PUSH(&t->classes) = c;
    return c;
}

const copy_states *copies_between(class_tables *t, const layout_classes *made, const layout_classes *needed)
{
    const uint64_t hash = hash_address(hash_address(HASH_START, made), needed);
    for (int probe = 0, i; (i = hash_table_find(&t->copies_by_content, hash, &probe)) >= 0;)
        if (t->copies.at[i]->made == made && t->copies.at[i]->needed == needed)
            return t->copies.at[i];
    const int most = made->layouts.n * (needed->layouts.n + 1);
    copy_states *c = trama_alloc(sizeof *c);
    *c = (copy_states){.made = made, .needed = needed, .self = numbers(most)};
    c->made_as = trama_alloc((size_t)most * sizeof *c->made_as);
    c->copied_as = trama_alloc((size_t)most * sizeof *c->copied_as);
    for (int i = 0; i < made->layouts.n; i++)
        for (int k = -1; k < needed->layouts.n; k++)
            if (k < 0 || made->mesh != needed->mesh ||
                !trama_layout_equal(&made->layouts.at[i], &needed->layouts.at[k])) {
                c->made_as[c->n] = i;
                c->copied_as[c->n++] = k;
            }
    hash_table_add(&t->copies_by_content, hash, t->copies.n);
    *ARRAY_PUSH(&t->copies) = c;
    return c;
}

/* ---- Tables ---- */

static int64_t bytes_of(class_tables *t, const trama_value *v, const layout_classes *from, int i,
                        const layout_classes *to, int k)
{
    return bytes_between(&t->bytes, v, t->nominal, from->mesh, &from->layouts.at[i], to->mesh, &to->layouts.at[k]);
}

int64_t bytes_of_copy(class_tables *t, const trama_value *v, const copy_states *c, int state)
{
    return c->copied_as[state] < 0 ? 0 : bytes_of(t, v, c->made, c->made_as[state], c->needed, c->copied_as[state]);
}

static double element(class_tables *t, const struct class_table *b, int i, int k)
{
    const layout_classes *from = b->from, *to = b->to;
    const copy_states *c = b->kind == TABLE_ORIGINS ? b->to : b->from;
    switch (b->kind) {
    case TABLE_BYTES:
        return (double)bytes_of(t, b->of, from, i, to, k);
    case TABLE_EQUALS:
        return from->mesh == to->mesh && trama_layout_equal(&from->layouts.at[i], &to->layouts.at[k]) ? 0
                                                                                                      : COST_FORBIDDEN;
    case TABLE_ORIGINS:
        return c->made_as[k] == i ? 0 : COST_FORBIDDEN;
    case TABLE_READS:
        break;
    }
    const int64_t as_made = bytes_of(t, b->of, c->made, c->made_as[i], to, k);
    return (double)(c->copied_as[i] < 0 ? as_made
                                        : min_i64(as_made, bytes_of(t, b->of, c->needed, c->copied_as[i], to, k)));
}

const double *class_table(class_tables *t, table_kind kind, const void *from, const void *to, const trama_value *v)
{
    uint64_t hash = hash_word(hash_address(hash_address(hash_word(HASH_START, kind), from), to), v->dtype);
    for (int d = 0; d < v->shape.ndim; d++)
        hash = hash_word(hash, (uint64_t)v->shape.dim[d]);
    for (int probe = 0, i; (i = hash_table_find(&t->tables_by_content, hash, &probe)) >= 0;) {
        const struct class_table *b = t->tables.at[i];
        if (b->kind == kind && b->from == from && b->to == to && b->of->dtype == v->dtype &&
            trama_shape_equal(b->of->shape, v->shape))
            return b->at;
    }
    const int rows = kind == TABLE_READS ? ((const copy_states *)from)->n : ((const layout_classes *)from)->layouts.n,
              columns = kind == TABLE_ORIGINS ? ((const copy_states *)to)->n : ((const layout_classes *)to)->layouts.n;
    struct class_table *made = trama_alloc(sizeof *made);
    *made = (struct class_table){kind, from, to, v, trama_alloc((size_t)rows * (size_t)columns * sizeof(double))};
    for (int i = 0; i < rows; i++)
        for (int k = 0; k < columns; k++)
            made->at[i * columns + k] = element(t, made, i, k);
    hash_table_add(&t->tables_by_content, hash, t->tables.n);
    *ARRAY_PUSH(&t->tables) = made;
    return made->at;
}

void class_tables_free(class_tables *t)
{
    for (int i = 0; i < t->classes.n; i++) {
        ARRAY_FREE(&t->classes.at[i]->layouts);
        free(t->classes.at[i]->of);
        free(t->classes.at[i]);
    }
    for (int i = 0; i < t->copies.n; i++) {
        free(t->copies.at[i]->made_as);
        free(t->copies.at[i]->copied_as);
        free(t->copies.at[i]->self);
        free(t->copies.at[i]);
    }
    for (int i = 0; i < t->tables.n; i++) {
        free(t->tables.at[i]->at);
        free(t->tables.at[i]);
    }
    ARRAY_FREE(&t->classes);
    ARRAY_FREE(&t->copies);
    ARRAY_FREE(&t->tables);
    hash_table_free(&t->classes_by_content);
    hash_table_free(&t->copies_by_content);
    hash_table_free(&t->tables_by_content);
    transfer_bytes_free(&t->bytes);
}
