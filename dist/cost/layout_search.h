/* SPDX-License-Identifier: Apache-2.0 */
/* How far completed layouts are from the best, and better ones. */
#ifndef LAYOUT_SEARCH_H
#define LAYOUT_SEARCH_H

#include "complete.h"

typedef struct layout_search {
    int64_t bytes, memory; /* layouts_bytes of the given layouts; what a process needs in them, counted as the limit is,
                            * or 0 without a limit */
    int64_t bound;         /* no layouts that were searched and keep the limit receive fewer; if !fits, none at all */
    int pinned;            /* ops and values that stay as given, though no annotation says so: see layout_graph.c */
    bool found;            /* better layouts, which the caller frees, with their bytes */
    layouts better;
    int64_t better_bytes, better_memory;
    bool fits; /* whether these, or else the given ones, keep the limit */
} layout_search;

/* Searches the layouts that keep annotations and the program's limit of memory, and in which no process does more work
 * for an op than the busiest one does for it in the given layouts. The result is the same on all ranks. The cost is
 * linear in the ops. Better layouts are nearer to the limit than the given ones, or as near and receive fewer bytes. */
void search_layouts(const trama_program *program, const layouts *start, int64_t nominal, layout_search *result);

/* split_forms_complete, then better layouts where the user asked for a search. E_MEMORY as below. */
trama_status search_complete(trama_program *program, int64_t nominal, const trama_mesh *single, layouts *result);

/* Replaces completed layouts by better ones where the user asked for a search. E_MEMORY where no layouts that it finds
 * keep the limit of memory. */
trama_status search_if_asked(const trama_program *program, int64_t nominal, layouts *l);

#endif
