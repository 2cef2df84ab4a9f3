/* SPDX-License-Identifier: Apache-2.0 */
/* Pools of classes, and tables that are filled when they are first asked for. */
#include "layout_classes.h"

#include <math.h>
#include <string.h>

#include "hash.h"

struct class_table {
    table_key key;
    double *at;
};

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

int count_copy_states(int copies, int needed)
{
    return 1 + (copies > 0 ? needed : 0) + (copies > 1 ? needed * (needed - 1) / 2 : 0);
}

static void add_state(copy_states *c, int made, int first, int second)
{
    c->made_as[c->n] = made;
    c->copied_as[c->n][0] = first;
    c->copied_as[c->n++][1] = second;
}

/* Whether a copy would lie as the value is made. */
static bool is_made_as(const copy_states *c, int made, int needed)
{
    return layout_lies(c->made->mesh, &c->made->layouts.at[made], c->needed->mesh, &c->needed->layouts.at[needed]);
}

static void add_states(copy_states *c, int made)
{
    const int n = c->most_copies > 0 ? c->needed->layouts.n : 0;
    add_state(c, made, -1, -1);
    for (int i = 0; i < n; i++) {
        if (is_made_as(c, made, i))
            continue;
        add_state(c, made, i, -1);
        for (int k = i + 1; k < n && c->most_copies > 1; k++)
            if (!is_made_as(c, made, k))
                add_state(c, made, i, k);
    }
}

const copy_states *copies_between(class_tables *t, int copies, const layout_classes *made, const layout_classes *rest,
                                  const layout_classes *needed)
{
    const uint64_t hash =
        hash_word(hash_address(hash_address(hash_address(HASH_START, made), rest), needed), (uint64_t)copies);
    for (int probe = 0, i; (i = hash_table_find(&t->copies_by_content, hash, &probe)) >= 0;)
        if (t->copies.at[i]->made == made && t->copies.at[i]->rest == rest && t->copies.at[i]->needed == needed &&
            t->copies.at[i]->most_copies == copies)
            return t->copies.at[i];
    const int most = made->layouts.n * count_copy_states(copies, needed->layouts.n);
    copy_states *c = trama_alloc(sizeof *c);
    *c = (copy_states){.made = made, .rest = rest, .needed = needed, .most_copies = copies, .self = numbers(most)};
    c->made_as = trama_alloc((size_t)most * sizeof *c->made_as);
    c->copied_as = trama_alloc((size_t)most * sizeof *c->copied_as);
    for (int i = 0; i < made->layouts.n; i++)
        add_states(c, i);
    hash_table_add(&t->copies_by_content, hash, t->copies.n);
    *ARRAY_PUSH(&t->copies) = c;
    return c;
}

/* ---- Costs ---- */

static double cost_of(class_tables *t, const trama_value *v, const layout_classes *from, int i,
                      const layout_classes *to, int k)
{
    const int64_t bytes =
        bytes_between(&t->bytes, v, t->nominal, from->mesh, &from->layouts.at[i], to->mesh, &to->layouts.at[k]);
    return bytes ? (double)bytes + t->of_change : 0;
}

/* From where the value is made or rests. */
static double cost_without_copy(class_tables *t, const trama_value *v, const copy_states *c, int made,
                                const layout_classes *to, int k)
{
    const double cost = cost_of(t, v, c->made, made, to, k);
    return c->rest ? fmin(cost, cost_of(t, v, c->rest, 0, to, k)) : cost;
}

/* Two copies: the second one may come from the first. */
static double cost_in_turn(class_tables *t, const trama_value *v, const copy_states *c, int made, int first, int second)
{
    return cost_without_copy(t, v, c, made, c->needed, first) +
           fmin(cost_without_copy(t, v, c, made, c->needed, second),
                cost_of(t, v, c->needed, first, c->needed, second));
}

double cost_of_state(class_tables *t, const trama_value *v, const copy_states *c, int state)
{
    const int made = c->made_as[state], *copied = c->copied_as[state];
    const double rests = c->rest ? cost_of(t, v, c->made, made, c->rest, 0) : 0;
    if (copied[0] < 0)
        return rests;
    return rests + (copied[1] < 0 ? cost_without_copy(t, v, c, made, c->needed, copied[0])
                                  : fmin(cost_in_turn(t, v, c, made, copied[0], copied[1]),
                                         cost_in_turn(t, v, c, made, copied[1], copied[0])));
}

/* Whether a layout has terms along an axis where another has none. */
static bool has_new_terms(const layout_classes *from, int i, const layout_classes *to, int k)
{
    const trama_layout *had = &from->layouts.at[i], *has = &to->layouts.at[k];
    return layout_axes(has, TRAMA_PARTIAL) & ~(from->mesh == to->mesh ? layout_axes(had, TRAMA_PARTIAL) : 0);
}

/* ---- Tables ---- */

static double bytes_element(class_tables *t, const table_key *key, int i, int k)
{
    const layout_classes *from = key->from, *to = key->to;
    return key->old_terms && has_new_terms(from, i, to, k) ? t->forbidden : cost_of(t, key->of, from, i, to, k);
}

static double reads_element(class_tables *t, const table_key *key, int i, int k)
{
    const copy_states *c = key->from;
    const layout_classes *to = key->to;
    if (key->old_terms && has_new_terms(c->made, c->made_as[i], to, k) &&
        (!c->rest || has_new_terms(c->rest, 0, to, k)))
        return t->forbidden;
    double cost = cost_without_copy(t, key->of, c, c->made_as[i], to, k);
    for (int j = 0; j < MOST_COPIES && c->copied_as[i][j] >= 0; j++)
        cost = fmin(cost, cost_of(t, key->of, c->needed, c->copied_as[i][j], to, k));
    return cost;
}

static double updates_element(class_tables *t, const table_key *key, int i, int k)
{
    const layout_classes *from = key->from, *to = key->to;
    if (layout_lies(from->mesh, &from->layouts.at[i], to->mesh, &to->layouts.at[k]))
        return 0;
    const bool part = !layout_has(&to->layouts.at[k], TRAMA_PARTIAL) && cost_of(t, key->of, from, i, to, k) == 0;
    return part ? cost_of(t, key->of, to, k, from, i) : t->forbidden;
}

/* Whether a state has as many copies as there may be. */
static bool has_all_copies(const copy_states *c, int state)
{
    return c->most_copies == 0 || c->copied_as[state][c->most_copies - 1] >= 0;
}

static double element(class_tables *t, const table_key *key, int i, int k)
{
    switch (key->kind) {
    case TABLE_UPDATES:
        return updates_element(t, key, i, k);
    case TABLE_BYTES:
        return bytes_element(t, key, i, k);
    case TABLE_ORIGINS:
        return ((const copy_states *)key->to)->made_as[k] == i ? 0 : t->forbidden;
    case TABLE_READS:
        break;
    }
    return reads_element(t, key, i, k);
}

static bool same_key(const table_key *a, const table_key *b)
{
    return a->kind == b->kind && a->from == b->from && a->to == b->to && a->old_terms == b->old_terms &&
           a->sharing == b->sharing && a->of->dtype == b->of->dtype && trama_shape_equal(a->of->shape, b->of->shape);
}

static void fill(class_tables *t, const table_key *key, int rows, int columns, double *at)
{
    for (int i = 0; i < rows; i++)
        for (int k = 0; k < columns; k++)
            at[(size_t)i * (size_t)columns + (size_t)k] = element(t, key, i, k);
}

/* The same as parts, in states with all copies. */
static void fill_shared(class_tables *t, const table_key *key, int rows, int columns, double *at)
{
    table_key whole = *key;
    whole.sharing = 0;
    memcpy(at, class_table(t, &whole), (size_t)rows * (size_t)columns * sizeof *at);
    for (int i = 0; i < rows; i++)
        for (int k = 0; k < columns && has_all_copies(key->from, i); k++) {
            double *cost = &at[(size_t)i * (size_t)columns + (size_t)k];
            *cost /= *cost < t->forbidden ? key->sharing : 1;
        }
}

const double *class_table(class_tables *t, const table_key *key)
{
    uint64_t hash = hash_address(hash_address(hash_word(HASH_START, key->kind), key->from), key->to);
    hash = hash_word(hash_word(hash_word(hash, key->of->dtype), key->old_terms), (uint64_t)key->sharing);
    for (int d = 0; d < key->of->shape.ndim; d++)
        hash = hash_word(hash, (uint64_t)key->of->shape.dim[d]);
    for (int probe = 0, i; (i = hash_table_find(&t->tables_by_content, hash, &probe)) >= 0;)
        if (same_key(&t->tables.at[i]->key, key))
            return t->tables.at[i]->at;
    const int rows = key->kind == TABLE_READS ? ((const copy_states *)key->from)->n
                                              : ((const layout_classes *)key->from)->layouts.n,
              columns = key->kind == TABLE_ORIGINS ? ((const copy_states *)key->to)->n
                                                   : ((const layout_classes *)key->to)->layouts.n;
    struct class_table *made = trama_alloc(sizeof *made);
    *made = (struct class_table){*key, trama_alloc((size_t)rows * (size_t)columns * sizeof(double))};
    (key->sharing ? fill_shared : fill)(t, key, rows, columns, made->at);
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
