/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of eager mode: a hash table from all that decides a plan to the snippet. */
#include "eager.h"

#include <string.h>

#include "hash.h"

struct eager_entry {
    eager_key key;
    snippet *s;
    int64_t used;
};

static uint64_t hash_key(const eager_key *key)
{
    return hash_bytes(HASH_START, key, sizeof *key);
}

static eager_entry **find_slot(eager_state *s, const eager_key *key)
{
    for (uint64_t i = hash_key(key);; i++) {
        eager_entry **slot = &s->slots[i & (CACHE_SLOTS - 1)];
        if (!*slot || !memcmp(&(*slot)->key, key, sizeof *key))
            return slot;
    }
}

static void free_entry(eager_entry *entry)
{
    snippet_destroy(&entry->s);
    free(entry);
}

/* Drops what no instance uses and nobody asked for lately; the rest is entered anew. */
static void shrink_cache(eager_state *s)
{
    eager_entry **all = trama_alloc((size_t)s->n_entries * sizeof *all);
    int n = 0;
    for (int i = 0; i < CACHE_SLOTS; i++) {
        if (s->slots[i])
            all[n++] = s->slots[i];
        s->slots[i] = NULL;
    }
    s->n_entries = 0;
    for (int i = 0; i < n; i++) {
        if (all[i]->s->of.users == 0 && s->ops - all[i]->used > CACHE_ENTRIES / 2) {
            free_entry(all[i]);
            continue;
        }
        *find_slot(s, &all[i]->key) = all[i];
        s->n_entries++;
    }
    free(all);
}

snippet *eager_cached(eager_state *s, const eager_key *key)
{
    eager_entry *entry = *find_slot(s, key);
    if (entry)
        entry->used = s->ops;
    return entry ? entry->s : NULL;
}

/* ---- Forms ---- */

/* Shards are named by the first piece that lies in them. */
static void piece_text(text *t, const plan *p, const plan_holding *h, const plan_piece *piece)
{
    const plan_shard *s = &p->shards.at[piece->region.shard];
    const plan_piece *first = h->pieces.at;
    while (first->region.shard != piece->region.shard)
        first++;
    text_add(t, ";%d %d %d ", piece->place, piece->term, piece->position);
    box_text(t, &piece->region.box);
    text_add(t, " in %d ", (int)(first - h->pieces.at));
    box_text(t, &s->box);
    text_add(t, " %d/%d", s->cut_dim, s->cut_parts);
}

static char *form_text(const snippet *s, int value, const plan_holding *h)
{
    text t = {0};
    text_add(&t, "%d ", s->program->values.at[value]->dtype);
    shape_text(&t, s->of.shapes[value]);
    text_add(&t, " %p %d ", (const void *)h->mesh, h->inside);
    layout_text(&t, h->mesh, &h->layout);
    for (int i = 0; i < h->pieces.n; i++)
        piece_text(&t, s->of.plan, h, &h->pieces.at[i]);
    return text_take(&t);
}

int eager_number(eager_state *s, char *words)
{
    for (int i = 0; i < s->forms.n; i++)
        if (!strcmp(s->forms.at[i], words)) {
            free(words);
            return i;
        }
    *ARRAY_PUSH(&s->forms) = words;
    return s->forms.n - 1;
}

static void number_forms(eager_state *s, snippet *made)
{
    int n = made->program->values.n;
    made->of.forms = trama_alloc((size_t)n * sizeof *made->of.forms);
    for (int i = 0; i < n; i++) {
        const plan_holding *h = plan_find(made->of.plan, i);
        made->of.forms[i] = h ? eager_number(s, form_text(made, i, h)) : -1;
    }
}

/* ---- Entering ---- */

trama_status eager_remember(eager_state *s, const eager_key *key, snippet *made)
{
    if (s->n_entries >= CACHE_ENTRIES)
        shrink_cache(s);
    if (s->n_entries >= CACHE_SLOTS - 1) {
        snippet_destroy(&made);
        return trama_fail(NOWHERE, TRAMA_E_MEMORY, "eager: %d different ops are alive; forget some with "
                                                   "trama_program_rewind", s->n_entries);
    }
    eager_entry *entry = trama_alloc(sizeof *entry);
    *entry = (eager_entry){.key = *key, .s = made, .used = s->ops};
    number_forms(s, made);
    for (int i = 0; i < made->program->values.n; i++) /* it serves other lines, too */
        made->program->values.at[i]->where = NOWHERE;
    *find_slot(s, key) = entry;
    s->n_entries++;
    return TRAMA_OK;
}

void eager_cache_free(eager_state *s)
{
    for (int i = 0; i < CACHE_SLOTS; i++)
        if (s->slots[i])
            free_entry(s->slots[i]);
    for (int i = 0; i < s->forms.n; i++)
        free(s->forms.at[i]);
    ARRAY_FREE(&s->forms);
}
