/* SPDX-License-Identifier: Apache-2.0 */
/* The layouts of one tensor among the states of a variable, and the bytes from one to another. */
#ifndef LAYOUT_CLASSES_H
#define LAYOUT_CLASSES_H

#include "changes.h"

/* Each different layout once, on one mesh; of [n]: the class of each state. */
typedef struct layout_classes {
    const trama_mesh *mesh;
    layout_list layouts;
    int n, *of;
} layout_classes;

/* The number of a layout in a list, to whose end it is added if it is new. */
int class_of_layout(layout_list *list, const trama_layout *layout);

enum { MOST_COPIES = 2 };

/* The states of a value that ops read: a layout in which it is made; where `rest` is not NULL the one layout in which
 * it rests besides; and copies in at most `most_copies` further layouts. */
typedef struct copy_states {
    const layout_classes *made, *rest, *needed;
    int most_copies;
    int n, *made_as, (*copied_as)[MOST_COPIES]; /* [n] classes; copied_as -1: there is no such copy, or second copy */
    int *self;                                  /* [n] 0, 1, ... */
} copy_states;

/* Tables and classes, each kept once. Zeroed but for the three numbers it is empty and valid. */
typedef struct class_tables {
    int64_t nominal;  /* extent that stands for TRAMA_ANY */
    double of_change; /* the cost of a change of layout beside its bytes, so that fewer changes are found */
    double forbidden; /* in place of a cost that must not be paid: more than any solution costs */
    ARRAY(layout_classes *) classes;
    ARRAY(copy_states *) copies;
    ARRAY(struct class_table *) tables;
    hash_table classes_by_content, copies_by_content, tables_by_content;
    transfer_bytes bytes;
} class_tables;
void class_tables_free(class_tables *t);

/* Classes whose states are the layouts of the list, which is taken over. */
const layout_classes *classes_of_list(class_tables *t, const trama_mesh *mesh, layout_list *list);

/* The most states for one layout in which the value is made. */
int count_copy_states(int copies, int needed);

const copy_states *copies_between(class_tables *t, int copies, const layout_classes *made, const layout_classes *rest,
                                  const layout_classes *needed);

typedef enum table_kind {
    TABLE_UPDATES, /* [classes of from, classes of to] 0 where a state lies as it is updated; the cost of gathering it
                      where each process updates a part of what it holds; else `forbidden` */
    TABLE_BYTES,   /* [classes of from, classes of to] the cost of a change of a value */
    TABLE_ORIGINS, /* [classes of made, copy states] 0 for the states made as the class says, else `forbidden` */
    TABLE_READS    /* [copy states, classes of to] the cost of a change from the cheapest layout of a state */
} table_kind;

/* A table to look up. from: layout_classes, or for TABLE_READS copy_states; to: layout_classes, or for TABLE_ORIGINS
 * copy_states. */
typedef struct table_key {
    table_kind kind;
    const void *from, *to;
    const trama_value *of; /* of whose shape and type the bytes are */
    bool old_terms;        /* bytes: layouts with terms that `from` lacks are forbidden */
    int sharing;           /* TABLE_READS, above 1: beside all copies a reader pays 1/sharing of the cost */
} table_key;

/* Row-major; the tables keep it. */
const double *class_table(class_tables *t, const table_key *key);

/* The cost of a value in a state: the bytes to where it rests and to its copies, in the cheaper order. */
double cost_of_state(class_tables *t, const trama_value *v, const copy_states *c, int state);

#endif
